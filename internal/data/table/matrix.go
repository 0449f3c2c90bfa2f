package table

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"taxon/internal/data/textio"
	"taxon/internal/fs"
)

// matrix reads the rows of a NumPy array (.npy, dense) or of a matrix from SciPy's save_npz (.npz,
// compressed sparse rows). The arrays of a .npz are read as parallel streams. The labels come from
// another file.
type matrix struct {
	rows, columns int64
	known         int64 // columns that may hold a value; 0 stands for all
	dense         *npy  // nil for compressed rows
	begin         *npy
	index, value  *npy
	at            int64 // value of begin at the start of the next row
	row           int64
	pairs         []entry
	labels        *labelFile
	close         []io.Closer
}

type entry struct {
	index uint32
	value float32
}

// Matrix reports whether files of a format hold a matrix.
func Matrix(format string) bool { return format == "npy" || format == "npz" }

// openMatrix opens the file behind f.
func openMatrix(f *fs.File, path, format string) (m *matrix, err error) {
	m = &matrix{}
	if format == "npy" {
		if m.dense, err = openNpy(f); err != nil {
			return nil, err
		}
		if len(m.dense.shape) != 2 {
			return nil, fmt.Errorf("an array of %d dimensions: want 2, rows and features", len(m.dense.shape))
		}
		m.rows, m.columns = m.dense.shape[0], m.dense.shape[1]
		return m, m.check()
	}
	file, size, err := seekable(f, path, "npz")
	if err != nil {
		return nil, err
	}
	m.close = append(m.close, file)
	if err := m.openZip(file, size); err != nil {
		m.end()
		return nil, err
	}
	return m, nil
}

func (m *matrix) openZip(file io.ReaderAt, size int64) error {
	z, err := zip.NewReader(file, size)
	if err != nil {
		return fmt.Errorf("is no .npz file: %w", err)
	}
	open := func(name string) (*npy, error) {
		for _, member := range z.File {
			if member.Name == name+".npy" {
				r, err := member.Open()
				if err != nil {
					return nil, err
				}
				m.close = append(m.close, r)
				return openNpy(r)
			}
		}
		return nil, fmt.Errorf("holds no array %q: want a matrix that scipy.sparse.save_npz wrote", name)
	}
	format, err := open("format")
	if err != nil {
		return err
	}
	kind, err := format.text()
	if err = cmp.Or(err, format.atEnd()); err != nil {
		return fmt.Errorf("format: %w", err)
	}
	if kind != "csr" {
		return fmt.Errorf("a matrix in format %q: want compressed rows, X.tocsr()", kind)
	}
	shape, err := open("shape")
	if err != nil {
		return err
	}
	if m.rows, err = shape.integer(); err == nil {
		m.columns, err = shape.integer()
	}
	if err = cmp.Or(err, shape.atEnd()); err != nil {
		return fmt.Errorf("shape: %w", err)
	}
	for name, to := range map[string]**npy{"indptr": &m.begin, "indices": &m.index, "data": &m.value} {
		if *to, err = open(name); err != nil {
			return err
		}
		if len((*to).shape) != 1 {
			return fmt.Errorf("array %q has %d dimensions", name, len((*to).shape))
		}
	}
	if m.begin.shape[0] != m.rows+1 || m.index.shape[0] != m.value.shape[0] {
		return errors.New("its arrays do not fit together: indptr has rows + 1 entries, indices and data " +
			"as many as each other")
	}
	if first, err := m.begin.integer(); err != nil || first != 0 {
		return fmt.Errorf("indptr begins with %d, not 0: %w", first, cmp.Or(err, errors.New("damaged")))
	}
	return m.check()
}

func (m *matrix) check() error {
	if m.rows < 0 || m.columns < 1 || m.columns > math.MaxInt32 {
		return fmt.Errorf("a matrix of %d rows and %d columns: want 1 to %d columns", m.rows, m.columns, math.MaxInt32)
	}
	return nil
}

// checkWidth compares the width of a matrix with that of the model or of earlier files. A dense
// matrix must have the same number of columns. A sparse matrix must have no value beyond them.
func (r *Reader) checkWidth() error {
	m, s := r.matrix, r.schema
	want, those := cmp.Or(s.Matrix, int64(s.Width())), "the model's training data have"
	if r.use.Weights {
		want, those = s.Matrix, "files before have"
		s.Matrix = max(s.Matrix, m.columns)
	}
	switch {
	case want == 0 || m.columns == want:
	case m.dense != nil:
		return fmt.Errorf("a matrix of %d columns, and %s %d", m.columns, those, want)
	case !r.use.Weights:
		m.known = want
	}
	return nil
}

