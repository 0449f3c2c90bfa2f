package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"taxon/internal/dataset"
	"taxon/internal/fs"
	"taxon/internal/model"
)

// rowOptions say how a file of instances is to be read for a model.
type rowOptions struct {
	path      string
	text      bool
	asTrained bool // text or not as the training data were, instead of text
	zeroBased bool
	zeroSet   bool // --zero-based was given; else the model knows
	threads   int  // 0: all cores
	labels    bool // keep the true labels
	live      bool // rows that were read do not wait for input that pauses
}

// workers is the number of threads to use for a --threads value.
func workers(threads int) int {
	if threads > 0 {
		return threads
	}
	return runtime.GOMAXPROCS(0)
}

// openModel opens a model named on the command line.
func openModel(path string) (*model.Model, error) {
	if path == "" {
		return nil, usagef("empty path: give the folder of a model")
	}
	return model.Open(path)
}

// rowSource fills batches with the instances of a file or an ingested data set.
type rowSource interface {
	fill(b *model.Batch) error // io.EOF with or after the last rows
	progress() (done, total int64)
	warnings() []string // about the data, once all are read
	Close() error
}

// openRows opens instances for m, which says how they are mapped to its columns.
func (a *app) openRows(ctx context.Context, m *model.Model, o rowOptions) (rowSource, error) {
	if o.path != fs.Stdin && dataset.LooksIngested(o.path) {
		return openSetRows(m, o)
	}
	if o.asTrained {
		o.text = m.Data.Text
	}
	switch {
	case m.Data.Text && !o.text:
		return nil, usagef("%s was trained on text: add --text and give LABEL<TAB>text lines", m.Dir)
	case !m.Data.Text && o.text:
		return nil, usagef("%s was trained on feature vectors: leave out --text", m.Dir)
	}
	p, err := projectionOf(m)
	if err != nil {
		return nil, err
	}
	zero := m.Data.ZeroBased
	if o.zeroSet {
		zero = o.zeroBased
	}
	f, err := fs.Open(ctx, fs.Local{In: a.stdin}, o.path)
	if err != nil {
		return nil, err
	}
	rows := &fileRows{ui: a.ui, file: f, p: p, keepLabels: o.labels, names: map[string]string{}}
	options := dataset.ReaderOptions{Name: f.Name(), Text: o.text, ZeroBased: zero}
	if !o.live || !f.Waits() {
		rows.r = dataset.NewReader(f, options)
		return rows, nil
	}
	rows.waits = newCancelReader(ctx, f)
	options.Pause = rows.paused
	rows.r = dataset.NewReader(rows.waits, options)
	return rows, nil
}

func projectionOf(m *model.Model) (*dataset.Projection, error) {
	if m.Text != nil {
		return dataset.NewProjection(m.Feature, m.Text.Vocabulary, m.Text.IDF)
	}
	return dataset.NewProjection(m.Feature, nil, nil)
}

// longestWait is how long a row waits for others to be scored with it. Long enough for a
// stream that flows, however unevenly, to fill its batches; short for one who looks on.
const longestWait = 100 * time.Millisecond

// fileRows reads a stream of instances.
type fileRows struct {
	ui         *ui
	unknown    int64 // instances without a feature of the model
	r          *dataset.Reader
	file       *fs.File
	waits      *cancelReader // what r reads from if a pause ends a batch; nil: it does not
	batch      int           // rows of the batch so far
	began      time.Time     // when it got its first
	p          *dataset.Projection
	v          dataset.Vector
	told       bool // that an empty line gets no answer
	keepLabels bool
	names      map[string]string // one string for each label, however often it occurs
	row        []string
}

func (f *fileRows) fill(b *model.Batch) error {
	for f.batch = 0; !b.Full(); f.batch++ {
		row, err := f.r.Read()
		if errors.Is(err, dataset.ErrPause) {
			return nil
		}
		if err != nil {
			return err
		}
		if f.waits != nil && f.batch == 0 {
			f.began = time.Now()
		}
		f.p.Row(row, &f.v)
		if len(f.v.Index) == 0 {
			f.unknown++
		}
		b.Add(f.v.Index, f.v.Value)
		if f.keepLabels {
			b.AddLabels(f.intern(row.Labels)...)
		}
	}
	return nil
}

// paused says whether the rows read so far should wait no longer for more. Who waits for
// the answer to an empty line is told at once that there is none.
func (f *fileRows) paused() bool {
	if f.batch == 0 && !f.told && f.r.Counts().EmptyLines > 0 && !f.waits.within(longestWait) {
		f.told = true
		f.ui.Warn("%s: an empty line is no instance and gets no answer: %s", f.file.Name(), blankRow)
	}
	return f.batch > 0 && !f.waits.within(longestWait-time.Since(f.began))
}

