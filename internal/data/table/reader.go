package table

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"taxon/internal/fs"
)

// Row is an instance. Its slices are valid until the next Read.
type Row struct {
	Line int64 // its first line, from 1; in Parquet the row's number
	ID   string

	// Labels holds the labels without surrounding blanks. The parts of paths are joined by
	// separators without blanks.
	Labels [][]byte
	Text   []byte

	// Index holds the features that are not missing, ascending, from 1.
	Index []uint32

	// Value is aligned with Index. Numbers are not standardised.
	Value []float64

	// Weight is the cell of the column Columns.Weight.
	Weight string

	// Broken marks an invalid row. It has no content but its ID, if that could be read.
	Broken bool
}

// Use says which parts of the rows a Reader needs.
type Use struct {
	// Labels requires the label columns. Without it, labels are read if their column exists.
	Labels bool

	// Weights requires the weight column. Without it, weights are read if the column exists.
	Weights bool

	// Features requires text or features.
	Features bool

	// KeepBroken returns invalid rows that may be skipped as rows marked Broken.
	KeepBroken bool

	// Schema is the model's schema, which the table must match. It may be nil.
	Schema *Schema

	// Pause is called before each read that goes beyond the next row, because the read may block.
	// If it returns true, Read returns ErrPause; a later call of Read continues. A nil Pause never
	// interrupts Read.
	Pause func(in *fs.CancelReader) bool
}

// ErrPause is returned by Read when Pause returns true.
var ErrPause = errors.New("the stream pauses")

// bufferBytes is the size of the read-ahead buffer. The readers of packages csv and textio use a
// buffer of this size directly.
const bufferBytes = 64 << 10

// records reads the records of a file of one format.
type records interface {
	// next reads the next record and returns its line. It can be called again after a brokenRow.
	next() (line int64, err error)
	// find returns the index of a column, or -1 if there is none. In JSON lines every column may
	// exist.
	find(name string) int
	columns() []string // nil if they are not known in advance
	// texts appends the text of a cell, or each entry of a list. It appends nothing for an empty
	// cell.
	texts(column int, dst []string) ([]string, error)
	// numbers appends the numbers of a cell, with NaN for missing ones. list reports whether the
	// cell is a list.
	numbers(column int, dst []float64) (out []float64, list bool, err error)
	close()
}

// brokenRow is an error that concerns a single row.
type brokenRow struct {
	line int64
	err  error

	// more counts the further lines that the row spans, each of which may be a row of its own.
	more  int64
	cells int // number of leading cells that are readable
}

func (e *brokenRow) Error() string { return e.err.Error() }

// Reader reads the rows of a file, or of all files of a pattern or folder.
type Reader struct {
	ctx    context.Context
	src    fs.Source
	o      Options
	use    Use
	name   string // path as the user gave it
	rest   []string
	cur    string
	file   *fs.File
	in     records
	matrix *matrix          // source of the rows in place of in, for a matrix
	waits  *fs.CancelReader // the stream under in if Use.Pause is set, else nil
	ahead  *bufio.Reader    // bytes that waits has returned
	blank  string           // lines of these characters are not rows
	done   int64            // size of the preceding files
	size   int64

	text, features []int

	// unknown says, for each feature column, that no row had a value there when the widths were
	// set.
	unknown []bool

	// learn is called with each row in place of reading it. Rows are read if it is nil.
	learn             func()
	labels, levels    []int
	label, weight, id int
	schema            *Schema
	row               Row
	cells             []string
	values            []float64
	buf               []byte
	broken            int64
	first             error // error of the first invalid row
	seen              map[string]bool
	rows              int64

	// lost counts the lines of the last invalid row that are still to be returned as rows.
	lost int64
}

// Open opens a path as a table. Options.FormatOf decides on the format.
func Open(ctx context.Context, src fs.Source, path string, o Options, use Use) (*Reader, error) {
	if err := o.Check(); err != nil {
		return nil, fs.Inputf("", 0, "%w", err)
	}
	r := &Reader{ctx: ctx, src: src, o: o, use: use, name: fs.Name(path), rest: []string{path}, schema: use.Schema,
		seen: map[string]bool{}}
	if r.schema == nil {
		r.schema = &Schema{Columns: o.Columns}
	}
	if _, ok := src.(fs.Local); ok {
		var err error
		if r.rest, err = fs.Expand(ctx, path); err != nil {
			return nil, err
		}
	}
	if err := r.nextFile(); err != nil {
		r.Close()
		return nil, err
	}
	if n := len(r.schema.Widths); n > 0 && r.matrix == nil && use.Features && len(o.Features) != n {
		r.Close()
		return nil, fs.Inputf(r.name, 0, "‹feature-columns› names %d columns, and the model was trained on %d: %s",
			len(o.Features), n, Listed(r.schema.Features))
	}
	return r, nil
}

