package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"taxon/test/bench/drive"
)

// bench runs claims.
type bench struct {
	data   string // folder of the data sets
	python string
	script string // peers.py
	runs   int
	dir    string // folder for temporary files
	taxon  *drive.Driver
	say    func(format string, args ...any)
}

// result is the result of a claim.
type result struct {
	Case    string    `json:"case"`
	Figures []float64 `json:"figures"` // one figure per interleaved run
	Median  float64   `json:"median"`
	Min     float64   `json:"min"`
	Max     float64   `json:"max"`
	Unit    string    `json:"unit"`
	Note    string    `json:"note"`
	Date    string    `json:"date"`
	Commit  string    `json:"commit"`
	Runs    []pair    `json:"runs"`
}

// pair holds one run of both sides.
type pair struct {
	Ours     float64 `json:"ours"`           // CPU seconds, or the figure itself
	Peer     float64 `json:"peer,omitempty"` // the same
	OursGap  float64 `json:"ours_gap,omitempty"`
	PeerGap  float64 `json:"peer_gap,omitempty"` // a lower bound, computed from our weights' objective
	PeerNote string  `json:"peer_note,omitempty"`
}

// peerReport is the output of peers.py.
type peerReport struct {
	CPUSeconds   float64 `json:"train_cpu_seconds"`
	Objective    float64 `json:"objective"`
	Docs         float64 `json:"docs_per_second"`
	MicroF1      float64 `json:"micro_f1"`
	MacroF1      float64 `json:"macro_f1"`
	ModelBytes   int64   `json:"model_bytes"`
	PeakRSSBytes int64   `json:"peak_rss_bytes"`
}

