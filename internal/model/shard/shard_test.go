package shard

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/data/table"
)

func FuzzShard(f *testing.F) {
	b := AppendHeader(nil, 3)
	b = AppendRecord(b, 3, []uint32{0, 4}, []float32{1, -2})
	b = AppendRecord(b, 4, nil, nil)
	f.Add(b, 3, 2, 5)
	f.Add(b[:len(b)-1], 3, 2, 5)
	f.Add(b, 3, -1, 0)
	f.Fuzz(func(t *testing.T, b []byte, first, nodes, columns int) {
		recs, err := Parse(b, first, nodes, columns)
		if err != nil {
			return
		}
		again := AppendHeader(nil, first)
		for i, r := range recs {
			for _, c := range r.Columns {
				if int64(c) >= int64(columns) {
					t.Fatalf("column %d of %d", c, columns)
				}
			}
			again = AppendRecord(again, first+i, r.Columns, r.Values)
		}
		if !bytes.Equal(again, b) {
			t.Error("accepted bytes are not what the records encode to")
		}
	})
}

func FuzzPacked(f *testing.F) {
	for values, scale := range map[string][]float32{Singles: nil, Halves: nil, Bytes: {0.5, 0, 0.25}} {
		b := AppendPacked(nil, 3, []uint32{2, 0, 1}, []uint32{1, 200, 0}, []float32{1, -2, 0.5}, values, scale)
		f.Add(b, 3, 3, 201)
		f.Add(b[:len(b)-1], 3, 3, 201)
		f.Add(b, 3, 3, 200)
		f.Add(b, 3, 3, -9) // once taken for a great number
	}
	f.Fuzz(func(t *testing.T, b []byte, first, columns, nodes int) {
		s, err := ParsePacked(b, first, columns, nodes)
		if err != nil {
			return
		}
		var ids []uint32
		var deltas []float32
		counts := make([]uint32, columns)
		for i := range counts {
			s.Each(first+i, func(node uint32, delta float32) {
				if int64(node) >= int64(nodes) {
					t.Fatalf("node %d of %d", node, nodes)
				}
				counts[i]++
				ids, deltas = append(ids, node), append(deltas, delta)
			})
		}
		values := Singles
		switch {
		case s.bytes != nil:
			values = Bytes
		case s.values == nil:
			values = Halves
		}
		if !bytes.Equal(AppendPacked(nil, first, counts, ids, deltas, values, s.scale), b) {
			t.Error("accepted bytes are not what the entries encode to")
		}
	})
}

// Every half goes to float32 and back; every float32 goes to a nearest half.
func TestHalf(t *testing.T) {
	for h := range 1 << 16 {
		if f := table.Half(uint16(h)); f == f && toHalf(f) != uint16(h) {
			t.Fatalf("%#04x is %v, which is %#04x", h, f, toHalf(f))
		}
	}
	if f := table.Half(toHalf(float32(math.NaN()))); f == f {
		t.Error("not-a-number became a number")
	}
	rapid.Check(t, func(rt *rapid.T) {
		v := rapid.Float32Range(-65504, 65504).Draw(rt, "v")
		h := toHalf(v)
		e := math.Abs(float64(table.Half(h)) - float64(v))
		for _, near := range []uint16{h - 1, h + 1} {
			if f := table.Half(near); f-f == 0 && math.Abs(float64(f)-float64(v)) < e {
				rt.Fatalf("%v became %v, %v is nearer", v, table.Half(h), f)
			}
		}
	})
}
