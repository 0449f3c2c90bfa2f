package export

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// NPZ writes the terminals among nodes [first, last) as SciPy's save_npz writes a csr_matrix: the
// arrays indices (int32), indptr (int64), format, shape (int64) and data (float32) as npy files in
// an uncompressed zip. Sizes follow each file, so the writer need not seek. The shape is terminals
// x (features of the input, then the bias).
func (s *Source) NPZ(ctx context.Context, w io.Writer, first, last, threads int) error {
	r, err := s.count(ctx, first, last, threads)
	if err != nil {
		return err
	}
	z := zip.NewWriter(w)
	for _, a := range []struct {
		name, dtype, shape string
		write              func(io.Writer) error
	}{
		{"indices", "<i4", fmt.Sprintf("(%d,)", r.entries()), func(w io.Writer) error { return r.writeIndices(ctx, w) }},
		{"indptr", "<i8", fmt.Sprintf("(%d,)", len(r.begin)), r.writeBegin},
		{"format", "|S3", "()", func(w io.Writer) error { _, err := io.WriteString(w, "csr"); return err }},
		{"shape", "<i8", "(2,)", func(w io.Writer) error {
			return binary.Write(w, binary.LittleEndian, []int64{int64(r.len()), int64(s.columns())})
		}},
		{"data", "<f4", fmt.Sprintf("(%d,)", r.entries()), func(w io.Writer) error { return r.writeValues(ctx, w) }},
	} {
		f, err := z.CreateHeader(&zip.FileHeader{Name: a.name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		if _, err := f.Write(npyHeader(a.dtype, a.shape)); err != nil {
			return err
		}
		if err := a.write(f); err != nil {
			return err
		}
	}
	return z.Close()
}

// npyHeader returns the head of an npy file, version 1.0: magic, version, length of the description
// (u16), and the description. That is a Python literal, padded with blanks so that the data begin
// at a multiple of 64.
func npyHeader(dtype, shape string) []byte {
	const head = 10
	d := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", dtype, shape)
	d += strings.Repeat(" ", (64-(head+len(d)+1)%64)%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(d)), byte(len(d)>>8))
	return append(b, d...)
}

// tensor is an entry of a safetensors header.
type tensor struct {
	Dtype   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// Safetensors writes the terminals among nodes [first, last) as a sparse matrix in compressed row
// form: tensors indptr (I64, rows + 1), indices (I32) and data (F32). The metadata have the shape
// (rows, features of the input and the bias last), the value of the bias feature and the layout. A
// dense matrix would take classes x features x 4 bytes.
//
// The file is the u64 length of the header, the header in JSON padded with blanks to a multiple of
// 8, and the tensors.
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