func (b *bench) run(ctx context.Context, c claim) (*result, error) {
	r := &result{Case: c.name, Unit: c.unit()}
	f, err := b.files(ctx, c.set)
	if err != nil {
		return nil, err
	}
	switch c.what {
	case flatTime:
		err = b.flat(ctx, c, f, r)
	case jointTime:
		err = b.joint(ctx, c, f, r)
	case jointF1:
		err = b.f1(ctx, c, f, r)
	case twoCores:
		err = b.cores(ctx, c, f, r)
	case docs:
		err = b.predict(ctx, c, f, r)
	case memory:
		err = b.memory(ctx, c, f, r)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	r.summarise()
	return r, nil
}

func (r *result) summarise() {
	s := slices.Clone(r.Figures)
	slices.Sort(s)
	r.Min, r.Max, r.Median = s[0], s[len(s)-1], s[len(s)/2]
	if len(s)%2 == 0 {
		r.Median = (s[len(s)/2-1] + s[len(s)/2]) / 2
	}
}

// train runs taxon train on the files of one side.
func (b *bench) train(ctx context.Context, f *files, c claim, gap float64, flags ...string) (*drive.Report, error) {
	args := append([]string{"--gap", strconv.FormatFloat(gap, 'g', -1, 64)}, c.args...)
	if c.loss != "logistic" { // logistic methods imply their loss
		args = append(args, "--loss", c.loss)
	}
	if !slices.Contains(args, "--threads") && !slices.Contains(flags, "--threads") {
		args = append(args, "--threads", "1")
	}
	r, err := b.taxon.TrainFiles(ctx, drive.Files{Train: f.train, Test: f.test, Tree: f.tree}, append(args, flags...)...)
	if err == nil && *r.Gap > gap {
		err = fmt.Errorf("taxon stopped at gap %.3g, %.3g was asked for (stopped by %s)", *r.Gap, gap, r.StoppedBy)
	}
	return r, err
}

// flat compares training times of the flat problem. The peer's gap is measured: its weights have an
// objective P, and a more accurate solve of ours has an objective P' that is at least the optimum,
// so its gap is at least (P-P')/P. Our timed runs certify this gap or a smaller one.
func (b *bench) flat(ctx context.Context, c claim, f *files, r *result) error {
	method := map[string]string{"logistic": "blr", "crammer-singer": "msvm"}[c.loss]
	if method == "" {
		method = "bsvm"
	}
	c.args = append([]string{"--method", method}, c.args...)
	f.tree = ""
	reference := math.Inf(1)
	for range b.runs {
		p, err := b.peer(ctx, c, f)
		if err != nil {
			return err
		}
		if math.IsInf(reference, 1) {
			if reference, err = b.reference(ctx, c, f, p.Objective); err != nil {
				return err
			}
		}
		gap := (p.Objective - reference) / p.Objective
		ours, err := b.train(ctx, f, c, gap)
		if err != nil {
			return err
		}
		r.add(pair{Ours: ours.CPUSeconds, Peer: p.CPUSeconds, OursGap: *ours.Gap, PeerGap: gap}, p.CPUSeconds/ours.CPUSeconds)
		b.say("  %s %.2f s at gap >= %.2g, ours %.2f s at gap %.2g: %.2f", c.peer, p.CPUSeconds, gap, ours.CPUSeconds,
			*ours.Gap, p.CPUSeconds/ours.CPUSeconds)
	}
	r.Note = fmt.Sprintf("gap %.2g, %s %.1f s", r.Runs[0].OursGap, c.peer, r.Runs[0].Peer)
	return nil
}

// reference returns the objective of a solve that is clearly more accurate than the peer's.
func (b *bench) reference(ctx context.Context, c claim, f *files, peer float64) (float64, error) {
	for gap := 1e-3; gap > 3e-8; gap /= 10 {
		r, err := b.train(ctx, f, c, gap)
		if err != nil {
			return 0, err
		}
		if left := (peer - r.Objective) / peer; left > 5*gap {
			return r.Objective, nil
		}
	}
	return 0, errors.New("the peer's weights are as good as ours at gap 1e-7: nothing to compare at")
}

func (r *result) add(p pair, figure float64) {
	r.Runs = append(r.Runs, p)
	r.Figures = append(r.Figures, figure)
}

func (b *bench) joint(ctx context.Context, c claim, f *files, r *result) error {
	for range b.runs {
		p, err := b.peer(ctx, c, f)
		if err != nil {
			return err
		}
		ours, err := b.train(ctx, f, c, c.gap)
		if err != nil {
			return err
		}
		r.add(pair{Ours: ours.CPUSeconds, Peer: p.CPUSeconds, OursGap: *ours.Gap}, ours.CPUSeconds/p.CPUSeconds)
		b.say("  ours %.2f s to gap %.2g in %d sweeps, %s's flat %.2f s: %.3f", ours.CPUSeconds, *ours.Gap, ours.Sweeps,
			c.peer, p.CPUSeconds, ours.CPUSeconds/p.CPUSeconds)
		r.Note = fmt.Sprintf("%d sweeps, %.1f s", ours.Sweeps, ours.CPUSeconds)
	}
	return nil
}

// f1 first finds the loosest gap whose scores are within 0.3 points of those of a converged
// training, then times a training to that gap.
func (b *bench) f1(ctx context.Context, c claim, f *files, r *result) error {
	final, err := b.train(ctx, f, c, 1e-3)
	if err != nil {
		return err
	}
	gap := 1e-3
	for _, g := range []float64{1, 0.5, 0.2, 0.1, 0.07, 0.05, 0.04, 0.03, 0.02, 0.01, 0.005} {
		t, err := b.train(ctx, f, c, g)
		if err != nil {
			return err
		}
		if t.Test.MicroF1 >= final.Test.MicroF1-0.003 && t.Test.MacroF1 >= final.Test.MacroF1-0.003 {
			gap = g
			break
		}
	}
	b.say("  gap %.2g: within 0.3 points of %.1f / %.1f", gap, 100*final.Test.MicroF1, 100*final.Test.MacroF1)
	for range b.runs {
		p, err := b.peer(ctx, c, f)
		if err != nil {
			return err
		}
		ours, err := b.train(ctx, f, c, gap)
		if err != nil {
			return err
		}
		r.add(pair{Ours: ours.CPUSeconds, Peer: p.CPUSeconds, OursGap: *ours.Gap}, ours.CPUSeconds/p.CPUSeconds)
		r.Note = fmt.Sprintf("F1 %.1f / %.1f, %s %.1f / %.1f", 100*ours.Test.MicroF1, 100*ours.Test.MacroF1, c.peer,
			100*p.MicroF1, 100*p.MacroF1)
		b.say("  ours %.2f s, %s %.2f s: %.2f; %s", ours.CPUSeconds, c.peer, p.CPUSeconds, ours.CPUSeconds/p.CPUSeconds,
			r.Note)
	}
	return nil
}

func (b *bench) cores(ctx context.Context, c claim, f *files, r *result) error {
	for range b.runs {
		one, err := b.train(ctx, f, c, c.gap)
		if err != nil {
			return err
		}
		two, err := b.train(ctx, f, c, c.gap, "--threads", "2")
		if err != nil {
			return err
		}
		r.add(pair{Ours: two.Seconds, Peer: one.Seconds}, one.Seconds/two.Seconds)
		b.say("  1 thread %.2f s (%.2f s CPU), 2 threads %.2f s (%.2f s CPU): %.2f", one.Seconds, one.CPUSeconds, two.Seconds,
			two.CPUSeconds, one.Seconds/two.Seconds)
		r.Note = fmt.Sprintf("%.1f s on one", one.Seconds)
	}
	return nil
}

// predictCopies is the number of times that the longer of two runs predicts the test data. The
// shorter run predicts them once, so that start and model loading cancel out.
const predictCopies = 20

func (b *bench) predict(ctx context.Context, c claim, f *files, r *result) error {
	model, full := filepath.Join(b.dir, "model"), filepath.Join(b.dir, "full")
	flags := append([]string{"--loss", c.loss, "--gap", strconv.FormatFloat(c.gap, 'g', -1, 64), "--threads", "1"},
		c.args...)
	trained, err := b.taxon.TrainTo(ctx, full, drive.Files{Train: f.train, Test: f.test}, flags...)
	if err != nil {
		return err
	}
	defer os.RemoveAll(model)
	defer os.RemoveAll(full)
	micro, bytes, err := b.prune(ctx, full, model, f.test)
	if err != nil {
		return err
	}
	many := filepath.Join(b.dir, c.set+".many")
	lines, err := repeatFile(f.test, many, predictCopies)
	if err != nil {
		return err
	}
	defer os.Remove(many)
	for range b.runs {
		p, err := b.peer(ctx, c, f)
		if err != nil {
			return err
		}
		short, err := b.taxon.CPU(ctx, "predict", "--model", model, "--data", f.test, "--out", os.DevNull, "--top", "5",
			"--threads", "1", "--quiet")
		if err != nil {
			return err
		}
		long, err := b.taxon.CPU(ctx, "predict", "--model", model, "--data", many, "--out", os.DevNull, "--top", "5",
			"--threads", "1", "--quiet")
		if err != nil {
			return err
		}
		rate := float64(lines) * (predictCopies - 1) / (long - short)
		r.add(pair{Ours: rate, Peer: p.Docs}, rate)
		r.Note = fmt.Sprintf("model %.1f MB, micro F1 %.2f (unpruned %.2f); %s %.0f documents/s, %.1f MB, %.2f",
			float64(bytes)/1e6, 100*micro,
			100*trained.Test.MicroF1, c.peer, p.Docs, float64(p.ModelBytes)/1e6, 100*p.MicroF1)
		b.say("  %.0f documents/s, text parsed; %s", rate, r.Note)
	}
	return nil
}

// prune writes a model without the weights that micro F1 does not need, within 0.1 points on the
// test data, and returns its F1 and size.
func (b *bench) prune(ctx context.Context, full, model, test string) (micro float64, bytes int64, err error) {
	if _, err := b.taxon.Output(ctx, "export", "--model", full, "--format", "model", "--threshold", "auto", "--data", test,
		"--out", model, "--quiet"); err != nil {
		return 0, 0, err
	}
	out, err := b.taxon.Output(ctx, "eval", "--model", model, "--data", test, "--json", "--quiet")
	if err != nil {
		return 0, 0, err
	}
	var e struct {
		MicroF1 float64 `json:"micro_f1"`
	}
	if err := json.Unmarshal(out, &e); err != nil {
		return 0, 0, fmt.Errorf("taxon eval --json: %w", err)
	}
	bytes, err = drive.Size(model)
	return e.MicroF1, bytes, err
}

func (b *bench) memory(ctx context.Context, c claim, f *files, r *result) error {
	for range b.runs {
		t, err := b.train(ctx, f, c, c.gap)
		if err != nil {
			return err
		}
		mb := float64(t.PeakRSSBytes) / 1e6
		r.add(pair{Ours: mb}, mb)
		r.Note = fmt.Sprintf("%.0f s, gap %.2g, %d sweeps", t.Seconds, *t.Gap, t.Sweeps)
		b.say("  %.0f MB, %s", mb, r.Note)
	}
	return nil
}

// peer runs one peer on one core.
func (b *bench) peer(ctx context.Context, c claim, f *files) (*peerReport, error) {
	cmd := exec.CommandContext(ctx, b.python, b.script, c.peer, f.train, "--test", f.test, "--loss", c.loss)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "RAYON_NUM_THREADS=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", c.peer, err, lastLine(errs.String()))
	}
	p := &peerReport{}
	if err := json.Unmarshal([]byte(lastLine(out.String())), p); err != nil {
		return nil, fmt.Errorf("%s: %w", c.peer, err)
	}
	return p, nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
