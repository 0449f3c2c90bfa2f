package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"taxon/internal/linalg/sparse"
)

// Subset copies the given rows, which must be ascending, into a set of its own in memory, for
// example a fold of a cross-validation. Columns, labels, vocabulary and idf are shared with s,
// whether or not the rows use them. A label may thus have no instances. The fingerprint is derived
// from the fingerprint of s and the rows. Subset takes O(nonzeros of the rows) time and memory.
func (s *Set) Subset(rows []uint32) *Set {
	t := *s
	t.maps, t.Warnings, t.Terms = nil, nil, nil
	index, value := make([][]uint32, len(rows)), make([][]float32, len(rows))
	t.FeatureRows = make([]uint32, len(s.FeatureRows))
	t.Weight, t.Stats.Weight = nil, 0
	t.LabelBegin, t.LabelIndex = make([]uint64, 1, len(rows)+1), nil
	positives := make([][]uint32, len(s.Labels))
	h := sha256.New()
	h.Write([]byte(s.Fingerprint)) // a hash's Write never fails
	for i, r := range rows {
		index[i], value[i] = s.Matrix.Row(int(r))
		if s.Weight != nil {
			t.Weight = append(t.Weight, s.Weight[r])
			t.Stats.Weight += s.Weight[r]
		}
		if d := s.Documents(); int(r) >= d {
			t.Terms = append(t.Terms, s.Terms[int(r)-d])
		}
		for _, f := range index[i] {
			t.FeatureRows[f]++
		}
		for _, l := range s.LabelsOf(r) {
			t.LabelIndex = append(t.LabelIndex, l)
			positives[l] = append(positives[l], uint32(i))
		}
		t.LabelBegin = append(t.LabelBegin, uint64(len(t.LabelIndex)))
		h.Write(binary.LittleEndian.AppendUint32(nil, r))
	}
	t.Matrix = sparse.FromRows(s.Matrix.Cols, index, value)
	t.PosBegin, t.PosRows = make([]uint64, 1, len(s.Labels)+1), nil
	for _, p := range positives {
		t.PosRows = append(t.PosRows, p...)
		t.PosBegin = append(t.PosBegin, uint64(len(t.PosRows)))
	}
	t.Fingerprint = hex.EncodeToString(h.Sum(nil))
	t.Stats.Terms = int64(len(t.Terms))
	t.Stats.Rows, t.Stats.Nonzeros, t.Stats.LabelEntries = int64(len(rows)), t.Matrix.NNZ, int64(len(t.LabelIndex))
	return &t
}

// Bitmap encodes a subset of n rows as bits: row i is bit i%8 of byte i/8.
func Bitmap(rows []uint32, n int) []byte {
	bits := make([]byte, (n+7)/8)
	for _, r := range rows {
		bits[r/8] |= 1 << (r % 8)
	}
	return bits
}

// Part returns the Subset of the rows in a Bitmap. Closing the subset closes s.
func (s *Set) Part(bits []byte) (*Set, error) {
	n := s.Matrix.Rows
	if len(bits) != (n+7)/8 || n%8 != 0 && bits[n/8]>>(n%8) != 0 {
		return nil, fmt.Errorf("%d bytes of rows do not fit a set of %d", len(bits), n)
	}
	var rows []uint32
	for i := range uint32(n) {
		if bits[i/8]>>(i%8)&1 != 0 {
			rows = append(rows, i)
		}
	}
	t := s.Subset(rows)
	t.maps = s.maps
	return t, nil
}
