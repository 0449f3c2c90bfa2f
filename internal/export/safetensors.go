package export

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// tensor is an entry of a safetensors header.
type tensor struct {
	Dtype   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// Safetensors writes the terminals among nodes [first, last) as a sparse matrix in
// compressed rows: tensors indptr (I64, rows + 1), indices (I32) and data (F32), with the
// shape (rows, features of the input and the bias last), the value of the bias feature and
// the layout as metadata. A dense matrix would have classes x features x 4 bytes.
//
// File: u64 length of the header, the header in JSON padded with blanks to a multiple of 8, the tensors.
func (s *Source) Safetensors(ctx context.Context, w io.Writer, first, last, threads int) error {
	r, err := s.count(ctx, first, last, threads)
	if err != nil {
		return err
	}
	end := int64(0)
	next := func(dtype string, n, size int64) tensor {
		t := tensor{dtype, []int64{n}, [2]int64{end, end + n*size}}
		end += n * size
		return t
	}
	header, err := json.Marshal(map[string]any{
		"__metadata__": map[string]string{
			"format": "csr", "shape": fmt.Sprintf("%d,%d", r.len(), s.columns()),
			"bias": strconv.FormatFloat(s.m.Options.Bias, 'g', -1, 64),
		},
		"indptr":  next("I64", int64(len(r.begin)), 8),
		"indices": next("I32", r.entries(), 4),
		"data":    next("F32", r.entries(), 4),
	})
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	header = append(header, strings.Repeat(" ", (8-len(header)%8)%8)...)
	if _, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)); err != nil {
		return err
	}
	if err := r.writeBegin(w); err != nil {
		return err
	}
	if err := r.writeIndices(ctx, w); err != nil {
		return err
	}
	return r.writeValues(ctx, w)
}
