package export

import (
	"context"
	"encoding/binary"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
)

// groupRows is the number of rows of a row group.
const groupRows = 1 << 20

// row is a weight in long form. Its fields are the file's columns, all required. Strings are stored
// in dictionaries.
type row struct {
	// Kind is node, spawned, virtual or dummy.
	Kind string `parquet:"kind,dict"`
	// Node is the name. It is "-" for a virtual root.
	Node string `parquet:"node,dict"`
	// Feature is the index in the input, starting at 1. It is 0 for the bias.
	Feature int32   `parquet:"feature"`
	Weight  float32 `parquet:"weight"`
}

// wordRow is a row of a model whose features have names.
type wordRow struct {
	Kind    string `parquet:"kind,dict"`
	Node    string `parquet:"node,dict"`
	Feature int32  `parquet:"feature"`
	// Word is empty for the bias.
	Word   string  `parquet:"word,dict"`
	Weight float32 `parquet:"weight"`
}

// Parquet writes the nodes [first, last), including internal ones, in long form: one row per
// weight, in node order, features ascending, the bias last. The file is not compressed. It takes
// the memory of one row group.
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

// writeParquet does what Parquet does, with rows that `of` makes.
func writeParquet[R any](ctx context.Context, s *Source, w io.Writer, first, last, threads int, of func(row) R) error {
	p := newRowWriter(s, w, of)
	if err := Render(ctx, s.m, p, first, last, threads, s.appendNode); err != nil {
		return err
	}
	return p.to.Close()
}

// appendNode renders node n for rowWriter.Write: u32 node, u32 feature and u32 bits of the weight
// for each weight.
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

// rowWriter converts rendered nodes to rows.
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

// Write writes whole nodes, as Render passes them.
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
