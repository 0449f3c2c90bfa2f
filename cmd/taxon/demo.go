package main

import (
	"bytes"
	"context"
	"errors"
	iofs "io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/demo"
	"taxon/internal/fs"
	"taxon/internal/model"
)

// The two methods that the demo sets side by side: blind to the hierarchy, and with it.
const (
	demoFlat = "bsvm"
	demoTree = "rr-svm"
)

// Files of a kept demo; the models lie in folders named after their methods.
const (
	demoTrainFile     = "train.txt"
	demoTestFile      = "test.txt"
	demoHierarchyFile = "hierarchy.txt"
	demoNoticeFile    = "LICENSE.wordnet"
)

// demoRun is one training that the demo asks for.
type demoRun struct {
	Method    string
	Data      string // labelled text
	Hierarchy string
	Out       string // model to make; one that is there, whole and of the same data and options, is kept
	Gap       float64
	Threads   int // 0: all cores
}

// demoTrain trains as the verb train does: progress to a.ui, nothing on stdout.
type demoTrain func(ctx context.Context, a *app, run demoRun) (*model.Report, error)

type demoOptions struct {
	keep    string
	gap     float64
	threads int
}

// newDemoCmd builds the demo over train; the other parts of it need no wiring.
func newDemoCmd(a *app, train demoTrain) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:     "demo",
		GroupID: groupStart,
		Short:   "train with and without a hierarchy on text inside this binary, and compare",
		Long: "Trains two classifiers on real text that ships inside this binary (WordNet's glosses of animals, food and " +
			"artifacts: some 8,000 documents, 500 classes, a hierarchy of 18 levels), one blind to the hierarchy (bsvm) and " +
			"one regularised along it (rr-svm), tests both on documents that neither has seen, and shows what the " +
			"hierarchy gained. It takes less than a minute on two cores and leaves nothing behind unless --keep names a folder.",
		Example: "taxon demo\ntaxon demo --keep demo",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), a, o, train)
		},
	}
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVar(&o.keep, "keep", "", "`DIR` that keeps the texts, the hierarchy and both models")
	})
	flagGroup(cmd, "Training", func(f *pflag.FlagSet) {
		floatFlag(f, &o.gap, "gap", 1e-2, "stop when no weights could lower the objective by more than this share, the certified relative gap", above0to1)
		intFlag(f, &o.threads, "threads", 0, 0, math.MaxInt, "`N` threads, 0 for all cores")
	})
	return cmd
}

// runDemo trains, tests and reports. The report is the same on every machine but for
// the seconds.
func runDemo(ctx context.Context, a *app, o demoOptions, train demoTrain) error {
	trainText, testText, hierarchy, notice, err := demo.Files()
	if err != nil {
		return err
	}
	dir, done, err := demoFolder(o.keep)
	if err != nil {
		return err
	}
	defer done()
	if err := keepFiles(dir, []demoFile{{demoTrainFile, trainText}, {demoTestFile, testText}, {demoHierarchyFile, hierarchy}, {demoNoticeFile, []byte(notice)}}); err != nil {
		return err
	}
	r := &demoReport{Keep: o.keep, Licence: demo.Credit(notice)}
	if err := r.describe(trainText, testText, hierarchy); err != nil {
		return err
	}
	if !a.json {
		r.printHead(a.stdout, a.style)
	}
	for i, method := range []string{demoFlat, demoTree} {
		a.ui.Note("training %s (%d of 2)", method, i+1)
		rep, err := train(ctx, a, demoRun{
			Method: method, Data: filepath.Join(dir, demoTrainFile), Hierarchy: filepath.Join(dir, demoHierarchyFile),
			Out: filepath.Join(dir, method), Gap: o.gap, Threads: o.threads,
		})
		if err != nil {
			return err
		}
		r.Runs = append(r.Runs, demoTrained{Method: method, Report: rep})
	}
	if err := r.evaluate(ctx, dir, testText, o.threads); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	r.printBody(a.stdout, a.style)
	return nil
}

// demoFolder is the folder to work in: keep, or a temporary one that done removes. A keep
// that was made and is empty again goes as well.
func demoFolder(keep string) (dir string, done func(), err error) {
	if keep == "" {
		dir, err = os.MkdirTemp("", "taxon-demo-")
		return dir, func() { os.RemoveAll(dir) }, err
	}
	done, err = fs.MakeParents(filepath.Join(keep, demoTrainFile))
	return keep, done, fs.Explain(keep, err)
}

// demoFile is a file of a kept demo.
type demoFile struct {
	name string
	text []byte
}

// keepFiles writes the demo's files, or none of them.
func keepFiles(dir string, files []demoFile) (err error) {
	var made []string
	defer func() {
		for _, path := range made {
			if err != nil {
				os.Remove(path)
			}
		}
	}()
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		old, err := os.ReadFile(path)
		switch {
		case err == nil && bytes.Equal(old, f.text):
			continue
		case err == nil: // other content is the user's and stays
			return usagef("%s: exists already and is not the demo's: choose another folder for --keep", path)
		case !errors.Is(err, iofs.ErrNotExist):
			return fs.Explain(path, err)
		}
		if err := fs.WriteFile(path, f.text); err != nil {
			return err
		}
		made = append(made, path)
	}
	return nil
}
