package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"taxon/internal/dataset"
	"taxon/internal/engine"
	"taxon/internal/eval"
	"taxon/internal/fs"
	"taxon/internal/jobspec"
	"taxon/internal/model"
	"taxon/internal/tune"
	taxonv1 "taxon/proto/taxon/v1"
)

// foldResult is what is kept of a finished training: a file of pointsDir beside its
// predictions.
type foldResult struct {
	tune.Point
	Fold           int          `json:"fold"`
	Measures       *eval.Result `json:"measures"`
	Sweeps         int          `json:"sweeps"`
	Gap            float64      `json:"gap"`
	StoppedBy      string       `json:"stopped_by"`
	CPUSeconds     float64      `json:"cpu_seconds"`
	ColdCPUSeconds float64      `json:"cold_cpu_seconds,omitempty"` // with --measure-cold
	From           *float64     `json:"from_C,omitempty"`           // where it began; unset: from nothing
}

func (s *search) file(p tune.Point, fold int, ext string) string {
	return s.join(pointsDir, fmt.Sprintf("%s.%d%s", p.Name(), fold, ext))
}

func (s *search) stateDir(p tune.Point, fold int) string {
	return s.join(statesDir, fmt.Sprintf("%s.%d", p.Name(), fold))
}

// fold trains a point without one fold's rows and measures it on them, unless that has
// been done. It begins where the path's last point ended on the same fold.
func (s *search) fold(ctx context.Context, path []tune.Point, i, f int) (*foldResult, error) {
	p := path[i]
	if r, err := s.load(p, f); r != nil || err != nil {
		return r, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rows, held := tune.Split(s.folds, f)
	t, err := s.foldTraining(p, rows)
	if err != nil {
		return nil, err
	}
	defer s.forget(t.set)
	var from *engine.Checkpoint
	r := &foldResult{Point: p, Fold: f}
	if i > 0 {
		if from, err = engine.LoadCheckpoint(s.stateDir(path[i-1], f)); err != nil {
			return nil, err
		}
		if from != nil {
			r.From = &path[i-1].C
		}
	}
	if s.o.cold && from != nil {
		job, st, err := s.train(ctx, t, nil)
		if err != nil {
			return nil, err
		}
		r.ColdCPUSeconds = st.GetCpuSeconds()
		if err := s.engine.Discard(ctx, job); err != nil {
			return nil, plainStatus(err)
		}
	}
	job, st, err := s.train(ctx, t, from)
	if err != nil {
		return nil, err
	}
	r.Sweeps, r.Gap, r.StoppedBy, r.CPUSeconds = int(st.GetSweep()), st.GetCertificate().GetGap(), st.GetStoppedBy(), st.GetCpuSeconds()
	if from == nil {
		r.ColdCPUSeconds = r.CPUSeconds
	}
	if err := s.measure(ctx, t, st, p, f, held, r); err != nil {
		return nil, err
	}
	if i+1 < len(path) {
		if err := s.engine.Save(ctx, job, s.stateDir(p, f)); err != nil {
			return nil, err
		}
	}
	if err := s.engine.Discard(ctx, job); err != nil {
		return nil, plainStatus(err)
	}
	if err := writeJSON(s.file(p, f, ".json"), r); err != nil { // from now on it counts
		return nil, err
	}
	if i > 0 {
		_ = os.RemoveAll(s.stateDir(path[i-1], f))
	}
	return r, nil
}

// load reads a finished training; nil: there is none.
func (s *search) load(p tune.Point, fold int) (*foldResult, error) {
	path := s.file(p, fold, ".json")
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fs.Explain(path, err)
	}
	r := &foldResult{}
	if err := json.Unmarshal(data, r); err != nil || r.Measures == nil || r.Point != p {
		return nil, fs.Inputf(path, 0, "is damaged: delete it, or use --force to search anew")
	}
	if s.o.cold && r.ColdCPUSeconds == 0 {
		return nil, nil // it was trained without the measurement that is asked for now
	}
	return r, nil
}

// foldTraining is the training of a point on some rows. Its tree is that of all the data:
// a class without instances among the rows stays, with negatives alone.
func (s *search) foldTraining(p tune.Point, rows []uint32) (*training, error) {
	set := s.whole.set.Subset(rows)
	t := &training{a: s.quiet(), o: s.o.at(p), work: s.work, set: set, structure: s.whole.structure, edges: s.whole.edges}
	t.spec = &taxonv1.JobSpec{Options: t.o.proto(), Data: describeData(s.whole.set)}
	t.spec.Data.Fingerprint = set.Fingerprint
	if err := t.specifyStructure(); err != nil {
		return nil, err
	}
	if err := t.plant(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets[set.Fingerprint] = set
	return t, nil
}

func (s *search) forget(set *dataset.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sets, set.Fingerprint)
}

