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
	Line int64 // first line, from 1; for Parquet the number of the row
	ID   string
	// without blanks around them; paths joined with clean separators
	Labels [][]byte
	Text   []byte
	Index  []uint32  // features that are not missing, from 1, ascending
	Value  []float64 // as the table has them
	Weight string    // from Columns.Weight
	// it could not be read, and holds nothing but the ID, if that could be
	Broken bool
}

// Use says what a Reader needs.
type Use struct {
	// labels are required; otherwise they are read if the column exists
	Labels     bool
	Weights    bool // the same for weights
	Features   bool // text or features are required
	KeepBroken bool // return broken rows that may be skipped as empty ones
	Schema     *Schema
	// Pause is called before more of a stream is read than holds the next row, which may block. If
	// it returns true, Read returns ErrPause, and continues when it is called again. nil: never.
	Pause func(in *fs.CancelReader) bool
}

// ErrPause is returned by Read when Pause keeps it from waiting for the stream.
var ErrPause = errors.New("the stream pauses")

// bufferBytes is how far text is read ahead. Package csv and Reader of package lines take a
// buffer of this size as theirs.
const bufferBytes = 64 << 10

// records is a file of one format.
type records interface {
	// next goes to the next record and returns its line. After a brokenRow it can be called
	// again.
	next() (line int64, err error)
	// find is the index of a column; -1: there is none. In JSON lines every column may exist.
	find(name string) int
	columns() []string // nil: unknown beforehand
	// texts appends a cell's text, for a list each entry, for an empty cell nothing.
	texts(column int, dst []string) ([]string, error)
	// numbers appends a cell's numbers, NaN for missing ones; list: the cell is a list.
	numbers(column int, dst []float64) (out []float64, list bool, err error)
	close()
}

// brokenRow is an error in one row.
type brokenRow struct {
	line int64
	err  error
	// further lines that it takes, each of which may be a row of its own
	more  int64
	cells int // so many cells from the first can be read
}

func (e *brokenRow) Error() string { return e.err.Error() }

// Reader reads the rows of a file, or of all files that a pattern or folder stands for.
type Reader struct {
	ctx    context.Context
	src    fs.Source
	o      Options
	use    Use
	name   string // as the user gave it
	rest   []string
	cur    string
	file   *fs.File
	in     records
	matrix *matrix          // instead of in
	waits  *fs.CancelReader // what in reads from, if Use.Pause is asked; else nil
	ahead  *bufio.Reader    // what waits has given
	blank  string           // lines of these characters are no rows
	done   int64            // bytes of earlier files
	size   int64

	text, features []int
	// of features: no row had a value there when the widths were set
	unknown []bool
	// called with each row in place of reading it; nil: rows are read
	learn             func()
	labels, levels    []int
	label, weight, id int
	schema            *Schema
	row               Row
	cells             []string
	values            []float64
	buf               []byte
	broken            int64
	first             error // the first broken row
	seen              map[string]bool
	rows              int64
	// lines of the last broken row that are still to be returned as rows
	lost int64
}

// Open opens a path as a table: see Options.FormatOf.
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
		return r.at(0, errors.New("is no matrix: ‹labels=FILE› is for .npy and .npz"))
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
		// what a model remembers is of another file
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
		err = errors.New("is no table by its name: say which with ‹data-format=csv›, tsv, jsonl, parquet, arrow, npy or npz")
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

// findColumns looks the columns up.
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
			errs = append(errs, fmt.Errorf("column %q stands twice: rename one of them", name))
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
			"if this is no table)", "")
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

// otherwise says how line 1 may be meant otherwise, if it looks so.
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

// Read returns the next row, or io.EOF. Errors about the input name file and line.
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

// pauses reads ahead until the line of the next row is there, and says whether it should not be
// waited for.
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
			return false // the reader meets it again
		}
	}
	return false
}

// skip counts a broken row, and says whether it may be passed over.
func (r *Reader) skip(err error) bool {
	if r.broken++; r.first == nil {
		r.first = err
	}
	return r.broken <= r.o.SkipBroken
}

// Refuse reports the row read last as broken for the reason err; nil: it may be passed over.
func (r *Reader) Refuse(err error) error {
	if err = r.at(r.row.Line, err); r.skip(err) {
		return nil
	}
	return err
}

// checkSeen refuses a column that no record has, in a format without a header.
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

// fill reads the row's cells. Its errors name the column.
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
			*c.to = r.cells[0] // an id as it stands: what is written is joined by it
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

// Schema describes what was read. The widths of lists are known after the first row.
func (r *Reader) Schema() *Schema { return r.schema }

// Broken is the number of rows passed over, and the error of the first.
func (r *Reader) Broken() (n int64, first error) { return min(r.broken, r.o.SkipBroken), r.first }

// Name is the path as messages show it.
func (r *Reader) Name() string { return r.name }

// Size is the size of the current file and those before it, as stored; -1: unknown.
func (r *Reader) Size() int64 {
	if r.size < 0 {
		return -1
	}
	return r.done + r.size
}

// BytesRead is how much of Size was read.
func (r *Reader) BytesRead() int64 {
	if r.file == nil {
		return r.done
	}
	return r.done + r.file.BytesRead()
}

// Close closes what is open.
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