func (f *fileRows) intern(labels [][]byte) []string {
	f.row = f.row[:0]
	for _, l := range labels {
		name, ok := f.names[string(l)]
		if !ok {
			name = string(l)
			f.names[name] = name
		}
		f.row = append(f.row, name)
	}
	return f.row
}

func (f *fileRows) progress() (done, total int64) {
	return f.file.BytesRead(), max(0, f.file.Size())
}

const blankRow = "an instance without labels and features is a line with a blank or tab"

func (f *fileRows) warnings() []string {
	return append(warnEmpty(f.file.Name(), f.r.Counts().EmptyLines), warnUnknown(f.file.Name(), f.unknown)...)
}

// warnEmpty tells of lines that are no instances: who sets files side by side must know.
func warnEmpty(path string, lines int64) []string {
	if lines == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s skipped: no instances, and without a line in predictions (%s)", path, counted(lines, "empty line", "empty lines"), blankRow)}
}

// warnUnknown tells of instances that a model can say nothing about.
func warnUnknown(path string, rows int64) []string {
	if rows == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s no feature that the model knows: the bias alone decides", path, counted(rows, "instance has", "instances have"))}
}

func (f *fileRows) Close() error {
	if f.waits == nil || f.waits.settled() {
		return f.file.Close()
	}
	go func() { // a read that can't be broken off must not meet a decoder that is closed
		<-f.waits.pending
		f.file.Close()
	}()
	return nil
}

// setRows reads an ingested data set.
type setRows struct {
	path       string
	unknown    int64 // instances without a feature of the model
	set        *dataset.Set
	p          *dataset.Projection // nil: the set's columns are the model's
	v          dataset.Vector
	row        dataset.Row
	next       int
	keepLabels bool
	names      []string
}

// openSetRows refuses text sets but the training data itself: an ingested text carries
// the weights of its own idf, not the model's.
func openSetRows(m *model.Model, o rowOptions) (rowSource, error) {
	set, err := dataset.Open(o.path)
	if err != nil {
		return nil, err
	}
	s := &setRows{path: o.path, set: set, keepLabels: o.labels}
	if set.Fingerprint == m.Data.Fingerprint && set.Matrix.Cols == len(m.Feature) {
		return s, nil
	}
	if set.Vocabulary != nil || m.Text != nil {
		return nil, errors.Join(fs.Inputf(o.path, 0, "is ingested text with word weights of its own: give the text file itself, with --text"), set.Close())
	}
	if s.p, err = projectionOf(m); err != nil {
		return nil, errors.Join(err, set.Close())
	}
	return s, nil
}

func (s *setRows) fill(b *model.Batch) error {
	for ; !b.Full(); s.next++ {
		if s.next == s.set.Matrix.Rows {
			return io.EOF
		}
		columns, values := s.set.Matrix.Row(s.next)
		if s.p != nil {
			s.row.Index, s.row.Value = s.row.Index[:0], values
			for _, c := range columns {
				s.row.Index = append(s.row.Index, s.set.Feature[c])
			}
			s.p.Row(&s.row, &s.v)
			columns, values = s.v.Index, s.v.Value
		}
		if len(columns) == 0 {
			s.unknown++
		}
		b.Add(columns, values)
		if s.keepLabels {
			s.names = s.names[:0]
			for _, l := range s.set.LabelIndex[s.set.LabelBegin[s.next]:s.set.LabelBegin[s.next+1]] {
				s.names = append(s.names, s.set.Labels[l])
			}
			b.AddLabels(s.names...)
		}
	}
	return nil
}

func (s *setRows) progress() (done, total int64) { return int64(s.next), int64(s.set.Matrix.Rows) }

func (s *setRows) warnings() []string { return warnUnknown(s.path, s.unknown) }

func (s *setRows) Close() error { return s.set.Close() }

// score predicts all instances of rows and hands them to emit in input order, with a
// progress line. The caller has the warnings about them to tell.
func (a *app) score(ctx context.Context, what string, p *model.Predictor, rows rowSource, threads int, emit func(*model.Batch, *model.Result) error) error {
	_, total := rows.progress()
	start := a.ui.StartBytes
	if _, ok := rows.(*setRows); ok {
		start = a.ui.Start
	}
	line := start(what, total)
	defer line.Done()
	done := int64(0)
	fill := func(b *model.Batch) error {
		err := rows.fill(b)
		done += int64(b.Rows())
		at, _ := rows.progress()
		line.Set(at, formatCount(done)+" instances")
		return err
	}
	return p.Stream(ctx, workers(threads), fill, emit)
}
