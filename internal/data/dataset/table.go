package dataset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"taxon/internal/data/table"
	"taxon/internal/fs"
)

// tableFile is the table.Schema of a set that was read from tables.
const tableFile = "table.json"

// spread is the running mean and variance of a column of numbers. The zero value has none.
type spread struct {
	rows          int64
	mean, squares float64

	// The same of the differences from the first number, which keep the digits of large numbers that
	// hardly differ, and the largest difference.
	first                          float64
	meanOff, squaresOff, differing float64
}

func (s *spread) add(x float64) {
	if s.rows == 0 {
		s.first = x
	}
	s.rows++
	d := x - s.mean
	s.mean += d / float64(s.rows)
	s.squares += float64(d * (x - s.mean))

	off := x - s.first
	d = off - s.meanOff
	s.meanOff += d / float64(s.rows)
	s.squaresOff += float64(d * (off - s.meanOff))
	s.differing = max(s.differing, math.Abs(off))
}

// narrow is the standard deviation, as a share of the mean, up to which the differences from the first
// number are better than the numbers themselves, of whose 16 digits it takes half.
const narrow = 1e-7

// standard is the mean and the standard deviation, which is above 0 unless all numbers are the same.
func (s *spread) standard() (mean, deviation float64) {
	if sd := math.Sqrt(s.squares / float64(max(s.rows, 1))); sd > narrow*math.Abs(s.mean) {
		return s.mean, sd
	}
	sd := math.Sqrt(s.squaresOff / float64(max(s.rows, 1)))
	return s.first + s.meanOff, cmp.Or(sd, s.differing) // the squares of tiny differences are 0
}

// readTable takes all rows of a table.
func (in *intake) readTable(ctx context.Context, path string) error {
	if in.form != "" && in.schema == nil {
		return fs.Inputf(path, 0, "is a table, and files before it are none: ingest one kind of file at a time")
	}
	if in.o.ZeroBased {
		return fs.Inputf(path, 0, "is a table, which has no indices: leave out ‹zero-based›")
	}
	if table.Matrix(in.o.Table.FormatOf(path, false)) && in.o.Table.Given() {
		return fs.Inputf(path, 0, "is a matrix, which has no columns to name: its labels are those of ‹labels=FILE›")
	}
	use := table.Use{Labels: true, Weights: true, Features: true, Schema: in.schema}
	o := in.o.Table
	o.SkipBroken -= in.stats.Broken
	r, err := table.Open(ctx, in.o.FS, path, o, use)
	if err != nil {
		return err
	}
	defer r.Close()
	in.schema, in.form = r.Schema(), in.o.Table.FormatOf(path, false)
	var bits []uint32
	var numbers []number
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if in.stats.Rows%progressRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			in.o.Progress(Progress{Phase: "read", BytesRead: in.done + r.BytesRead(), BytesTotal: in.sizeOf(r.Size()),
				Rows: in.stats.Rows, RowsTotal: -1})
		}
		n := len(row.Labels)
		row.Labels = distinct(row.Labels)
		bits, numbers = bits[:0], numbers[:0]
		index := row.Index
		for i, v := range row.Value {
			if len(in.schema.Features) > 0 {
				numbers = append(numbers, number{index[i], v})
			} else {
				bits = append(bits, floatBits(float32(v)))
			}
		}
		if len(numbers) > 0 {
			index = nil
		}
		met := Counts{Rows: 1, RepeatedLabels: int64(n - len(row.Labels))}
		if n == 0 {
			met.Unlabelled = 1
		}
		if len(row.Index) == 0 && !in.o.Text {
			met.ZeroRows = 1
		}
		in.stats.Counts.add(met)
		if in.weights != nil {
			in.weights.text = row.Weight
		}
		err = in.add(batchRow{line: row.Line, text: row.Text, numbers: numbers}, row.Labels, index, bits)
		if weight := (*weightError)(nil); errors.As(err, &weight) {
			if err = r.Refuse(weight.err); err == nil {
				in.stats.LeftOut-- // it is broken, not of weight 0
			}
		}
		if err != nil {
			return err
		}
	}
	broken, _ := r.Broken()
	in.stats.Broken += broken
	in.done += r.BytesRead()
	return nil
}

