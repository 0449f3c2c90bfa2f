package table

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"taxon/internal/fs"
)

// arrowRecords reads Arrow's file format (.arrow, and .feather version 2) batch by batch, with
// one batch in memory.
type arrowRecords struct {
	file     *os.File
	in       *ipc.FileReader
	names    []string
	used     []int // columns of the file that are used
	batch    arrow.RecordBatch
	upcoming int // next batch
	at       int // row in batch
	row      int64
}

// openArrow opens the file behind f, as openParquet does.
func openArrow(f *fs.File, path string) (a *arrowRecords, err error) {
	file, _, err := seekable(f, path, "ARROW1")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	head := make([]byte, 6)
	if _, err := file.ReadAt(head, 0); err != nil || string(head) != "ARROW1" {
		if string(head[:4]) == "FEA1" {
			return nil, errors.New("is Feather of version 1: write version 2 (pyarrow.feather.write_feather does)")
		}
		return nil, errors.New("is no file of Arrow's file format: a stream is written anew with pyarrow.ipc.new_file")
	}
	a = &arrowRecords{file: file}
	defer caught("Arrow", &err)
	if a.in, err = ipc.NewFileReader(file); err != nil {
		return nil, fmt.Errorf("is no Arrow file that can be read: %w", err)
	}
	for _, field := range a.in.Schema().Fields() {
		a.names = append(a.names, field.Name)
	}
	return a, nil
}

func (a *arrowRecords) columns() []string { return a.names }

func (a *arrowRecords) find(name string) int {
	for i, c := range a.used {
		if a.names[c] == name {
			return i
		}
	}
	at := a.in.Schema().FieldIndices(name)
	if len(at) == 0 {
		return -1
	}
	a.used = append(a.used, at[0])
	return len(a.used) - 1
}

func (a *arrowRecords) next() (line int64, err error) {
	defer caught("Arrow", &err)
	for a.at++; a.batch == nil || a.at >= int(a.batch.NumRows()); a.at = 0 {
		if a.upcoming == a.in.NumRecords() {
			return a.row, io.EOF
		}
		if a.batch, err = a.in.RecordBatchAt(a.upcoming); err != nil {
			return a.row + 1, fmt.Errorf("the Arrow file is damaged: %w", err)
		}
		a.upcoming++
	}
	a.row++
	return a.row, nil
}

// cell resolves a dictionary: it returns the array and index of a value.
func cell(in arrow.Array, at int) (arrow.Array, int) {
	for {
		d, ok := in.(*array.Dictionary)
		if !ok || d.IsNull(at) {
			return in, at
		}
		in, at = d.Dictionary(), d.GetValueIndex(at)
	}
}

// entries calls f with each entry of a list, or with the value if it is no list. A missing list
// has no entries.
func entries(in arrow.Array, at int, f func(in arrow.Array, at int) error) (list bool, err error) {
	in, at = cell(in, at)
	l, ok := in.(array.ListLike)
	if !ok {
		return false, f(in, at)
	}
	if l.IsNull(at) {
		return false, nil
	}
	begin, end := l.ValueOffsets(at)
	for i := int(begin); i < int(end) && err == nil; i++ {
		err = f(cell(l.ListValues(), i))
	}
	return true, err
}

func (a *arrowRecords) texts(column int, dst []string) (_ []string, err error) {
	defer caught("Arrow", &err)
	_, err = entries(a.batch.Column(a.used[column]), a.at, func(in arrow.Array, at int) error {
		if in.IsNull(at) {
			return nil
		}
		switch v := in.(type) {
		case array.StringLike:
			if s := v.Value(at); s != "" {
				dst = append(dst, s)
			}
		case *array.Float16, *array.Float32, *array.Float64:
			if x, _ := arrowNumber(in, at); !math.IsNaN(x) {
				dst = append(dst, strconv.FormatFloat(x, 'f', -1, 64))
			}
		default:
			dst = append(dst, in.ValueStr(at))
		}
		return nil
	})
	return dst, err
}

func (a *arrowRecords) numbers(column int, dst []float64) (_ []float64, list bool, err error) {
	defer caught("Arrow", &err)
	list, err = entries(a.batch.Column(a.used[column]), a.at, func(in arrow.Array, at int) error {
		x, err := arrowNumber(in, at)
		dst = append(dst, x)
		return err
	})
	return dst, list, err
}

func arrowNumber(in arrow.Array, at int) (float64, error) {
	if in.IsNull(at) {
		return math.NaN(), nil
	}
	switch v := in.(type) {
	case *array.Float16:
		return float64(v.Value(at).Float32()), nil
	case *array.Float32:
		return float64(v.Value(at)), nil
	case *array.Float64:
		return v.Value(at), nil
	case array.StringLike:
		return parseNumber(v.Value(at))
	}
	return parseNumber(in.ValueStr(at)) // whole numbers, decimals, true and false
}

func (a *arrowRecords) close() {
	a.in.Close()
	a.file.Close()
}