// train runs a job to its end.
func (s *search) train(ctx context.Context, t *training, from *engine.Checkpoint) (job string, _ *taxonv1.JobStatus, err error) {
	s.mu.Lock()
	s.jobs++
	job = "tune-" + strconv.Itoa(s.jobs)
	s.mu.Unlock()
	if from != nil {
		err = s.engine.Branch(ctx, from, job, t.spec)
	} else {
		_, err = s.engine.Jobs.Submit(ctx, &taxonv1.SubmitRequest{Spec: t.spec, Job: job})
	}
	if err != nil {
		return "", nil, plainStatus(err)
	}
	stop := context.AfterFunc(ctx, func() {
		_, _ = s.engine.Jobs.Cancel(context.WithoutCancel(ctx), &taxonv1.CancelRequest{Job: job, Discard: true})
	})
	defer stop()
	stream, err := s.engine.Jobs.Watch(context.WithoutCancel(ctx), &taxonv1.StatusRequest{Job: job})
	if err != nil {
		return "", nil, plainStatus(err)
	}
	for {
		st, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return "", nil, errors.New("the coordinator ended before the job did")
		}
		if err != nil {
			return "", nil, plainStatus(err)
		}
		switch st.GetState() {
		case taxonv1.JobState_JOB_STATE_DONE:
			return job, st, nil
		case taxonv1.JobState_JOB_STATE_FAILED:
			return "", nil, fmt.Errorf("at C = %g: %w", t.o.c, t.failure(st))
		case taxonv1.JobState_JOB_STATE_CANCELLED:
			return "", nil, context.Canceled
		}
	}
}

// measure predicts the rows left out, keeps the predictions and measures them.
func (s *search) measure(ctx context.Context, t *training, st *taxonv1.JobStatus, p tune.Point, f int, held []uint32, r *foldResult) error {
	dir := s.work.join(fmt.Sprintf("model-%d", f))
	defer os.RemoveAll(dir)
	if _, err := t.writeModel(ctx, dir, s.engine, st, nil); err != nil {
		return err
	}
	m, err := model.Open(dir)
	if err != nil {
		return err
	}
	defer m.Close()
	predictor, err := m.NewPredictor(model.PredictOptions{Rule: m.DefaultRule(), Top: rankedPlaces})
	if err != nil {
		return err
	}
	file, err := fs.CreateFile(s.file(p, f, ".pred"))
	if err != nil {
		return err
	}
	defer file.Abort()
	w := bufio.NewWriter(file)
	next := 0
	fill := func(b *model.Batch) error {
		for ; !b.Full(); next++ {
			if next == len(held) {
				return io.EOF
			}
			b.Add(s.whole.set.Matrix.Row(int(held[next])))
		}
		return nil
	}
	err = predictor.Stream(ctx, 1, fill, func(b *model.Batch, out *model.Result) error {
		for i := range b.Rows() {
			writeNames(w, m, out.Set(i))
			w.WriteByte('\t')
			writeNames(w, m, out.Best(i))
			w.WriteByte('\n')
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return fs.Explain(s.file(p, f, ".pred"), err)
	}
	if err := file.Commit(); err != nil {
		return err
	}
	acc, err := eval.NewAccumulator(s.opts)
	if err != nil {
		return err
	}
	if err := s.replay(p, f, acc); err != nil {
		return err
	}
	measures := acc.Result()
	r.Measures = &measures
	return nil
}

func writeNames(w *bufio.Writer, m *model.Model, terminals []model.Scored) {
	for i, t := range terminals {
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteString(m.Tree.Name[t.Node]) // a label has neither comma nor blank
	}
}

// replay adds the predictions of a fold to a measurement.
func (s *search) replay(p tune.Point, f int, acc *eval.Accumulator) error {
	_, held := tune.Split(s.folds, f)
	path := s.file(p, f, ".pred")
	data, err := os.ReadFile(path)
	if err != nil {
		return fs.Explain(path, err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	if len(lines) != len(held)+1 || lines[len(held)] != "" {
		return fs.Inputf(path, 0, "is damaged: use --force to search anew")
	}
	set := s.whole.set
	var truth, predicted, ranked []int32
	for i, r := range held {
		truth = truth[:0]
		for _, l := range set.LabelIndex[set.LabelBegin[r]:set.LabelBegin[r+1]] {
			truth = append(truth, int32(l)) // class i of Options.Classes has id i
		}
		labels, best, _ := strings.Cut(strings.TrimSuffix(lines[i], "\n"), "\t")
		predicted = acc.IDs(predicted[:0], names(labels))
		ranked = acc.IDs(ranked[:0], names(best))
		acc.Add(truth, predicted, ranked)
	}
	return nil
}

func names(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// plant builds the tree of a fold's training; its warnings are those of the whole data.
func (t *training) plant() (err error) {
	t.tree, _, err = jobspec.Tree(t.spec)
	return err
}