// sizeOf is the size of all inputs, if known.
func (in *intake) sizeOf(size int64) int64 {
	if len(in.o.Paths) == 1 {
		return size
	}
	return -1
}

// measure adds the numbers of a row to their columns' spreads.
func (in *intake) measure(numbers []number) {
	for _, n := range numbers {
		for int(n.index) > len(in.spread) {
			in.spread = append(in.spread, spread{})
		}
		in.spread[n.index-1].add(n.value)
	}
}

// numbers is how many features of rows that also have text are numbers. They have the first
// indices.
func (in *intake) numbers() int {
	if !in.schema.Both() {
		return 0
	}
	return in.schema.Width()
}

// standardise finds the shift and the scale for each number: to mean 0 and variance 1 over the
// rows that have it. Numbers in lists stay as they are. A number that is the same in all rows is
// no feature.
func (p *publisher) standardise() {
	s := p.in.schema
	if s == nil || len(s.Features) == 0 {
		return
	}
	at := 0
	for i, width := range s.Widths {
		for range max(width, 1) {
			mean, scale := 0.0, 1.0
			if width == 0 && at < len(p.in.spread) {
				if mean, scale = p.in.spread[at].standard(); scale == 0 {
					scale = 1
					p.constant = append(p.constant, uint32(at+1))
					s.Constant = append(s.Constant, s.Features[i])
				}
			}
			s.Mean, s.Scale = append(s.Mean, mean), append(s.Scale, scale)
			at++
		}
	}
	for _, index := range p.constant {
		p.in.table.put(index, 0)
	}
}

// writeTable writes the schema.
func (p *publisher) writeTable(context.Context) error {
	if p.in.schema == nil {
		return nil
	}
	doc, err := json.MarshalIndent(p.in.schema, "", "  ")
	if err != nil {
		return err
	}
	return p.dir.Write(tableFile, append(doc, '\n'))
}

// readTable reads the schema if the folder has one.
func (o *opener) readTable() error {
	b, ok := o.files[tableFile]
	if !ok {
		return nil
	}
	s := &table.Schema{}
	if err := json.Unmarshal(b, s); err != nil {
		return o.damaged(tableFile, err)
	}
	if err := s.Check(o.m.Stats.Text, o.set.Feature); err != nil {
		return o.damaged(tableFile, err)
	}
	o.set.Table = s
	return nil
}

// Featureless says why a training on the set could learn nothing: no instance has a feature. nil: some
// may have one.
func (s *Set) Featureless() error {
	switch t := s.Table; {
	case s.Stats.Columns > 0:
		return nil
	case s.Stats.Text:
		words := Words{}
		if s.Source.Words != nil {
			words = *s.Source.Words
		}
		rows := s.Stats.Rows
		least, most := math.Ceil(words.MinDF.of(rows, minDocs)), math.Floor(words.MaxDF.of(rows, float64(rows)))
		return fmt.Errorf("no word stands in %v or more of the %d instances (‹min-df›), in at most %v "+
			"(‹max-df›), and not in all: there is nothing to learn from; give more text, or other bounds", least, rows, most)
	case t != nil && len(t.Constant) > 0:
		return fmt.Errorf("no column of numbers tells rows apart: %s: the same number in all rows; name others "+
			"with ‹feature-columns›", table.Listed(t.Constant))
	case t != nil && len(t.Features) > 0:
		return fmt.Errorf("no row has a number in %s: are all cells empty? name other columns with "+
			"‹feature-columns›", table.Listed(t.Features))
	case t != nil:
		return errors.New("the matrix holds nothing but zeros: there is nothing to learn from")
	}
	instead := "for LABEL<TAB>text add ‹text›"
	if int64(len(s.LabelIndex)) > s.Stats.Rows || slices.ContainsFunc(s.Labels, func(label string) bool {
		return looksLikeRow([]byte(label))
	}) {
		instead += "; these look like rows of a table: say ‹data-format=csv›"
	}
	return errors.New("no instance has a feature: there is nothing to learn from; lines are LABEL[,LABEL...] " +
		"INDEX:VALUE ... (" + instead + ")")
}

