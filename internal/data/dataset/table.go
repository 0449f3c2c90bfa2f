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

// tableFile holds the table.Schema of a set that was read from tables.
const tableFile = "table.json"

// spread computes the mean and variance of a column of numbers as the numbers arrive (Welford's
// method). The zero value has no numbers.
type spread struct {
	rows          int64
	mean, squares float64

	// These fields hold the mean and the sum of squares of the differences from the first number,
	// and the largest difference. They keep the digits of large numbers that differ only slightly.
	first                          float64
	meanOff, squaresOff, differing float64
}

// add adds a number to the column.
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

// narrow is a bound on the ratio of the standard deviation to the mean. At or below it, the
// statistics of the differences from the first number are more precise than those of the numbers
// themselves, which have lost half of their 16 digits to cancellation.
const narrow = 1e-7

// standard returns the mean and the standard deviation. The deviation is 0 only if all numbers are
// equal.
func (s *spread) standard() (mean, deviation float64) {
	if sd := math.Sqrt(s.squares / float64(max(s.rows, 1))); sd > narrow*math.Abs(s.mean) {
		return s.mean, sd
	}
	sd := math.Sqrt(s.squaresOff / float64(max(s.rows, 1)))
	return s.first + s.meanOff, cmp.Or(sd, s.differing) // the squares of tiny differences underflow to 0
}

// readTable reads all rows of a table.
func (in *intake) readTable(ctx context.Context, path string) error {
	if in.form != "" && in.schema == nil {
		return fs.Inputf(path, 0, "is a table, but the files before it are not: ingest one kind of file at a time")
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
				in.stats.LeftOut-- // the row is invalid, its weight is not 0
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

// sizeOf returns the size of all inputs, or -1 if it is unknown.
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

// numbers returns how many features are numbers in rows that also have text. The indices of numbers
// come before those of words.
func (in *intake) numbers() int {
	if !in.schema.Both() {
		return 0
	}
	return in.schema.Width()
}

// standardise finds the shift and the scale of each number: to mean 0 and variance 1 over the rows
// that have the number. Numbers in lists are not scaled. A number that is equal in all rows does
// not become a feature.
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

// writeTable writes the schema of the tables.
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

// readTable reads the schema of the tables if the folder has one.
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

// Featureless returns an error that says why no instance of the set has a feature, so that there is
// nothing to learn from. It returns nil if some instance may have one.
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

// NotATable returns the error for a file that is read as lines although the options name columns.
func NotATable(path string) error {
	if st, err := fs.Stat(path); err == nil && st.IsDir() && !fs.HasParts(path) {
		return fs.NoParts(path)
	}
	return fs.Inputf(fs.Name(path), 0, "is not a table by its name, and columns are named or remembered: say which "+
		"it is with ‹data-format=csv›, tsv, jsonl, parquet, arrow, npy or npz")
}

// weightError is the error for an invalid weight of a row.
type weightError struct{ err error }

func (e *weightError) Error() string { return e.err.Error() }

// FileReader reads the instances of a path, which may hold lines or a table.
type FileReader struct {
	lines  *Reader
	file   *fs.File
	table  *table.Reader
	schema *table.Schema
	row    Row
	counts Counts
	form   string
}

// OpenReader opens a path of src, compressed or not, for reading. It sets o.Name from the path.
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

// NewFileReader reads lines of an opened file, through `from` unless it is nil.
func NewFileReader(f *fs.File, from *fs.CancelReader, o ReaderOptions) *FileReader {
	if from != nil {
		return &FileReader{lines: NewReader(from, o), file: f}
	}
	return &FileReader{lines: NewReader(f, o), file: f}
}

// Read returns the next instance, or io.EOF after the last, as Reader.Read does.
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

// Refuse reports the table's row that was read last as invalid. It returns nil if the row may be
// skipped.
func (r *FileReader) Refuse(err error) error {
	if r.table == nil {
		return err
	}
	return r.table.Refuse(err)
}

// Counts returns the counts so far.
func (r *FileReader) Counts() Counts {
	if r.lines != nil {
		return r.lines.Counts()
	}
	r.counts.Broken, _ = r.table.Broken()
	return r.counts
}

// Form returns "libsvm", "xmc", "text" or the format of the table. It is known after the first
// Read.
func (r *FileReader) Form() string {
	if r.lines != nil {
		return r.lines.Form()
	}
	return r.form
}

// Name returns the path as messages show it.
func (r *FileReader) Name() string {
	if r.lines != nil {
		return r.file.Name()
	}
	return r.table.Name()
}

// Size returns the size of the input as stored, in bytes, or -1 if it is unknown.
func (r *FileReader) Size() int64 {
	if r.lines != nil {
		return r.file.Size()
	}
	return r.table.Size()
}

// BytesRead returns the number of stored bytes that have been read.
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