func (r *Reader) readMatrix() (*Row, error) {
	r.row = Row{Labels: r.row.Labels[:0], Index: r.row.Index[:0], Value: r.row.Value[:0]}
	err := r.matrix.next(&r.row)
	l := r.matrix.labels
	switch {
	case errors.Is(err, io.EOF) && r.rows == 0:
		err = fs.Inputf(r.name, 0, "no row in it: the matrix is empty")
	case errors.Is(err, io.EOF):
		if l != nil {
			if err := l.atEnd(); err != nil {
				return nil, err
			}
		}
		return nil, io.EOF
	case err == nil && l != nil && l.array != nil:
		if err := r.readLabel(l); err != nil {
			return nil, fs.Inputf(l.file.Name(), l.rows, "%w", err)
		}
	case err == nil && l != nil:
		if err := l.next(&r.row); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, r.at(r.row.Line, err)
	}
	r.rows++
	return &r.row, nil
}

// next reads a row. It returns io.EOF after the last.
func (m *matrix) next(row *Row) error {
	if m.row == m.rows {
		return m.atEnd()
	}
	m.row++
	row.Line = m.row
	m.pairs = m.pairs[:0]
	if m.dense != nil {
		for c := range m.columns {
			v, err := m.dense.number()
			if errors.Is(err, errTruncated) {
				return fmt.Errorf("its header says %d rows, and the file holds %d: it is cut off or damaged", m.rows, m.row-1)
			}
			if err != nil {
				return err
			}
			m.put(uint32(c), v)
		}
	} else if err := m.sparse(); err != nil {
		return err
	}
	for _, p := range m.pairs {
		if m.known > 0 && int64(p.index) >= m.known {
			return fmt.Errorf("column %d holds a value, and the model's training data have %d columns", p.index+1, m.known)
		}
		if f := float64(p.value); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("column %d holds a value that is not finite in float32", p.index+1)
		}
		row.Index, row.Value = append(row.Index, p.index+1), append(row.Value, float64(p.value))
	}
	return nil
}

// atEnd returns io.EOF unless bytes follow the last row. It reads the arrays of a .npz file to
// their ends, where their checksums are verified.
func (m *matrix) atEnd() error {
	arrays := []*npy{m.dense}
	if m.dense == nil {
		if m.at != m.index.shape[0] {
			return fmt.Errorf("its last row ends at entry %d of %d: it is damaged", m.at, m.index.shape[0])
		}
		arrays = []*npy{m.begin, m.index, m.value}
	}
	for _, array := range arrays {
		if err := array.atEnd(); err != nil {
			return fmt.Errorf("after the %d rows that its header states: %w", m.rows, err)
		}
	}
	return io.EOF
}

func (m *matrix) put(column uint32, v float64) {
	if v != 0 {
		m.pairs = append(m.pairs, entry{column, float32(v)})
	}
}

func (m *matrix) sparse() error {
	end, err := m.begin.integer()
	if err != nil || end < m.at || end > m.index.shape[0] {
		return fmt.Errorf("indptr does not ascend: %w", cmp.Or(err, errors.New("damaged")))
	}
	sorted, last := true, int64(-1)
	for ; m.at < end; m.at++ {
		c, err1 := m.index.integer()
		v, err2 := m.value.number()
		if err := cmp.Or(err1, err2); err != nil {
			return err
		}
		if c < 0 || c >= m.columns {
			return fmt.Errorf("column %d of a matrix with %d", c+1, m.columns)
		}
		sorted = sorted && c > last
		last = c
		m.put(uint32(c), v)
	}
	if sorted {
		return nil
	}
	slices.SortFunc(m.pairs, func(a, b entry) int { return cmp.Compare(a.index, b.index) })
	for i := 1; i < len(m.pairs); i++ {
		if m.pairs[i].index == m.pairs[i-1].index {
			return fmt.Errorf("column %d occurs twice: X.sum_duplicates() joins them", m.pairs[i].index+1)
		}
	}
	return nil
}

func (m *matrix) end() {
	for _, c := range m.close {
		c.Close()
	}
	if m.labels != nil {
		m.labels.file.Close()
	}
}

// npy reads the entries of a NumPy array in order.
type npy struct {
	r     *bufio.Reader
	shape []int64
	kind  byte // i, u, f or b for numbers, S or U for texts
	size  int  // bytes per entry
	buf   []byte
}