// NotATable is the error for columns of a file that is read as lines.
func NotATable(path string) error {
	if st, err := fs.Stat(path); err == nil && st.IsDir() && !fs.HasParts(path) {
		return fs.NoParts(path)
	}
	return fs.Inputf(fs.Name(path), 0, "is no table by its name, and columns are named or remembered: say which "+
		"it is with ‹data-format=csv›, tsv, jsonl, parquet, arrow, npy or npz")
}

// weightError says that the weight of a row is invalid.
type weightError struct{ err error }

func (e *weightError) Error() string { return e.err.Error() }

// FileReader reads the instances of a path: lines, or a table.
type FileReader struct {
	lines  *Reader
	file   *fs.File
	table  *table.Reader
	schema *table.Schema
	row    Row
	counts Counts
	form   string
}

// OpenReader opens a path of src (compressed or not) for reading; o.Name is set from it.
func OpenReader(ctx context.Context, src fs.Source, path string, o ReaderOptions) (*FileReader, error) {
	if form := o.Table.FormatOf(path, o.Text); form != "" {
		t, err := table.Open(ctx, src, path, o.Table, o.Use)
		if err != nil {
			return nil, err
		}
		return &FileReader{table: t, schema: t.Schema(), form: form}, nil
	}
	if o.Use.Schema == nil && o.Table.Given() || o.Use.Schema.HasColumns() && !o.Text && o.Table.Format != table.Lines {
		return nil, NotATable(path)
	}
	f, err := fs.Open(ctx, src, path)
	if err != nil {
		return nil, err
	}
	o.Name = f.Name()
	return NewFileReader(f, nil, o), nil
}

// NewFileReader reads lines of an opened file, through `from` unless that is nil.
func NewFileReader(f *fs.File, from *fs.CancelReader, o ReaderOptions) *FileReader {
	if from != nil {
		return &FileReader{lines: NewReader(from, o), file: f}
	}
	return &FileReader{lines: NewReader(f, o), file: f}
}

// Read is Reader.Read.
func (r *FileReader) Read() (*Row, error) {
	if r.lines != nil {
		return r.lines.Read()
	}
	t, err := r.table.Read()
	if err != nil {
		return nil, err
	}
	n := len(t.Labels)
	r.row = Row{Line: t.Line, Labels: distinct(t.Labels), Index: t.Index, Value: r.row.Value[:0], Text: t.Text, ID: t.ID,
		Weight: t.Weight, Broken: t.Broken}
	for i, x := range t.Index {
		r.row.Value = append(r.row.Value, r.schema.Standardise(x, t.Value[i]))
	}
	met := Counts{Rows: 1, RepeatedLabels: int64(n - len(r.row.Labels))}
	if n == 0 {
		met.Unlabelled = 1
	}
	r.counts.add(met)
	return &r.row, nil
}

// Refuse reports the row of a table read last as broken; nil: it is passed over.
func (r *FileReader) Refuse(err error) error {
	if r.table == nil {
		return err
	}
	return r.table.Refuse(err)
}

// Counts is what was met so far.
func (r *FileReader) Counts() Counts {
	if r.lines != nil {
		return r.lines.Counts()
	}
	r.counts.Broken, _ = r.table.Broken()
	return r.counts
}

// Form is libsvm, xmc or text, or the kind of the table; it is known after the first Read.
func (r *FileReader) Form() string {
	if r.lines != nil {
		return r.lines.Form()
	}
	return r.form
}

// Name is the path as messages show it.
func (r *FileReader) Name() string {
	if r.lines != nil {
		return r.file.Name()
	}
	return r.table.Name()
}

// Size is the number of bytes as stored, -1: unknown.
func (r *FileReader) Size() int64 {
	if r.lines != nil {
		return r.file.Size()
	}
	return r.table.Size()
}

// BytesRead is how many of them were read.
func (r *FileReader) BytesRead() int64 {
	if r.lines != nil {
		return r.file.BytesRead()
	}
	return r.table.BytesRead()
}

// Close closes the file.
func (r *FileReader) Close() error {
	if r.lines != nil {
		return r.file.Close()
	}
	return r.table.Close()
}