func (r *Reader) nextFile() (err error) {
	r.Close()
	r.cur, r.rest = fs.Name(r.rest[0]), r.rest[1:]
	path := r.cur
	if path == "stdin" {
		path = fs.Stdin
	}
	if r.file, err = fs.Open(r.ctx, r.src, path); err != nil {
		return err
	}
	r.size = r.file.Size()
	format := r.o.FormatOf(path, false)
	if Matrix(format) {
		if len(r.rest) > 0 {
			return r.at(0, fmt.Errorf("is a matrix, and %s stands for several files: give one", r.name))
		}
		if r.matrix, err = openMatrix(r.file, path, format); err == nil {
			err = r.checkWidth()
		}
		if err != nil {
			return r.at(0, err)
		}
		switch {
		case r.use.Labels && r.o.Labels == "":
			err = errors.New("is a matrix: give its labels with ‹labels=FILE›, a line of them a row, or a NumPy array")
		case r.o.Labels != "":
			return r.openLabels()
		}
		if err != nil {
			return r.at(0, err)
		}
		return nil
	}
	if r.o.Labels != "" {
		return r.at(0, errors.New("is not a matrix: ‹labels=FILE› is for .npy and .npz"))
	}
	var in records
	var text io.Reader = r.file
	if r.use.Pause != nil && r.file.Waits() && (format == "csv" || format == "tsv" || format == "jsonl") {
		r.waits = fs.NewCancelReader(r.ctx, r.file)
		text = r.waits
	}
	if was := r.use.Schema; (r.o.Header != "" && format != "csv" && format != "tsv" || r.o.Delimiter != "" &&
		format != "csv") &&
		(was == nil || r.o.Header != was.Header || r.o.Delimiter != was.Delimiter) {
		// the model's options are those of another file
		return r.at(0, fmt.Errorf("is read as %s: ‹delimiter› is for CSV, ‹header› for CSV and TSV", cmp.Or(format, "lines")))
	}
	switch format {
	case "csv":
		in, r.ahead, err = openCSV(text, &r.o)
		r.blank = "\r\n"
	case "tsv":
		in, r.ahead, err = openTSV(text, r.cur, &r.o)
		r.blank = "\r\n"
	case "jsonl":
		in, r.ahead = openJSON(text, r.cur)
		r.blank = " \t\r\n"
	case "parquet":
		in, err = openParquet(r.file, path)
	case "arrow":
		in, err = openArrow(r.file, path)
	default:
		err = errors.New("is not a table by its name: say which with ‹data-format=csv›, tsv, jsonl, parquet, arrow, " +
			"npy or npz")
	}
	if err == nil {
		r.in = in
		err = r.findColumns()
	}
	if err != nil {
		return r.at(1, err)
	}
	return nil
}

// findColumns finds the indices of the columns.
func (r *Reader) findColumns() error {
	var errs []error
	find := func(name string, need bool) int {
		if name == "" {
			return -1
		}
		k := r.in.find(name)
		have := r.in.columns()
		if k < 0 && need {
			errs = append(errs, fmt.Errorf("%w%s", missing(name, have), r.otherwise(have)))
		}
		if at := slices.Index(have, name); at >= 0 && slices.Contains(have[at+1:], name) {
			errs = append(errs, fmt.Errorf("column %q occurs twice: rename one of them", name))
		}
		return k
	}
	say := func(what, more string) {
		if have := r.in.columns(); have != nil {
			what += "; its columns are " + Listed(have) + r.otherwise(have)
		}
		errs = append(errs, errors.New(what+more))
	}
	r.text, r.features = r.text[:0], r.features[:0]
	for _, name := range r.o.Text {
		r.text = append(r.text, find(name, r.use.Features))
	}
	for _, name := range r.o.Features {
		r.features = append(r.features, find(name, r.use.Features))
	}
	if r.use.Features && len(r.text)+len(r.features) == 0 {
		say("say what to learn from: ‹text-column=NAME›, or ‹feature-columns=NAME,NAME› (or ‹data-format=lines›, "+
			"if this is not a table)", "")
	}
	if r.use.Labels && r.o.Label == "" && len(r.o.LabelColumns)+len(r.o.LevelColumns) == 0 {
		say("say which column holds the labels: ‹label-column=NAME›", "; where each label has a column of 0 and "+
			"1, ‹label-columns=A,B›; where each level of the hierarchy has one, ‹level-columns=A,B›")
	}
	r.labels, r.levels = r.labels[:0], r.levels[:0]
	for _, name := range r.o.LabelColumns {
		r.labels = append(r.labels, find(name, r.use.Labels))
	}
	for _, name := range r.o.LevelColumns {
		r.levels = append(r.levels, find(name, r.use.Labels))
	}
	r.label, r.weight, r.id = find(r.o.Label, r.use.Labels), find(r.o.Weight, r.use.Weights),
		find(r.o.ID, r.o.ID != r.schema.ID || r.use.Schema == nil)
	if len(errs) > 0 {
		return errs[0]
	}
	return nil
}