var (
	npyType  = regexp.MustCompile(`'descr': *'([<|=>]?)([a-zA-Z])([0-9]+)'`)
	npyOrder = regexp.MustCompile(`'fortran_order': *(True|False)`)
	npyShape = regexp.MustCompile(`'shape': *\(([0-9, ]*)\)`)
)

// openNpy reads the header of an array, in versions 1 to 3.
func openNpy(r io.Reader) (*npy, error) {
	n := &npy{r: bufio.NewReaderSize(r, 256<<10)}
	head := make([]byte, 12)
	if err := checkKind(n.r, "npy"); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(n.r, head[:10]); err != nil {
		return nil, errors.New("is cut off")
	}
	length := int(binary.LittleEndian.Uint16(head[8:]))
	if head[6] > 1 {
		if _, err := io.ReadFull(n.r, head[10:]); err != nil {
			return nil, errors.New("is cut off")
		}
		length = int(binary.LittleEndian.Uint32(head[8:]))
	}
	if length > 1<<16 {
		return nil, errors.New("is damaged: its header is too long")
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(n.r, text); err != nil {
		return nil, errors.New("is cut off")
	}
	kind, order, shape := npyType.FindSubmatch(text), npyOrder.FindSubmatch(text), npyShape.FindSubmatch(text)
	if kind == nil || order == nil || shape == nil {
		return nil, errors.New("an array of objects, or of records: want numbers")
	}
	n.kind = kind[2][0]
	n.size, _ = strconv.Atoi(string(kind[3]))
	for _, d := range strings.FieldsFunc(string(shape[1]), func(c rune) bool { return c == ',' || c == ' ' }) {
		x, err := strconv.ParseInt(d, 10, 64)
		if err != nil {
			return nil, errors.New("is damaged: its shape is no list of numbers")
		}
		n.shape = append(n.shape, x)
	}
	wide := n.size
	if n.kind == 'U' {
		wide *= 4
	}
	switch {
	case string(order[1]) == "True" && len(n.shape) > 1:
		return nil, errors.New("an array in Fortran's order: save np.ascontiguousarray(X)")
	case string(kind[1]) == ">" && n.size > 1:
		return nil, errors.New("an array of big-endian numbers: save X.astype('<f4')")
	case wide > 1<<20 || !bytes.ContainsRune([]byte("iufbSU"), rune(n.kind)) || bytes.ContainsRune([]byte("iufb"),
		rune(n.kind)) && !slices.Contains([]int{1, 2, 4, 8}, n.size):
		return nil, fmt.Errorf("an array of %s: want float16, float32, float64 or integers", kind[0])
	}
	n.buf = make([]byte, wide)
	return n, nil
}

// errTruncated is the error for an array with fewer entries than its header states. It is not
// io.EOF, which would look like a regular end.
var errTruncated = errors.New("is cut off or damaged: an array has fewer entries than its header states")

func (n *npy) read() error {
	_, err := io.ReadFull(n.r, n.buf)
	if err == io.EOF || err == io.ErrUnexpectedEOF { // compared directly, because io.ReadFull does not wrap them
		return errTruncated
	}
	return err
}

// atEnd returns an error if bytes follow the last entry.
func (n *npy) atEnd() error {
	_, err := n.r.ReadByte()
	switch {
	case err == nil:
		return errors.New("bytes after the array's end: were files joined?")
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// integer returns the next entry of an array of integers.
func (n *npy) integer() (int64, error) {
	t, v, err := n.next()
	switch {
	case err != nil:
		return 0, err
	case t.kind == unsigned && v.whole < 0:
		return 0, errors.New("a number beyond 2^63")
	case t.kind == float || t.kind == textual:
		return 0, errors.New("an array of integers was expected")
	}
	return v.whole, nil
}

// number returns the next entry of an array of numbers.
func (n *npy) number() (float64, error) {
	if n.kind == 'f' { // the usual case
		if err := n.read(); err != nil {
			return 0, err
		}
		return n.float()
	}
	t, v, err := n.next()
	if err == nil && t.kind == textual {
		err = errors.New("an array of numbers was expected")
	}
	if err != nil {
		return 0, err
	}
	return t.number(v)
}

// float decodes the entry that was read.
func (n *npy) float() (float64, error) {
	switch n.size {
	case 2:
		return float64(Half(binary.LittleEndian.Uint16(n.buf))), nil
	case 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(n.buf))), nil
	case 8:
		return math.Float64frombits(binary.LittleEndian.Uint64(n.buf)), nil
	}
	return 0, fmt.Errorf("floats of %d bytes: want 2, 4 or 8", n.size)
}

// text returns the next entry as text.
func (n *npy) text() (string, error) {
	t, v, err := n.next()
	if err != nil {
		return "", err
	}
	return t.text(v)
}

// next returns the next entry and its type.
func (n *npy) next() (t logical, v value, err error) {
	if err := n.read(); err != nil {
		return t, v, err
	}
	var bits uint64 // bits of a number
	if n.kind != 'S' && n.kind != 'U' {
		for i := n.size - 1; i >= 0; i-- {
			bits = bits<<8 | uint64(n.buf[i])
		}
	}
	switch n.kind {
	case 'b':
		return logical{kind: boolean}, value{whole: int64(bits)}, nil
	case 'u':
		return logical{kind: unsigned}, value{whole: int64(bits)}, nil
	case 'i':
		shift := 64 - 8*n.size
		return logical{kind: signed}, value{whole: int64(bits) << shift >> shift}, nil
	case 'f':
		x, err := n.float()
		return logical{kind: float, bits: max(32, 8*n.size)}, value{float: x}, err
	case 'S':
		return logical{kind: textual}, value{text: string(bytes.TrimRight(n.buf, "\x00"))}, nil
	}
	var b strings.Builder
	for i := 0; i < len(bytes.TrimRight(n.buf, "\x00")); i += 4 {
		c := binary.LittleEndian.Uint32(n.buf[i:])
		if c > unicode.MaxRune || !utf8.ValidRune(rune(c)) {
			return t, v, fmt.Errorf("a text with %#x, which is no character of Unicode", c)
		}
		b.WriteRune(rune(c))
	}
	return logical{kind: textual}, value{text: b.String()}, nil
}

// labelFile reads the labels of a matrix. They are in a text file with a line of labels for each
// row, or in a NumPy array with one label for each row.
type labelFile struct {
	file  *fs.File
	array *npy
	lines *textio.Reader
	rows  int64
}

func (r *Reader) openLabels() (err error) {
	l := &labelFile{}
	if l.file, err = fs.Open(r.ctx, r.src, r.o.Labels); err != nil {
		return err
	}
	r.matrix.labels = l
	if strings.EqualFold(filepath.Ext(r.o.Labels), ".npy") {
		if l.array, err = openNpy(l.file); err == nil && (len(l.array.shape) != 1 || l.array.shape[0] != r.matrix.rows) {
			err = fmt.Errorf("an array of shape %v beside a matrix of %d rows: want one label a row", l.array.shape,
				r.matrix.rows)
		}
		if err != nil {
			return fs.Inputf(l.file.Name(), 0, "%w", err)
		}
		return nil
	}
	l.lines = textio.NewReader(l.file, l.file.Name())
	return nil
}

// readLabel uses the next entry of an array as the cell of the label column.
func (r *Reader) readLabel(l *labelFile) error {
	l.rows++
	name, err := l.array.text()
	if err != nil {
		return err
	}
	r.cells = append(r.cells[:0], name)
	return r.fillLabels()
}

// next appends the labels of the next row, which are on the next line.
func (l *labelFile) next(row *Row) error {
	l.rows++
	line, err := l.lines.Next()
	if errors.Is(err, io.EOF) {
		return fs.Inputf(l.file.Name(), 0, "has %d lines, and the matrix more rows: want a line of labels a row", l.rows-1)
	}
	for rest := bytes.Clone(line); err == nil && len(rest) > 0; {
		var name []byte
		if name, rest, err = textio.CutLabel(rest); err == nil && (len(name) == 0 || len(rest) > 0 &&
			(rest[0] != ',' || len(rest) == 1)) {
			err = errors.New("want labels separated by single commas; one with a blank stands in quotes")
		}
		if err != nil {
			return l.lines.Errorf("%v", err)
		}
		row.Labels, rest = append(row.Labels, name), bytes.TrimPrefix(rest, []byte(","))
	}
	return err
}

// atEnd returns an error if labels follow the last row.
func (l *labelFile) atEnd() error {
	if l.array != nil {
		if err := l.array.atEnd(); err != nil {
			return fs.Inputf(l.file.Name(), 0, "%w", err)
		}
		return nil
	}
	if _, err := l.lines.Next(); err == nil {
		return l.lines.Errorf("a line more than the %d rows of the matrix", l.rows)
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
