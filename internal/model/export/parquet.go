package export

import (
	"context"
	"encoding/binary"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
)

// groupRows is how many rows a row group holds.
const groupRows = 1 << 20

// row is a weight in long form. Its fields are the file's columns, all required. Strings are in
// dictionaries.
type row struct {
	Kind    string  `parquet:"kind,dict"` // node, spawned, virtual or dummy
	Node    string  `parquet:"node,dict"` // name; - for a virtual root
	Feature int32   `parquet:"feature"`   // index in the input, counted from 1; 0 for the bias
	Weight  float32 `parquet:"weight"`
}

// wordRow is a row of a model whose features have names.
type wordRow struct {
	Kind    string  `parquet:"kind,dict"`
	Node    string  `parquet:"node,dict"`
	Feature int32   `parquet:"feature"`
	Word    string  `parquet:"word,dict"` // empty for the bias
	Weight  float32 `parquet:"weight"`
}

// Parquet writes the nodes [first, last), internal ones too, in long form: a row a weight, in
// node order, features ascending, the bias last. It is not compressed. Memory: one row group.
func (s *Source) Parquet(ctx context.Context, w io.Writer, first, last, threads int) error {
	if !s.m.Named() {
		return writeParquet(ctx, s, w, first, last, threads, func(r row) row { return r })
	}
	word := make(map[int32]string, len(s.order))
	for c, f := range s.m.Feature {
		word[int32(f)] = s.m.Word(c)
	}
	return writeParquet(ctx, s, w, first, last, threads, func(r row) wordRow {
		return wordRow{r.Kind, r.Node, r.Feature, word[r.Feature], r.Weight}
	})
}

// writeParquet is Parquet with rows made by `of`.
func writeParquet[R any](ctx context.Context, s *Source, w io.Writer, first, last, threads int, of func(row) R) error {
	p := newRowWriter(s, w, of)
	if err := Render(ctx, s.m, p, first, last, threads, s.appendNode); err != nil {
		return err
	}
	return p.to.Close()
}

// appendNode renders node n for rowWriter.Write: for each weight u32 node, u32 feature, u32
// bits of the weight.
func (s *Source) appendNode(b []byte, n int, vector []float32) []byte {
	s.each(vector, func(column uint32, v float32) {
		feature := column + 1
		if column == uint32(s.width) {
			feature = 0
		}
		for _, u := range []uint32{uint32(n), feature, math.Float32bits(v)} {
			b = binary.LittleEndian.AppendUint32(b, u)
		}
	})
	return b
}

// rowWriter turns rendered nodes into rows.
type rowWriter[R any] struct {
	s    *Source
	of   func(row) R
	to   *parquet.GenericWriter[R]
	rows []R
}

func newRowWriter[R any](s *Source, w io.Writer, of func(row) R) *rowWriter[R] {
	return &rowWriter[R]{s: s, of: of, to: parquet.NewGenericWriter[R](w, parquet.MaxRowsPerRowGroup(groupRows),
		parquet.CreatedBy("taxon", "", ""))}
}

// Write takes whole nodes, as Render passes them.
func (p *rowWriter[R]) Write(b []byte) (int, error) {
	p.rows = p.rows[:0]
	node := -1
	var r row
	for at := 0; at < len(b); at += 12 {
		if n := int(binary.LittleEndian.Uint32(b[at:])); n != node {
			node = n
			r.Kind, r.Node = p.s.m.VectorName(n)
		}
		r.Feature, r.Weight = int32(binary.LittleEndian.Uint32(b[at+4:])),
			math.Float32frombits(binary.LittleEndian.Uint32(b[at+8:]))
		p.rows = append(p.rows, p.of(r))
	}
	_, err := p.to.Write(p.rows)
	return len(b), err
}
