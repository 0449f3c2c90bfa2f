// Command papers reproduces the tables and figures of the seed papers on the available data. The
// papers' own figures follow ours in brackets:
//
//	TAXON_DATA=DIR go run ./test/papers                   C is 1 where a row names none
//	TAXON_DATA=DIR go run ./test/papers -tune -work DIR   C by cross-validation: days, which the same command continues
//	TAXON_DATA=DIR go run ./test/papers -paper JMLR -table "Table 2" -plots docs
//
// DIR has a folder for each data set, with train.svm.xz, test.svm.xz and hierarchy.txt.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	r := &runner{log: os.Stderr, data: os.Getenv("TAXON_DATA")}
	var paper, name string
	flag.BoolVar(&r.tune, "tune", false, "choose C by cross-validation")
	flag.IntVar(&r.folds, "folds", 5, "folds of the cross-validation")
	flag.IntVar(&r.seconds, "max-time", 600, "seconds of a training at most, those of the cross-validation too; 0: no cap")
	flag.BoolVar(&r.long, "long", false, "also what takes hours by itself")
	flag.StringVar(&r.work, "work", "", "keep models and searches in this folder, and go on from what is there")
	flag.StringVar(&r.plots, "plots", "", "draw the papers' figures into this folder")
	flag.StringVar(&r.program, "taxon", "", "this program instead of one built from ./cmd/taxon")
	flag.StringVar(&paper, "paper", "", "only of this paper: TKDD, NIPS, KDD, OT, JMLR")
	flag.StringVar(&name, "table", "", "only tables whose heading has these words")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := r.run(ctx, paper, name); err != nil {
		fmt.Fprintln(os.Stderr, "papers:", err)
		os.Exit(1)
	}
}

func (r *runner) run(ctx context.Context, paper, name string) error {
	if r.data == "" {
		return errors.New("set TAXON_DATA to the folder of the data sets")
	}
	if r.tune && r.folds < 2 {
		return fmt.Errorf("-folds %d: at least 2", r.folds)
	}
	wanted := func(of, heading string) bool {
		return (paper == "" || strings.Contains(of, "["+paper+"]")) && strings.Contains(heading, name)
	}
	var headings []string
	for _, t := range tables {
		headings = append(headings, t.heading())
	}
	for _, f := range figures {
		headings = append(headings, f.heading())
	}
	if !slices.ContainsFunc(headings, func(h string) bool { return wanted(h, h) }) {
		return fmt.Errorf("no table or figure is of -paper %q and -table %q; there are:\n%s", paper, name,
			strings.Join(headings, "\n"))
	}
	scratch, err := os.MkdirTemp("", "papers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if r.work == "" {
		r.work = scratch
	}
	if r.program == "" {
		r.program = filepath.Join(scratch, "taxon")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", r.program, "./cmd/taxon").CombinedOutput(); err != nil {
			return fmt.Errorf("build cmd/taxon: %w\n%s", err, out)
		}
	}
	for _, t := range tables {
		if !wanted(t.name, t.heading()) {
			continue
		}
		if err := r.table(ctx, os.Stdout, &t); err != nil {
			return fmt.Errorf("%s: %w", t.heading(), err)
		}
	}
	if r.plots == "" {
		return nil
	}
	for _, f := range figures {
		if h := f.heading(); wanted(h, h) {
			if err := f.draw(ctx, r, f.data, filepath.Join(r.plots, f.file)); err != nil {
				return fmt.Errorf("%s: %w", h, err)
			}
		}
	}
	return nil
}
