// Command accuracy prints the table of tuned results. On each data set it compares the model of a
// single command (taxon tune --time 10m) with the best results of other programs and with the best
// ones known from long searches, on the test data. With -each it also searches the options of each
// method over a grid, trains by the resulting job file, and compares the model with the
// one-versus-rest model of the same loss. hblr methods have nothing to search; they are compared
// with the tuned rr-lr or, without a structure, with blr.
//
//	go run ./test/bench/accuracy -data DIR [-sets clef,news20] [-time 10m] [-each] [-methods rr-svm] [-keep DIR]
//
// With -keep, searches and models stay in that folder, and an interrupted run is resumed there. The
// table also has a baseline: nearest centroid.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"taxon/test/bench/drive"
)

func main() {
	data := flag.String("data", os.Getenv("TAXON_DATA"), "`folder` of the data sets (default $TAXON_DATA)")
	sets := flag.String("sets", "clef,news20,enron,proteins_go,wordnet-freq,wordnet", "data sets within it")
	methods := flag.String("methods", "", "only rows whose name contains this `text`")
	goal := flag.String("goal", "micro", "`measure` that the options are chosen by")
	each := flag.Bool("each", false, "search each method for itself, too, over a grid, and test it against the flat one "+
		"of its loss (hours)")
	limit := flag.String("time", "10m", "`time` of the one command for each set")
	keep := flag.String("keep", "", "`folder` to keep searches and models in, and to go on in")
	binary := flag.String("binary", "", "taxon's `binary` (default: built)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := &bench{data: *data, goal: *goal, only: *methods, keep: *keep, each: *each, time: *limit}
	if err := b.run(ctx, *binary, strings.Split(*sets, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	data, goal, only, keep, time string
	each                         bool
	*drive.Driver
}

func (b *bench) run(ctx context.Context, binary string, sets []string) (err error) {
	if b.data == "" {
		return errors.New("name the data with -data DIR or TAXON_DATA=DIR")
	}
	var chosen []study
	for _, name := range sets {
		i := slices.IndexFunc(studies, func(s study) bool { return s.set == name })
		if i < 0 {
			return fmt.Errorf("-sets %s: not one of clef, news20, enron, proteins_go, wordnet-freq, wordnet", name)
		}
		chosen = append(chosen, studies[i])
	}
	if b.keep == "" {
		if b.keep, err = os.MkdirTemp("", "taxon-accuracy-"); err != nil {
			return err
		}
		defer os.RemoveAll(b.keep)
	}
	if b.Driver, err = drive.NewFrom(ctx, binary); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	head := []string{"set", "method", "chosen", "search CPU s", "train CPU s", "gap", "micro F1", "macro F1", "P@1",
		"log-loss", "ECE", "macro F1 by size", "sign test", "Wilcoxon"}
	drive.Row(head...)
	drive.Rule(len(head))
	for _, s := range chosen {
		if err := b.study(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// study prints the rows of a data set.
func (b *bench) study(ctx context.Context, s study) error {
	dir := filepath.Join(b.data, s.set)
	if b.only == "" {
		c, err := centroid(ctx, dir)
		if err != nil {
			return err
		}
		drive.Row(s.set, "nearest centroid", "", "", "", "", percent(c.MicroF1), percent(c.MacroF1), percent(c.Ranking.P1),
			"", "", "", "", "")
	}
	if b.only == "" {
		if err := b.command(ctx, s); err != nil {
			return err
		}
	}
	for _, m := range s.methods {
		if !b.each && b.only == "" || !strings.Contains(m.name, b.only) {
			continue
		}
		if err := b.row(ctx, s, m); err != nil {
			// a method may be refused because of its memory: its row then says so
			if ctx.Err() != nil {
				return err
			}
			text := strings.Join(strings.Fields(err.Error()), " ")
			drive.Row(s.set, m.name, text[strings.LastIndex(text, "taxon: ")+len("taxon: "):], "", "", "", "", "", "", "", "",
				"", "", "")
		}
	}
	if s.peers != "" && b.only == "" {
		drive.Row(s.set, "others: "+s.peers, "", "", "", "", "", "", "", "", "", "", "", "")
	}
	return nil
}

// tuned is the part of the output of tune --json that is used.
type tuned struct {
	JobFile string  `json:"job_file"`
	CPU     float64 `json:"cpu_seconds"`
	Options struct {
		C        float64 `json:"C"`
		Positive string  `json:"positive_weight"`
		Internal float64 `json:"internal_weight"`
		Shift    float64 `json:"prior_shift"`
	} `json:"options"`
}

// point describes the chosen options or, without a search, the given ones.
func (t *tuned) point(m method) string {
	switch {
	case m.learns:
		return "-"
	case t.JobFile == "":
		return strings.Join(m.flags, " ") + ", not tuned"
	}
	text := fmt.Sprintf("C %g", t.Options.C)
	if t.Options.Positive != "1" {
		text += ", positives " + t.Options.Positive
	}
	if t.Options.Internal > 0 && t.Options.Internal != 1 {
		text += fmt.Sprintf(", internal %g", t.Options.Internal)
	}
	if t.Options.Shift != 0 {
		text += fmt.Sprintf(", shift %g", t.Options.Shift)
	}
	return text
}

func (t *tuned) cost() string {
	if t.JobFile == "" {
		return "-"
	}
	return fmt.Sprintf("%.0f", t.CPU)
}

// report is the part of the output of train --json that is used.
type report struct {
	CPUSeconds float64  `json:"cpu_seconds"`
	Gap        *float64 `json:"gap"`
}

func (r *report) gap() string {
	if r.Gap == nil {
		return "-"
	}
	return fmt.Sprintf("%.1e", *r.Gap)
}

// measured is the part of the output of eval --json --compare that is used.
type measured struct {
	MicroF1 float64 `json:"micro_f1"`
	MacroF1 float64 `json:"macro_f1"`
	PAt1    float64 `json:"p@1"`
	Sign    *test   `json:"sign_test"`
	Rank    *test   `json:"wilcoxon"`

	LogLoss *float64 `json:"log_loss"`
	ECE     *float64 `json:"ece"`
	BySize  []struct {
		From    int     `json:"from"`
		MacroF1 float64 `json:"macro_f1"`
	} `json:"by_size"`
}

// probability formats a figure about probabilities, which not all models have.
func probability(x *float64) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("%.3f", *x)
}

// sizes formats the macro F1 of classes grouped by their number of training instances.
func (e *measured) sizes() string {
	var out []string
	for _, s := range e.BySize {
		out = append(out, fmt.Sprintf("%d: %s", s.From, percent(s.MacroF1)))
	}
	return strings.Join(out, ", ")
}

type test struct {
	P float64 `json:"p"`
}

func (t *test) String() string {
	switch {
	case t == nil:
		return ""
	case t.P < 1e-4:
		return "< 1e-4"
	}
	return fmt.Sprintf("%.2g", t.P)
}

func percent(x float64) string { return fmt.Sprintf("%.1f", 100*x) }

// command prints the row of the single command, `taxon tune --time` without other options. Its
// regret is the difference from the best result known from long searches.
func (b *bench) command(ctx context.Context, s study) error {
	dir := filepath.Join(b.data, s.set)
	if err := os.MkdirAll(filepath.Join(b.keep, s.set), 0o777); err != nil {
		return err
	}
	began, t := time.Now(), &struct {
		Model   string
		Report  report
		Options map[string]any
	}{}
	err := b.json(ctx, t, "tune", "--data", filepath.Join(dir, "train.svm.xz"), s.structure[0],
		filepath.Join(dir, s.structure[1]),
		"--time", b.time, "--goal", b.goal, "--out", b.place(s, "tune-"+b.time, "search"))
	if err != nil {
		return err
	}
	took, e := time.Since(began), &measured{}
	if err := b.json(ctx, e, "eval", "--model", t.Model, "--by-size", "--data",
		filepath.Join(dir, "test.svm.xz")); err != nil {
		return err
	}
	var chosen []string
	for _, key := range slices.Sorted(maps.Keys(t.Options)) {
		chosen = append(chosen, fmt.Sprintf("%s %v", key, t.Options[key]))
	}
	name := fmt.Sprintf("tune --time %s, took %.0f s", b.time, took.Seconds())
	if b.goal == "micro" || b.goal == "micro_f1" {
		name += fmt.Sprintf("; regret %.1f of %.1f", s.known-100*e.MicroF1, s.known)
	}
	drive.Row(s.set, name, strings.Join(chosen, ", "), "", fmt.Sprintf("%.1f", t.Report.CPUSeconds), t.Report.gap(),
		percent(e.MicroF1), percent(e.MacroF1), percent(e.PAt1), probability(e.LogLoss), probability(e.ECE), e.sizes(), "",
		"")
	return nil
}

// row searches, trains and measures one method.
func (b *bench) row(ctx context.Context, s study, m method) error {
	dir := filepath.Join(b.data, s.set)
	if err := os.MkdirAll(filepath.Join(b.keep, s.set), 0o777); err != nil {
		return err
	}
	input := []string{"--data", filepath.Join(dir, "train.svm.xz")}
	if !m.flat {
		input = append(input, s.structure[0], filepath.Join(dir, s.structure[1]))
	}
	// too large for a search: only the given point is trained
	t, train := &tuned{}, slices.Concat(input, m.flags, []string{"--goal", b.goal})
	if s.folds != nil && !m.learns {
		if err := b.json(ctx, t, slices.Concat([]string{"tune", "--no-train", "--out", b.place(s, m.name, "search"), "--goal",
			b.goal}, input, m.flags, s.folds)...); err != nil {
			return err
		}
		train = []string{"--job", t.JobFile}
	}
	accuracy := []string{"--gap", s.gap}
	if m.learns { // it is trained to its own tolerance
		accuracy = nil
	}
	r := &report{}
	if err := b.json(ctx, r, slices.Concat([]string{"train", "--out", b.place(s, m.name, "model")}, accuracy,
		train)...); err != nil {
		return err
	}
	eval := []string{"eval", "--model", b.place(s, m.name, "model"), "--by-size", "--data",
		filepath.Join(dir, "test.svm.xz")}
	if bar := b.place(s, m.bar, "model"); m.bar != "" {
		if _, err := os.Stat(bar); err == nil {
			eval = append(eval, "--compare", bar)
		}
	}
	e := &measured{}
	if err := b.json(ctx, e, eval...); err != nil {
		return err
	}
	drive.Row(s.set, m.name, t.point(m), t.cost(), fmt.Sprintf("%.1f", r.CPUSeconds), r.gap(), percent(e.MicroF1),
		percent(e.MacroF1), percent(e.PAt1), probability(e.LogLoss), probability(e.ECE), e.sizes(), e.Sign.String(),
		e.Rank.String())
	return nil
}

// place returns the path of a search or model.
func (b *bench) place(s study, name, kind string) string {
	return filepath.Join(b.keep, s.set, strings.ReplaceAll(name, " ", "-")+"-by-"+b.goal+"."+kind)
}

// json runs a verb and decodes its output.
func (b *bench) json(ctx context.Context, into any, args ...string) error {
	out, err := b.Output(ctx, append(args, "--quiet", "--json")...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("taxon %s --json: %w", args[0], err)
	}
	return nil
}
