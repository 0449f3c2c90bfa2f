package table

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"taxon/internal/fs"
)

// arrowRecords reads Arrow's file format (.arrow, and .feather version 2). It holds one record
// batch in memory.
type arrowRecords struct {
	file     *os.File
	in       *ipc.FileReader
	bound    *bound
	names    []string
	used     []int     // indices of the columns in use
	types    []logical // types of the columns in use
	batch    arrow.RecordBatch
	upcoming int // index of the next batch
	at       int // index of the current row in batch
	row      int64
}

// openArrow opens the file behind f. Like openParquet, it copies a file without random access.
func openArrow(f *fs.File, path string) (in records, err error) {
	file, size, err := seekable(f, path, "arrow")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	a := &arrowRecords{file: file, bound: &bound{size: size}}
	defer caught("Arrow", &err)
	if err := checkArrow(file, size); err != nil {
		return nil, fmt.Errorf("is no Arrow file that can be read: %w", err)
	}
	a.bound.reset()
	// the library's own limits are off; it still refuses lengths beyond the file's size
	if a.in, err = ipc.NewFileReader(file, ipc.WithAllocator(a.bound), ipc.WithBodySizeLimit(0),
		ipc.WithMetadataSizeLimit(0)); err != nil {
		return nil, fmt.Errorf("is no Arrow file that can be read: %w", err)
	}
	for _, field := range a.in.Schema().Fields() {
		a.names = append(a.names, field.Name)
	}
	return typed{a}, nil
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
	a.used, a.types = append(a.used, at[0]), append(a.types, arrowType(a.in.Schema().Field(at[0])))
	return len(a.used) - 1
}

func (a *arrowRecords) next() (line int64, err error) {
	defer caught("Arrow", &err)
	for a.at++; a.batch == nil || a.at >= int(a.batch.NumRows()); a.at = 0 {
		if a.upcoming == a.in.NumRecords() {
			return a.row, io.EOF
		}
		a.bound.reset()
		if a.batch, err = a.in.RecordBatchAt(a.upcoming); err != nil {
			return a.row + 1, fmt.Errorf("the Arrow file is damaged: %w", err)
		}
		a.upcoming++
	}
	a.row++
	return a.row, nil
}

func (a *arrowRecords) column(k int) (string, *logical) { return a.names[a.used[k]], &a.types[k] }

// arrowSchema decodes the schema that Arrow's libraries store in a Parquet file. It returns nil if
// the schema cannot be decoded.
func arrowSchema(encoded string) (schema *arrow.Schema) {
	defer func() {
		if recover() != nil {
			schema = nil
		}
	}()
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || checkMessage(b, io.NewSectionReader(bytes.NewReader(nil), 0, 0)) != nil {
		return nil
	}
	r, err := ipc.NewReader(bytes.NewReader(b), ipc.WithMetadataSizeLimit(int64(len(b))), ipc.WithBodySizeLimit(1))
	if err != nil {
		return nil
	}
	defer r.Release()
	return r.Schema()
}

// plain returns the type of a field's values and the name of its extension type, which is empty for
// an ordinary field.
func plain(field arrow.Field) (t arrow.DataType, extension string) {
	extension, _ = field.Metadata.GetValue(ipc.ExtensionTypeKeyName)
	for t = field.Type; ; {
		switch w := t.(type) {
		case *arrow.DictionaryType:
			t = w.ValueType
		case *arrow.RunEndEncodedType:
			t = w.Encoded()
		case arrow.ExtensionType:
			t, extension = w.StorageType(), w.ExtensionName()
		default:
			return t, extension
		}
	}
}