// otherwise suggests another reading of line 1 if it looks like one.
func (r *Reader) otherwise(have []string) string {
	if len(have) == 1 && strings.Contains(have[0], "\t") {
		return " (are its cells separated by tabs? then say ‹data-format=tsv›)"
	}
	if at := strings.IndexAny(strings.Join(have, ""), ";|,"); len(have) == 1 && at >= 0 {
		return fmt.Sprintf(" (are its cells separated by %q? then say ‹delimiter='%s'›)", have[0][at], have[0][at:at+1])
	}
	if r.o.Header == "" && slices.ContainsFunc(have, func(name string) bool {
		v,
			err := parseNumber(name)
		return err == nil && !math.IsNaN(v)
	}) {
		return " (if line 1 is a row and names no columns, say ‹header=no›, and name the columns 1, 2, ...)"
	}
	return ""
}

// at adds file and line to an error about the input.
func (r *Reader) at(line int64, err error) error {
	var in *fs.InputError
	if errors.As(err, &in) {
		if in.Path != "" && in.Line > 0 {
			return err
		}
		return &fs.InputError{Path: r.cur, Line: max(in.Line, line), Msg: in.Msg, Err: in.Err}
	}
	if err == nil || r.ctx.Err() != nil {
		return err
	}
	return &fs.InputError{Path: r.cur, Line: line, Msg: err.Error(), Err: err}
}

// Read returns the next row, or io.EOF after the last. Errors about the input name file and line.
func (r *Reader) Read() (*Row, error) {
	if r.matrix != nil {
		return r.readMatrix()
	}
	if r.lost > 0 {
		r.lost--
		r.rows++
		r.row = Row{Line: r.row.Line + 1, Broken: true}
		return &r.row, nil
	}
	for {
		if r.pauses() {
			return nil, ErrPause
		}
		line, err := r.in.next()
		if errors.Is(err, io.EOF) {
			if err := r.checkSeen(); err != nil {
				return nil, err
			}
			if len(r.rest) == 0 {
				if r.rows == 0 {
					return nil, fs.Inputf(r.name, 0, "no row in it: the table is empty")
				}
				return nil, io.EOF
			}
			if err := r.nextFile(); err != nil {
				return nil, err
			}
			continue
		}
		if err == nil {
			r.row = Row{Line: line, Labels: r.row.Labels[:0], Text: r.row.Text[:0], Index: r.row.Index[:0],
				Value: r.row.Value[:0]}
			if err = r.fill(); err != nil {
				err = &brokenRow{line: line, err: err, cells: math.MaxInt}
			}
		}
		r.rows++
		if err == nil {
			return &r.row, nil
		}
		var bad *brokenRow
		if !errors.As(err, &bad) {
			return nil, r.at(line, err)
		}
		r.broken += bad.more
		if err := r.at(bad.line, bad.err); !r.skip(err) {
			return nil, err
		}
		if r.use.KeepBroken {
			r.row, r.lost = Row{Line: bad.line, Broken: true}, bad.more
			if r.id >= 0 && r.id < bad.cells {
				if id, err := r.in.texts(r.id, r.cells[:0]); err == nil && len(id) > 0 && checkLabel(id[0]) == nil {
					r.row.ID = id[0]
				}
			}
			return &r.row, nil
		}
	}
}

// pauses reads ahead until the line of the next row is complete. It returns true if Read should
// return instead of waiting for more.
func (r *Reader) pauses() bool {
	for r.waits != nil {
		text, _ := r.ahead.Peek(r.ahead.Buffered())
		if bytes.IndexByte(bytes.TrimLeft(text, r.blank), '\n') >= 0 || len(text) == r.ahead.Size() {
			return false
		}
		if r.use.Pause(r.waits) {
			return true
		}
		if _, err := r.ahead.Peek(len(text) + 1); err != nil {
			return false // the reader will meet the same error
		}
	}
	return false
}

