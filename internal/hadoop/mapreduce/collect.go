package mapreduce

import (
	"context"
	"slices"
	"strings"

	"taxon/internal/fs"
	taxonv1 "taxon/proto/taxon/v1"
)

// collect finds the files of a run's attempts, adds the chosen ones to the steps' indexes, and
// returns the tasks' results.
func (b *Backend) collect(ctx context.Context, run string, step uint32,
	r *taxonv1.MapReduceRun) (map[taskID]*taxonv1.ReportRequest, error) {
	results := map[taskID]*taxonv1.ReportRequest{}
	steps := []uint32{step}
	if len(r.GetReduces()) > 0 {
		steps = append(steps, r.Reduces[0].GetStep())
	}
	for _, s := range steps {
		more, err := b.collectStep(ctx, run, s, results)
		if err != nil {
			return nil, err
		}
		if err := b.dir.addSegments(ctx, s, more); err != nil {
			return nil, err
		}
		b.values.forget(s)
	}
	return results, nil
}

// collectStep chooses among the files of a step. Attempts of one task hold equal values; the first
// by name is chosen.
func (b *Backend) collectStep(ctx context.Context, run string, step uint32,
	results map[taskID]*taxonv1.ReportRequest) ([]*taxonv1.StepSegment, error) {
	names, err := fs.ReadDirNames(b.dir.step(step))
	if err != nil {
		return nil, fs.Explain(b.dir.step(step), err)
	}
	var out []*taxonv1.StepSegment
	covered := map[uint32]bool{}
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, run+"-")
		if !ok {
			continue
		}
		t, at, err := scanSegment(ctx, fs.Join(b.dir.step(step), name))
		if err != nil {
			return nil, err
		}
		var s *taxonv1.StepSegment
		if kind, _, _ := strings.Cut(rest, "-"); kind == "v" {
			s = chooseRanges(name, at, t, covered)
		} else {
			s = chooseTasks(name, at, t, step, results)
		}
		if s != nil {
			out = append(out, s)
		}
	}
	return out, nil
}

// chooseTasks chooses a segment if it has a new result.
func chooseTasks(name string, at place, t *taxonv1.SegmentTable, step uint32,
	results map[taskID]*taxonv1.ReportRequest) *taxonv1.StepSegment {
	var tasks []uint32
	fresh := false
	for _, r := range t.GetResults() {
		id := taskID{r.GetLease().GetStep(), r.GetLease().GetTask()}
		tasks = append(tasks, id.task)
		if old := results[id]; id.step == step && (old == nil || old.GetError() != "" && r.GetError() == "") {
			results[id] = r
			fresh = true
		}
	}
	if !fresh {
		return nil
	}
	return stepSegment(name, at, tasks, nil)
}

// chooseRanges chooses a segment of shuffled values if it has a new item.
func chooseRanges(name string, at place, t *taxonv1.SegmentTable, covered map[uint32]bool) *taxonv1.StepSegment {
	var ranges []uint32
	fresh := false
	for _, v := range t.GetValues() {
		_, r, ok := partOf(v.GetName())
		if !ok {
			return nil
		}
		if !slices.Contains(ranges, r) {
			ranges = append(ranges, r)
			fresh = fresh || !covered[r]
		}
	}
	for _, r := range ranges {
		covered[r] = true
	}
	if !fresh {
		return nil
	}
	return stepSegment(name, at, nil, ranges)
}

// measure records the durations of items, so that the next sweep's work is divided evenly.
func (b *Backend) measure(batch []*waiter, results map[taskID]*taxonv1.ReportRequest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range batch {
		r := results[taskID{w.lease.GetStep(), w.lease.GetTask()}]
		if !w.lease.GetEmit() && r.GetCpuSeconds() > 0 {
			b.seconds[itemOf(w.lease)] = r.GetCpuSeconds()
		}
	}
}
