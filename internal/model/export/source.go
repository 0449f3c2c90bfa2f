package export

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"taxon/internal/model"
	"taxon/internal/model/form"
)

// Source is the input of all formats. It is a model without the weights below the threshold, with
// columns in input order.
type Source struct {
	m         *model.Model
	threshold float32
	// order lists the model's columns by ascending input index.
	order []uint32
	// width is the number of features of the input, that is, the highest index.
	width int
}

// NewSource prepares the weights of m. Weights below threshold in absolute value are omitted,
// except the bias.
func NewSource(m *model.Model, threshold float64) (*Source, error) {
	if !(threshold >= 0) || math.IsInf(threshold, 0) {
		return nil, fmt.Errorf("export: threshold %v: must be a number >= 0", threshold)
	}
	s := &Source{m: m, threshold: float32(threshold), order: make([]uint32, len(m.Feature))}
	for c := range s.order {
		s.order[c] = uint32(c)
		s.width = max(s.width, int(m.Feature[c]))
	}
	slices.SortFunc(s.order, func(a, b uint32) int { return int(int64(m.Feature[a]) - int64(m.Feature[b])) })
	return s, nil
}

// hasBias reports whether the matrix has a last column for the bias.
func (s *Source) hasBias() bool { return s.m.Columns() > len(s.order) }

// columns returns the width of a matrix, which is the number of features of the input, plus one if
// there is a bias.
func (s *Source) columns() int {
	if s.hasBias() {
		return s.width + 1
	}
	return s.width
}

// CheckMatrix returns an error unless the model predicts the class with the greatest product, or
// sum of products. The vectors of other models make no sense as rows of a matrix.
func (s *Source) CheckMatrix() error {
	if p := s.m.Form.Predictor; p != form.Linear && p != form.Sums {
		return fmt.Errorf("export: a model that predicts by %s is not a matrix of classes: use ‹format=text›, parquet or "+
			"model",
			p)
	}
	return nil
}

// keeps reports whether weight v of a feature is exported.
func (s *Source) keeps(v float32) bool {
	return v != 0 && float32(math.Abs(float64(v))) >= s.threshold
}

// each calls visit with column and weight of every exported entry of a vector, columns ascending.
func (s *Source) each(vector []float32, visit func(column uint32, v float32)) {
	for _, c := range s.order {
		if v := vector[c]; s.keeps(v) {
			visit(s.m.Feature[c]-1, v)
		}
	}
	if s.hasBias() {
		if v := vector[len(vector)-1]; v != 0 {
			visit(uint32(s.width), v)
		}
	}
}

// Labels returns the names of the terminals among nodes [first, last), one per line: the rows of a
// matrix.
func (s *Source) Labels(first, last int) []byte {
	var b []byte
	for n := first; n < last; n++ {
		if s.m.Tree.Leaf[n] {
			b = append(append(b, s.m.LineName(n)...), '\n')
		}
	}
	return b
}

// Features returns the files that describe the columns of a matrix, without the bias, one line per
// column. features.txt has the words of texts and the names of table columns, idf.txt the idf of
// words (1 for numbers beside them), and table.json the scaling of numbers. A line is empty if the
// model has no such index.
func (s *Source) Features() map[string][]byte {
	files := map[string][]byte{}
	list := func(name string, of func(column uint32) string) {
		b, line := []byte{}, 0
		for _, c := range s.order {
			for ; line < int(s.m.Feature[c])-1; line++ {
				b = append(b, '\n')
			}
			b = append(append(b, of(c)...), '\n')
			line++
		}
		files[name] = b
	}
	if s.m.Named() {
		list("features.txt", func(c uint32) string { return s.m.Word(int(c)) })
	}
	if s.m.Text != nil {
		b, _ := json.Marshal(s.m.Data.Terms()) // strings and numbers can always be encoded
		files["terms.json"] = append(b, '\n')
		list("idf.txt", func(c uint32) string { return strconv.FormatFloat(s.m.Text.IDF[c], 'g', -1, 64) })
	}
	if t := s.m.Data.Table; t != nil && len(t.Mean) > 0 {
		b, _ := json.MarshalIndent(t, "", "  ") // finite numbers and names can always be encoded
		files["table.json"] = append(b, '\n')
	}
	return files
}

// rows is a range of nodes whose terminals are the rows of one matrix. begin has the index of each
// row's first entry, and at the end the number of entries.
type rows struct {
	s           *Source
	first, last int
	threads     int
	begin       []int64
}

// count walks the nodes once to count each row's weights.
func (s *Source) count(ctx context.Context, first, last, threads int) (*rows, error) {
	r := &rows{s: s, first: first, last: last, threads: threads}
	counts := make([]int64, last-first)
	leaf := s.m.Tree.Leaf
	if err := RenderRows(ctx, s.m, io.Discard, first, last, threads, func(b []byte, n int, vector []float32) []byte {
		if leaf[n] {
			s.each(vector, func(uint32, float32) { counts[n-first]++ })
		}
		return b
	}); err != nil {
		return nil, err
	}
	r.begin = []int64{0}
	for i, n := range counts {
		if leaf[first+i] {
			r.begin = append(r.begin, r.begin[len(r.begin)-1]+n)
		}
	}
	return r, nil
}

func (r *rows) len() int       { return len(r.begin) - 1 }
func (r *rows) entries() int64 { return r.begin[len(r.begin)-1] }

// writeIndices writes the columns of all entries, int32, row by row.
func (r *rows) writeIndices(ctx context.Context, w io.Writer) error {
	return r.write(ctx, w, func(b []byte, column uint32, _ float32) []byte {
		return binary.LittleEndian.AppendUint32(b,
			column)
	})
}

// writeValues writes the weights of all entries, float32, row by row.
func (r *rows) writeValues(ctx context.Context, w io.Writer) error {
	return r.write(ctx, w, func(b []byte, _ uint32, v float32) []byte {
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	})
}

func (r *rows) write(ctx context.Context, w io.Writer, entry func(b []byte, column uint32, v float32) []byte) error {
	return RenderRows(ctx, r.s.m, w, r.first, r.last, r.threads, func(b []byte, n int, vector []float32) []byte {
		if r.s.m.Tree.Leaf[n] {
			r.s.each(vector, func(column uint32, v float32) { b = entry(b, column, v) })
		}
		return b
	})
}

// writeBegin writes the starts of the rows, and the end, as int64.
func (r *rows) writeBegin(w io.Writer) error {
	b := make([]byte, 0, 8*len(r.begin))
	for _, n := range r.begin {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	_, err := w.Write(b)
	return err
}
