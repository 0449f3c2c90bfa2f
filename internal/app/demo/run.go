package demo

import (
	"bytes"
	"context"
	"errors"
	iofs "io/fs"
	"path/filepath"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/model"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
)

// These are the methods that the demo compares: one without the hierarchy, one with it.
const (
	flatMethod = "bsvm"
	treeMethod = "rr-svm"
)

// These are the files of a demo that is kept. Each model is in a folder named after its method.
const (
	trainFile     = "train.txt"
	testFile      = "test.txt"
	hierarchyFile = "hierarchy.txt"
	noticeFile    = "LICENSE.wordnet"
)

// Training describes one training of the demo.
type Training struct {
	Method string
	// Data is a file of labelled text.
	Data      string
	Hierarchy string
	// Out is the folder of the model. A complete model there with the same data and options is
	// kept.
	Out string
	Gap float64
	// Threads is the number of threads. Zero means all cores.
	Threads int
}

// Options configure the demo.
type Options struct {
	// Keep is the folder for texts, hierarchy and models. If it is empty, a temporary folder is
	// used.
	Keep string
	// Gap is the relative duality gap at which the trainings end.
	Gap float64
	// Threads is the number of threads. Zero means all cores.
	Threads int
	// Train runs a training as the verb train does.
	Train func(context.Context, Training) (*model.Report, error)
	// Began is called before the work starts, with the counts filled in. It may be nil.
	Began func(*Report)
}

// Run trains and tests the models and returns the report. Except for times it is the same on every
// machine.
func Run(ctx context.Context, o Options, ui progress.Reporter) (*Report, error) {
	train, test, hierarchy, notice, err := Files()
	if err != nil {
		return nil, err
	}
	dir, done, err := folder(o.Keep)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := keepFiles(dir, []file{{trainFile, train}, {testFile, test}, {hierarchyFile, hierarchy},
		{noticeFile, []byte(notice)}}); err != nil {
		return nil, err
	}
	r := &Report{Keep: o.Keep, Licence: Credit(notice)}
	if err := r.describe(train, test, hierarchy); err != nil {
		return nil, err
	}
	if o.Began != nil {
		o.Began(r)
	}
	for i, method := range []string{flatMethod, treeMethod} {
		ui.Note("training %s (%d of 2)", method, i+1)
		rep, err := o.Train(ctx, Training{
			Method: method, Data: filepath.Join(dir, trainFile), Hierarchy: filepath.Join(dir, hierarchyFile),
			Out: filepath.Join(dir, method), Gap: o.Gap, Threads: o.Threads,
		})
		if err != nil {
			return nil, err
		}
		r.Runs = append(r.Runs, Trained{Method: method, Report: rep})
	}
	return r, r.evaluate(ctx, dir, o.Threads)
}

// folder returns the folder to work in: keep, or a temporary one. The function done removes a
// temporary folder, and also keep if it was created here and is empty.
func folder(keep string) (dir string, done func(), err error) {
	if keep == "" {
		return fs.TempDir("demo")
	}
	done, err = fs.MakeParents(filepath.Join(keep, trainFile))
	return keep, done, fs.Explain(keep, err)
}

// file is a file of a kept demo.
type file struct {
	name string
	text []byte
}

// keepFiles writes the demo's files. If it fails, it leaves none of them.
func keepFiles(dir string, files []file) (err error) {
	var made []string
	defer func() {
		for _, path := range made {
			if err != nil {
				fs.RemoveAll(path)
			}
		}
	}()
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		old, err := vfs.ReadFile(vfs.OS, path)
		switch {
		case err == nil && bytes.Equal(old, f.text):
			continue
		case err == nil: // the user's file with other content stays
			return option.Errorf("%s: exists already and is not the demo's: choose another folder for ‹keep›", path)
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
