// Command warm measures how much `taxon train --warm-start` saves compared with training from
// nothing to the same certified gap, after C, the documents, the classes or the tree have changed.
//
//	go run ./test/bench/warm -data DIR [-sets clef,news20] [-methods 'rr-svm,rr-svm squared-hinge,rr-lr'] [-gap 1e-2] [-runs 3]
//
// The initial model is trained with C = 1 on the earlier data: nine tenths of the documents, nine
// tenths of the classes (at least one is missing), a tree in which every tenth node was elsewhere,
// below its grandparent, or one that lacks every third class or every third internal node. Both
// sides train on the present data, in turns. CPU seconds are medians, without ingest, and include
// reading the model. Each side's certificate must hold for the other's objective.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"taxon/test/bench/drive"
)

// trees names the file of each set's structure. If a set has two structures, it names the tree.
var trees = map[string]string{"clef": "hierarchy.txt", "news20": "hierarchy.txt", "wordnet-freq": "tree.txt"}

func main() {
	b := &bench{}
	flag.StringVar(&b.data, "data", os.Getenv("TAXON_DATA"), "`folder` of the data sets (default $TAXON_DATA)")
	sets := flag.String("sets", "clef,news20", "data sets within it: clef, news20, wordnet-freq")
	methods := flag.String("methods", "rr-svm,rr-svm squared-hinge,rr-lr,bsvm", "methods of training, and their losses "+
		"where others than the default")
	flag.StringVar(&b.gap, "gap", "1e-2", "relative gap of all trainings")
	flag.IntVar(&b.runs, "runs", 3, "times each side is run, taking turns")
	binary := flag.String("binary", "", "taxon's `binary` (default: built)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.run(ctx, *binary, strings.Split(*sets, ","), strings.Split(*methods, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "warm:", err)
		os.Exit(1)
	}
}

// bench is one run. Its temporary files are in dir.
type bench struct {
	data, gap, dir string
	runs           int
	*drive.Driver
}

func (b *bench) run(ctx context.Context, binary string, sets, methods []string) (err error) {
	if b.data == "" || b.runs < 1 {
		return errors.New("name the data with -data DIR or TAXON_DATA=DIR, and at least one run")
	}
	for _, s := range sets {
		if trees[s] == "" {
			return fmt.Errorf("-sets %s: not one of clef, news20, wordnet-freq", s)
		}
	}
	if b.dir, err = os.MkdirTemp("", "taxon-warm-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if b.Driver, err = drive.NewFrom(ctx, binary); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	head := []string{"set", "method", "changed", "from nothing: sweeps", "CPU s", "warm: sweeps", "CPU s", "saved"}
	drive.Row(head...)
	drive.Rule(len(head))
	for _, s := range sets {
		if err := b.set(ctx, s, methods); err != nil {
			return err
		}
	}
	return nil
}

// set prints a data set's rows.
func (b *bench) set(ctx context.Context, name string, methods []string) error {
	now := drive.Files{
		Train: filepath.Join(b.data, name, "train.svm.xz"), Test: filepath.Join(b.data, name, "test.svm.xz"),
		Tree: filepath.Join(b.data, name, trees[name]),
	}
	changes, err := b.changes(ctx, now)
	if err != nil {
		return err
	}
	for _, m := range methods {
		method := methodFlags(m)
		made := map[drive.Files]string{} // initial models
		for _, c := range changes {
			if c.before.Tree != now.Tree && flat(m) {
				continue // the method does not use what has changed
			}
			model, ok := made[c.before]
			if !ok {
				model = filepath.Join(b.dir, fmt.Sprint("model", len(made)))
				made[c.before] = model
				if _, err := b.TrainTo(ctx, model, c.before, append(method, "--gap", b.gap, "--cutoff", "none")...); err != nil {
					return err
				}
			}
			if err := b.row(ctx, name, m, c, now, model); err != nil {
				return err
			}
		}
	}
	return nil
}

// flat reports whether a method trains each class independently.
func flat(m string) bool { return strings.HasPrefix(m, "b") }

// methodFlags returns the flags for `METHOD` or `METHOD LOSS`.
func methodFlags(m string) []string {
	method, loss, ok := strings.Cut(m, " ")
	if !ok {
		return []string{"--method", method}
	}
	return []string{"--method", method, "--loss", loss}
}

// row measures both sides in turns.
func (b *bench) row(ctx context.Context, set, method string, c change, now drive.Files, model string) error {
	flags := slices.Concat(methodFlags(method), []string{"--gap", b.gap, "--cutoff", "none"}, c.flags)
	var cold, warm []*drive.Report
	for range b.runs {
		r, err := b.TrainFiles(ctx, now, flags...)
		if err != nil {
			return err
		}
		w, err := b.TrainFiles(ctx, now, append(slices.Clone(flags), "--warm-start", model)...)
		if err != nil {
			return err
		}
		if w.Objective < lowest(r) || r.Objective < lowest(w) {
			return fmt.Errorf("%s, %s, %s: objectives %g and %g with gaps %g and %g: not one optimum", set, method, c.name,
				r.Objective, w.Objective, *r.Gap, *w.Gap)
		}
		cold, warm = append(cold, r), append(warm, w)
	}
	from, to := median(cold), median(warm)
	drive.Row(set, method, c.name, fmt.Sprint(cold[0].Sweeps), fmt.Sprintf("%.2f", from), fmt.Sprint(warm[0].Sweeps),
		fmt.Sprintf("%.2f", to),
		fmt.Sprintf("%.0f %%", 100*(1-to/from)))
	return nil
}

// lowest returns the dual, below which no weights' objective is.
func lowest(r *drive.Report) float64 { return r.Objective * (1 - *r.Gap) }

func median(rs []*drive.Report) float64 {
	var cpu []float64
	for _, r := range rs {
		cpu = append(cpu, r.CPUSeconds)
	}
	slices.Sort(cpu)
	return (cpu[(len(cpu)-1)/2] + cpu[len(cpu)/2]) / 2
}
