package train

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"sync"

	"taxon/coordinator/method/registry"
	"taxon/internal/app/engine"
	"taxon/internal/cluster/jobs"
	"taxon/internal/data/dataset"
	"taxon/internal/data/table"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/model"
	"taxon/internal/model/measure"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

// sweepScore is the evaluation of one sweep's weights.
type sweepScore struct {
	Sweep   int     `json:"sweep"`
	MicroF1 float64 `json:"micro_f1"`
	MacroF1 float64 `json:"macro_f1"`
	// Value is the goal's value for an early stop, oriented so that higher is better.
	Value float64 `json:"value,omitempty"`
}

// With Options.EarlyStop a training is evaluated every earlyEvery sweeps unless the option
// eval-every is given. It ends when patience consecutive evaluations have not improved on the best
// one before them by the relative amount minGain. The fluctuation of the scores is below minGain.
const (
	earlyEvery = 2
	patience   = 3
	minGain    = 1e-3
)

// stands reports whether the goal has stopped improving by the end of a sweep.
func (s *sweepScores) stands(sweep int) bool {
	best, since := math.Inf(-1), 0
	for _, k := range slices.Sorted(maps.Keys(s.bySweep)) {
		if k > sweep {
			break
		}
		if v := s.bySweep[k].Value; v > best+minGain*math.Abs(best) || math.IsInf(best, -1) {
			best, since = v, 0
		} else {
			since++
		}
	}
	return since >= patience
}

// goalOf returns the goal's value in r, oriented so that higher is better.
func (t *Training) goalOf(r *measure.Result) (float64, error) {
	m, _ := measure.Find(cmp.Or(t.o.Goal, DefaultGoal))
	v, ok := m.Of(r)
	if !ok {
		return 0, option.Errorf("train: ‹goal=%s› is not measured on the data of ‹early-stop›", t.o.Goal)
	}
	if m.Low {
		v = -v
	}
	return v, nil
}

// sweepScores evaluates the weights of every n-th sweep on the test data. The training is suspended
// meanwhile, so its time and its CPU time do not include the evaluation. The scores are also kept
// next to the checkpoint, one a line, for a run that resumes from it.
type sweepScores struct {
	t      *Training
	engine *engine.Engine
	// stopping ends when the user interrupts.
	stopping context.Context
	// cancelled is closed once the job has been cancelled after an interrupt.
	cancelled chan struct{}

	// mu guards bySweep, which a page may read while the training runs.
	mu      sync.Mutex
	bySweep map[int]sweepScore
}

// newScores returns the scores of t. If resumed is set, it reads those of the earlier run.
func (t *Training) newScores(ctx context.Context, resumed bool) *sweepScores {
	s := &sweepScores{t: t, stopping: ctx, cancelled: make(chan struct{}), bySweep: map[int]sweepScore{}}
	if !resumed {
		_ = fs.RemoveAll(s.path()) // left by a run without a checkpoint
		return s
	}
	data, err := vfs.ReadFile(vfs.OS, s.path())
	if err != nil {
		return s
	}
	for line := range bytes.Lines(data) {
		var row sweepScore
		if json.Unmarshal(line, &row) == nil { // the last line of a killed run may be cut off
			s.bySweep[row.Sweep] = row
		}
	}
	return s
}

// path returns the path of the scores' file.
func (s *sweepScores) path() string { return s.t.work.Join("scores.jsonl") }

// show is called by the coordinator with a sweep's weights. The coordinator waits for its return.
func (s *sweepScores) show(ctx context.Context, st *taxonv1.JobStatus) (err error) {
	defer fs.CatchFault(&err)()
	defer s.t.usage.pause()()
	measuring, done := context.WithCancel(ctx)
	defer done()
	defer context.AfterFunc(s.stopping, done)()
	err = s.measure(measuring, st)
	if s.stopping.Err() == nil {
		if err == nil && s.t.o.EarlyStop != "" && s.stands(int(st.GetSweep())) {
			err = engine.ErrEarlyStop
		}
		return err
	}
	// Wait until the job is cancelled, so that no further sweep starts. This sweep is evaluated
	// again when the training is resumed.
	select {
	case <-s.cancelled:
	case <-ctx.Done():
	}
	return nil
}