// arrowType returns the logical type of a column.
func arrowType(field arrow.Field) (out logical) {
	t, extension := plain(field)
	if l, ok := t.(arrow.ListLikeType); ok && t.ID() != arrow.MAP {
		out = arrowType(l.ElemField())
		if out.list {
			out = refused("lists of lists")
		}
		out.list = true
		return out
	}
	switch t := t.(type) {
	case *arrow.NullType, *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType, *arrow.BinaryType,
		*arrow.LargeBinaryType, *arrow.BinaryViewType:
		return logical{kind: textual}
	case *arrow.FixedSizeBinaryType:
		if extension == "arrow.uuid" {
			return logical{kind: uuid}
		}
		return logical{kind: textual}
	case *arrow.BooleanType:
		return logical{kind: boolean}
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type:
		return logical{kind: signed}
	case *arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type:
		return logical{kind: unsigned}
	case *arrow.Float16Type, *arrow.Float32Type:
		return logical{kind: float, bits: 32}
	case *arrow.Float64Type:
		return logical{kind: float, bits: 64}
	case arrow.DecimalType:
		return decimals(t.GetScale())
	case *arrow.Date32Type, *arrow.Date64Type:
		return logical{kind: date}
	case *arrow.Time32Type:
		return logical{kind: timeOfDay, second: int64(time.Second / t.Unit.Multiplier())}
	case *arrow.Time64Type:
		return logical{kind: timeOfDay, second: int64(time.Second / t.Unit.Multiplier())}
	case *arrow.TimestampType:
		k := timestamp
		if t.TimeZone != "" {
			k = instant
		}
		return logical{kind: k, second: int64(time.Second / t.Unit.Multiplier())}
	case *arrow.DurationType:
		return refused("durations")
	case *arrow.StructType:
		return refused("structs")
	case *arrow.MapType:
		return refused("maps")
	}
	return refused("values of Arrow's type " + t.Name())
}

// resolve follows dictionaries, run-length encodings and extension types to the array and index
// that store a value. A null value has no array.
func resolve(in arrow.Array, at int) (arrow.Array, int) {
	for {
		if in.IsNull(at) || in.DataType().ID() == arrow.NULL {
			return nil, 0
		}
		switch w := in.(type) {
		case *array.Dictionary:
			in, at = w.Dictionary(), w.GetValueIndex(at)
		case *array.RunEndEncoded:
			in, at = w.Values(), w.GetPhysicalIndex(at)
		case array.ExtensionArray:
			in = w.Storage()
		default:
			return in, at
		}
	}
}

func (a *arrowRecords) each(k int, f func(v value) error) (list bool, err error) {
	defer caught("Arrow", &err)
	t := &a.types[k]
	in, at := resolve(a.batch.Column(a.used[k]), a.at)
	l, ok := in.(array.ListLike)
	if !ok || in.DataType().ID() == arrow.MAP {
		if in == nil && t.list {
			return false, nil
		}
		return false, f(t.arrowValue(in, at))
	}
	begin, end := l.ValueOffsets(at)
	for i := int(begin); i < int(end) && err == nil; i++ {
		err = f(t.arrowValue(resolve(l.ListValues(), i)))
	}
	return true, err
}

// arrowValue reads a value at the place that resolve has returned.
func (t *logical) arrowValue(in arrow.Array, at int) value {
	switch v := in.(type) {
	case nil:
		return value{null: true}
	case *array.Boolean:
		if v.Value(at) {
			return value{whole: 1}
		}
	case *array.Int8:
		return value{whole: int64(v.Value(at))}
	case *array.Int16:
		return value{whole: int64(v.Value(at))}
	case *array.Int32:
		return value{whole: int64(v.Value(at))}
	case *array.Int64:
		return value{whole: v.Value(at)}
	case *array.Uint8:
		return value{whole: int64(v.Value(at))}
	case *array.Uint16:
		return value{whole: int64(v.Value(at))}
	case *array.Uint32:
		return value{whole: int64(v.Value(at))}
	case *array.Uint64:
		return value{whole: int64(v.Value(at))}
	case *array.Float16:
		return value{float: float64(Half(v.Value(at).Uint16()))}
	case *array.Float32:
		return value{float: float64(v.Value(at))}
	case *array.Float64:
		return value{float: v.Value(at)}
	case *array.Decimal32:
		return value{whole: int64(v.Value(at))}
	case *array.Decimal64:
		return value{whole: int64(v.Value(at))}
	case *array.Decimal128:
		return bigDecimal(v.Value(at).BigInt())
	case *array.Decimal256:
		return bigDecimal(v.Value(at).BigInt())
	case *array.Date32:
		return value{whole: int64(v.Value(at))}
	case *array.Date64:
		const day = 24 * 60 * 60 * 1000
		ms := int64(v.Value(at))
		return value{whole: (ms - (ms%day+day)%day) / day}
	case *array.Time32:
		return t.moment(int64(v.Value(at)))
	case *array.Time64:
		return t.moment(int64(v.Value(at)))
	case *array.Timestamp:
		return t.moment(int64(v.Value(at)))
	case array.StringLike:
		return value{text: v.Value(at)}
	case interface{ Value(int) []byte }: // binary types
		return value{text: string(v.Value(at))}
	}
	return value{}
}

func (a *arrowRecords) close() {
	a.in.Close()
	a.file.Close()
}