// skip counts an invalid row and reports whether it may be skipped.
func (r *Reader) skip(err error) bool {
	if r.broken++; r.first == nil {
		r.first = err
	}
	return r.broken <= r.o.SkipBroken
}

// Refuse reports the row read last as invalid for the reason err. It returns nil if the row may be
// skipped.
func (r *Reader) Refuse(err error) error {
	if err = r.at(r.row.Line, err); r.skip(err) {
		return nil
	}
	return err
}

// checkSeen returns an error if no record has a wanted column, in a format without a header.
func (r *Reader) checkSeen() error {
	j, ok := r.in.(*jsonRecords)
	if !ok || r.rows == 0 {
		return nil
	}
	need := append(append([]string{}, r.o.Text...), r.o.Features...)
	if !r.use.Features {
		need = nil
	}
	if r.use.Labels {
		need = slices.Concat(need, r.o.LabelColumns, r.o.LevelColumns)
	}
	if r.use.Labels && r.o.Label != "" {
		need = append(need, r.o.Label)
	}
	for _, name := range need {
		if !j.seen[j.find(name)] {
			return fs.Inputf(r.cur, 0, "%w", missing(name, j.keys()))
		}
	}
	return nil
}

// fill reads the cells of the row. Its errors name the column.
func (r *Reader) fill() (err error) {
	if r.learn != nil {
		r.learn()
		return nil
	}
	row := &r.row
	for _, k := range r.text {
		if k < 0 {
			continue
		}
		if r.cells, err = r.in.texts(k, r.cells[:0]); err != nil {
			return err
		}
		for _, t := range r.cells {
			if !utf8.ValidString(t) {
				return errors.New("the text is not UTF-8: convert the file (iconv -t UTF-8)")
			}
			if len(row.Text) > 0 {
				row.Text = append(row.Text, ' ')
			}
			row.Text = append(row.Text, t...)
		}
	}
	if err := r.fillFeatures(); err != nil {
		return err
	}
	for _, c := range []struct {
		k    int
		name string
		to   *string
	}{{r.id, r.o.ID, &row.ID}, {r.weight, r.o.Weight, &row.Weight}} {
		if c.k < 0 {
			continue
		}
		if r.cells, err = r.in.texts(c.k, r.cells[:0]); err != nil {
			return err
		}
		if len(r.cells) > 1 {
			return fmt.Errorf("column %q holds a list of %d: want one value", c.name, len(r.cells))
		}
		if len(r.cells) > 0 {
			// ids are kept unchanged, because users join the output by them
			*c.to = r.cells[0]
			if err := checkLabel(*c.to); err != nil {
				return fmt.Errorf("column %q: %w", c.name, err)
			}
		}
	}
	row.Weight = strings.TrimSpace(row.Weight)
	switch {
	case len(r.levels) > 0:
		return r.fillLevels()
	case len(r.labels) > 0:
		return r.fillIndicators()
	case r.label < 0:
		return nil
	}
	if r.cells, err = r.in.texts(r.label, r.cells[:0]); err != nil {
		return err
	}
	return r.fillLabels()
}

// Schema describes the table. The widths of lists are known after the first row.
func (r *Reader) Schema() *Schema { return r.schema }

// Broken returns the number of rows that were skipped, and the error of the first.
func (r *Reader) Broken() (n int64, first error) { return min(r.broken, r.o.SkipBroken), r.first }

// Name returns the path as messages show it.
func (r *Reader) Name() string { return r.name }

// Size returns the stored size of the current file and those before it, or -1 if it is unknown.
func (r *Reader) Size() int64 {
	if r.size < 0 {
		return -1
	}
	return r.done + r.size
}

// BytesRead returns the number of stored bytes, out of Size, that have been read.
func (r *Reader) BytesRead() int64 {
	if r.file == nil {
		return r.done
	}
	return r.done + r.file.BytesRead()
}

// Close closes all open files.
func (r *Reader) Close() error {
	if r.in != nil {
		r.in.close()
		r.in = nil
	}
	if r.matrix != nil {
		r.matrix.end()
		r.matrix = nil
	}
	if r.file == nil {
		return nil
	}
	r.done += r.file.BytesRead()
	end := r.file.Close
	if r.waits != nil {
		waits, closes := r.waits, end
		end = func() error { return waits.WhenIdle(closes) } // no read may use a closed decoder
	}
	r.file, r.waits = nil, nil
	return end()
}