// measure writes the weights as a model and evaluates it.
func (s *sweepScores) measure(ctx context.Context, st *taxonv1.JobStatus) error {
	t := s.t
	dir := t.work.Join("trial")
	defer fs.RemoveAll(dir)
	if _, err := t.WriteModel(ctx, dir, s.engine, st, nil); err != nil {
		return err
	}
	r, err := t.o.Evaluate(ctx, dir)
	if err != nil {
		return err
	}
	row := sweepScore{Sweep: int(st.GetSweep()), MicroF1: r.MicroF1, MacroF1: r.MacroF1}
	if t.o.EarlyStop != "" {
		if row.Value, err = t.goalOf(r); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.bySweep[row.Sweep] = row
	s.mu.Unlock()
	return s.keep(row)
}

// keep appends a line to the scores' file.
func (s *sweepScores) keep(row sweepScore) error {
	data, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("score of sweep %d: %w", row.Sweep, err)
	}
	f, err := vfs.OS.OpenFile(s.path(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return fs.Explain(s.path(), err)
	}
	defer f.Close()
	if _, err := f.Write(append(data, '\n')); err != nil {
		return fs.Explain(s.path(), err)
	}
	return fs.Explain(s.path(), f.Close())
}

// trace returns the rows of a job's trace, with the scores of their sweeps.
func (t *Training) trace(st *taxonv1.JobStatus) []model.TraceRow {
	rows, s := jobs.TraceOf(st), t.scores
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range rows {
		if score, ok := s.bySweep[rows[i].Sweep]; ok {
			rows[i].MicroF1, rows[i].MacroF1 = &score.MicroF1, &score.MacroF1
		}
	}
	return rows
}

// TestTable returns the options for reading tabular test data.
func (o *Options) TestTable() table.Options {
	t := o.Table
	t.Labels = o.TestLabels
	return t
}

// checkTest reads the test data once before the training, so that errors in them show at once and
// not hours later. Standard input can be read only once, so it is not checked.
func (t *Training) checkTest(ctx context.Context, path string) error {
	o := t.o
	switch {
	case path == "" || path == fs.Stdin:
		return nil
	case dataset.LooksIngested(path):
		return t.checkTestSet(path)
	}
	text := t.Set.Vocabulary != nil
	zero := o.ZeroBased || t.Set.Source.ZeroBased || t.Set.Source.Form == "xmc"
	r, err := dataset.OpenReader(ctx, fs.Local{}, path, dataset.ReaderOptions{Text: text, ZeroBased: zero && !text,
		Table: o.TestTable().Over(t.Set.Table), Use: table.Use{Labels: true, Features: true, Schema: t.Set.Table}})
	if err != nil {
		return err
	}
	defer r.Close()
	line := t.ui.StartBytes("check the test data", max(0, r.Size()))
	defer line.Done()
	known, met := t.knownLabels(), false
	for n := 0; ; n++ {
		row, err := r.Read()
		if err == io.EOF {
			return t.checkLabelled(path, met)
		}
		if err != nil {
			return err
		}
		for i := 0; i < len(row.Labels) && !met; i++ {
			met = known[string(row.Labels[i])]
		}
		if n%checkRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			line.Set(r.BytesRead())
		}
	}
}

// checkRows is the number of rows after which checkTest looks for cancellation.
const checkRows = 4096

// checkTestSet does what checkTest does, for an ingested data set.
func (t *Training) checkTestSet(path string) error {
	set, err := dataset.Open(path)
	if err != nil {
		return err
	}
	defer set.Close()
	if set.Fingerprint != t.Set.Fingerprint && (set.Vocabulary != nil || t.Set.Vocabulary != nil) {
		return fs.Inputf(path, 0, "is ingested text with word weights of its own: give the text file itself")
	}
	known := t.knownLabels()
	return t.checkLabelled(path, slices.ContainsFunc(set.Labels, func(name string) bool { return known[name] }))
}

// knownLabels returns the labels that have training instances.
func (t *Training) knownLabels() map[string]bool {
	known := map[string]bool{}
	for l, name := range t.Set.Labels {
		known[name] = t.Set.PosBegin[l] < t.Set.PosBegin[l+1]
	}
	return known
}

// checkLabelled returns an error if no instance for an early stop has a label of the training. met
// reports that one has.
func (t *Training) checkLabelled(path string, met bool) error {
	if path == t.o.EarlyStop && !met {
		return fs.Inputf(path, 0, "no instance has a label that the training data have: there is nothing to measure "+
			"for ‹early-stop›")
	}
	return nil
}

// checkEarlyStop returns an error if the goal is not measured during a training.
func (t *Training) checkEarlyStop() error {
	m, _ := measure.Find(t.o.Goal)
	switch {
	case t.o.EarlyStop == "" || m == nil:
		return nil
	case m.Hierarchical && t.Structure == nil:
		return option.Errorf("train: ‹early-stop› by ‹goal=%s› needs a class structure: add ‹hierarchy=FILE›", t.o.Goal)
	case m.Probable && !registry.Form(t.Spec.GetOptions()).Probable():
		return option.Errorf("train: ‹early-stop› by ‹goal=%s› needs probabilities, and scores by %s are none: use another "+
			"goal, or a method with the logistic loss", t.o.Goal, t.o.Job.Method)
	}
	return nil
}

// WriteModel assembles the weights that a status names and publishes them as the model dir.
func (t *Training) WriteModel(ctx context.Context, dir string, e *engine.Engine, st *taxonv1.JobStatus,
	trace []model.TraceRow) (*model.Report, error) {
	w, err := model.NewWriter(dir, t.Meta())
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	if err := e.StreamWeights(ctx, t.Tree.Len(), st, t.shifted(w.WriteNode)); err != nil {
		return nil, err
	}
	report, err := w.Close(t.report(st), trace)
	if err != nil {
		return nil, err
	}
	return &report, nil
}

// Shift copies the model in the folder from, which was trained by a cluster, to dir, and applies
// the prior shift, which clusters do not support.
func (t *Training) Shift(from, dir string) (*model.Report, error) {
	m, err := model.Open(from)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	trace, err := model.ReadTrace(from)
	if err != nil {
		return nil, err
	}
	w, err := model.NewWriter(dir, t.Meta())
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	write := t.shifted(w.WriteNode)
	for n := range m.Tree.Len() {
		if columns, values := m.Overrides(n); err == nil {
			err = write(n, columns, values)
		}
	}
	if err != nil {
		return nil, err
	}
	report, err := w.Close(m.Manifest.Report, trace)
	return &report, err
}
