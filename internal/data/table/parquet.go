package table

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"taxon/internal/fs"
)

// parquetRecords reads the wanted columns of a file, each with its own cursor.
type parquetRecords struct {
	file     *os.File
	in       *parquet.File
	names    []string
	elements map[*parquet.Column]*format.SchemaElement
	arrow    *arrow.Schema // nil if the file has none
	used     []*cursor
	row      int64
}

// cursor iterates over a column's values.
type cursor struct {
	name    string
	leaf    *parquet.Column
	logical logical

	// list is the definition level from which on a list has an entry. It is 0 if the column is not
	// a list.
	list int

	// present is the definition level from which on the cell or entry is not null.
	present int
	group   int           // index of the next row group
	rows    int64         // number of rows in the row groups before it
	pages   parquet.Pages // nil at the end of the chunk
	page    parquet.Page
	from    parquet.ValueReader
	buf     []parquet.Value
	at, end int
	row     []parquet.Value // values of the current record
}

// openParquet opens the file behind f. A file without random access (compressed, a stream, or in
// HDFS) is copied to a temporary file first.
func openParquet(f *fs.File, path string) (records, error) {
	file, size, err := seekable(f, path, "parquet")
	if err != nil {
		return nil, err
	}
	p := &parquetRecords{file: file, elements: map[*parquet.Column]*format.SchemaElement{}}
	if err := p.open(size); err != nil {
		file.Close()
		return nil, err
	}
	return typed{p}, nil
}

func (p *parquetRecords) open(size int64) (err error) {
	defer caught("Parquet", &err)
	if err := checkParquet(p.file, size); err != nil {
		return fmt.Errorf("is no Parquet file that can be read: %w", err)
	}
	if p.in, err = parquet.OpenFile(p.file, size, parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true)); err != nil {
		return fmt.Errorf("is no Parquet file that can be read: %w", err)
	}
	for _, c := range p.in.Root().Columns() {
		p.names = append(p.names, c.Name())
	}
	p.pair(p.in.Root(), p.in.Metadata().Schema)
	if encoded, ok := p.in.Lookup("ARROW:schema"); ok {
		p.arrow = arrowSchema(encoded)
	}
	return nil
}

// pair matches a column and its descendants with their schema elements, and returns the elements
// that follow.
func (p *parquetRecords) pair(c *parquet.Column, schema []format.SchemaElement) []format.SchemaElement {
	p.elements[c] = &schema[0]
	schema = schema[1:]
	for _, child := range c.Columns() {
		schema = p.pair(child, schema)
	}
	return schema
}

// caught turns a panic of the library about a damaged file into an error.
func caught(format string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the %s file is damaged: %v", format, r)
	}
}

func (p *parquetRecords) columns() []string { return p.names }

func (p *parquetRecords) find(name string) int {
	for i, c := range p.used {
		if c.name == name {
			return i
		}
	}
	column := p.in.Root().Column(name)
	if column == nil {
		return -1
	}
	c := &cursor{name: name}
	p.describe(column, c)
	p.used = append(p.used, c)
	return len(p.used) - 1
}

func (p *parquetRecords) column(k int) (string, *logical) { return p.used[k].name, &p.used[k].logical }

// describe sets the type and the levels of a column. Lists have three forms, and files by old
// programs a fourth, a repeated leaf (Parquet's LogicalTypes.md, "Lists").
func (p *parquetRecords) describe(column *parquet.Column, c *cursor) {
	one := column
	switch inner := column.Columns(); {
	case column.Repeated():
		c.list = column.MaxDefinitionLevel()
	case len(inner) == 1 && inner[0].Repeated() && p.is(column, (*format.ListType)(nil), deprecated.List):
		one = inner[0]
		c.list = one.MaxDefinitionLevel()
		if below := one.Columns(); len(below) == 1 && one.Name() != "array" && one.Name() != column.Name()+"_tuple" {
			one = below[0]
		}
	}
	c.present = one.MaxDefinitionLevel()
	switch {
	case p.is(one, (*format.ListType)(nil), deprecated.List) || one.Repeated() && c.present > c.list:
		c.logical = refused("lists of lists")
	case one.Leaf():
		c.logical = leafType(p.elements[one])
	case p.is(one, (*format.MapType)(nil), deprecated.Map) || p.is(one, nil, deprecated.MapKeyValue):
		c.logical = refused("maps")
	default:
		c.logical = refused("structs")
	}
	c.logical.list = c.list > 0
	if a := p.arrow; a != nil && len(a.FieldIndices(column.Name())) == 1 {
		// pyarrow and polars store some types in Arrow's schema only: durations are plain integers
		// in Parquet
		if t := arrowType(a.Field(a.FieldIndices(column.Name())[0])); t.kind == unusable || t.kind == uuid {
			c.logical = t
		}
	}
	for c.leaf = one; !c.leaf.Leaf() && len(c.leaf.Columns()) > 0; {
		c.leaf = c.leaf.Columns()[0] // also for a struct, whose leaf shows which cells are null
	}
}

// is reports whether a column has the logical annotation, or the older one.
func (p *parquetRecords) is(c *parquet.Column, logical format.LogicalTypeValue, older deprecated.ConvertedType) bool {
	e := p.elements[c]
	if e.LogicalType.Value != nil && logical != nil {
		return reflect.TypeOf(e.LogicalType.Value) == reflect.TypeOf(logical)
	}
	return e.ConvertedType.Valid && e.ConvertedType.V == older
}

// leafType returns the type that a leaf's annotation states or, without one, its physical type.
func leafType(e *format.SchemaElement) logical {
	switch t := e.LogicalType.Value.(type) {
	case *format.DecimalType:
		return decimals(t.Scale)
	case *format.DateType:
		return logical{kind: date}
	case *format.TimeType:
		return logical{kind: timeOfDay, second: perSecond(t.Unit)}
	case *format.TimestampType:
		if t.IsAdjustedToUTC {
			return logical{kind: instant, second: perSecond(t.Unit)}
		}
		return logical{kind: timestamp, second: perSecond(t.Unit)}
	case *format.IntType:
		if t.IsSigned {
			return logical{kind: signed}
		}
		return logical{kind: unsigned}
	case *format.UUIDType:
		return logical{kind: uuid}
	case *format.Float16Type:
		return logical{kind: float, bits: 32}
	case *format.StringType, *format.EnumType, *format.JsonType:
		return logical{kind: textual}
	case *format.BsonType:
		return refused("BSON documents")
	case *format.GeometryType, *format.GeographyType:
		return refused("shapes")
	}
	if older := e.ConvertedType; older.Valid {
		switch older.V {
		case deprecated.Decimal:
			return decimals(e.Scale.V)
		case deprecated.Date:
			return logical{kind: date}
		case deprecated.TimeMillis:
			return logical{kind: timeOfDay, second: 1e3}
		case deprecated.TimeMicros:
			return logical{kind: timeOfDay, second: 1e6}
		// writers of this annotation alone do not state whether the time is in UTC
		case deprecated.TimestampMillis:
			return logical{kind: timestamp, second: 1e3}
		case deprecated.TimestampMicros:
			return logical{kind: timestamp, second: 1e6}
		case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
			return logical{kind: unsigned}
		case deprecated.Bson:
			return refused("BSON documents")
		case deprecated.Interval:
			return refused("intervals")
		}
	}
	switch parquet.Kind(e.Type.V) {
	case parquet.Boolean:
		return logical{kind: boolean}
	case parquet.Int32, parquet.Int64:
		return logical{kind: signed}
	case parquet.Int96:
		return logical{kind: timestamp}
	case parquet.Float:
		return logical{kind: float, bits: 32}
	case parquet.Double:
		return logical{kind: float, bits: 64}
	}
	return logical{kind: textual}
}

// perSecond returns the number of units in a second.
func perSecond(unit format.TimeUnit) int64 {
	switch unit.Value.(type) {
	case *format.MilliSeconds:
		return 1e3
	case *format.MicroSeconds:
		return 1e6
	}
	return 1e9
}

func (p *parquetRecords) next() (line int64, err error) {
	defer caught("Parquet", &err)
	if p.row == p.in.NumRows() {
		return p.row, io.EOF
	}
	p.row++
	for _, c := range p.used {
		if err := p.read(c); err != nil {
			return p.row, fmt.Errorf("column %q: %w", c.name, err)
		}
	}
	return p.row, nil
}

// read reads the values of the current record. A record does not continue in the next chunk.
func (p *parquetRecords) read(c *cursor) error {
	c.row = c.row[:0]
	for {
		for ; c.at < c.end; c.at++ {
			v := c.buf[c.at]
			if len(c.row) > 0 && v.RepetitionLevel() == 0 {
				return nil
			}
			if c.row = append(c.row, v.Clone()); c.leaf.MaxRepetitionLevel() == 0 {
				c.at++
				return nil
			}
		}
		err := c.fill()
		if err == io.EOF && len(c.row) > 0 {
			return nil
		}
		if err == io.EOF {
			err = p.nextChunk(c)
		}
		if err != nil {
			return err
		}
	}
}

// nextChunk opens the column's chunk in the next row group.
func (p *parquetRecords) nextChunk(c *cursor) error {
	groups := p.in.RowGroups()
	if c.group == len(groups) || c.rows != p.row-1 {
		return errors.New("the Parquet file is damaged: a column does not have the number of rows that the footer states")
	}
	chunk := func(group int) *format.ColumnMetaData {
		return &p.in.Metadata().RowGroups[group].Columns[c.leaf.Index()].MetaData
	}
	if err := checkPages(p.file, p.in.Size(), chunk(c.group), chunk(0).Codec); err != nil {
		// the library supports one codec per column
		return fmt.Errorf("the Parquet file is damaged: %w", err)
	}
	c.pages, c.buf = groups[c.group].ColumnChunks()[c.leaf.Index()].Pages(), make([]parquet.Value, 512)
	c.rows += groups[c.group].NumRows()
	c.group++
	return nil
}

// fill reads some values. It returns io.EOF at the end of a chunk.
func (c *cursor) fill() (err error) {
	for {
		if c.pages == nil {
			return io.EOF
		}
		if c.from == nil {
			parquet.Release(c.page) // its values have been copied
			c.page = nil
			if c.page, err = c.pages.ReadPage(); err == io.EOF {
				err = cmp.Or(c.pages.Close(), io.EOF)
				c.pages = nil
			}
			if err != nil {
				return err
			}
			c.from = c.page.Values()
		}
		n, err := c.from.ReadValues(c.buf)
		if err != nil {
			// values point into the page; they are copied before the next page is read
			c.from = nil
		}
		if c.at, c.end = 0, n; n > 0 {
			return nil
		}
		if err != nil && err != io.EOF {
			return err
		}
	}
}

func (p *parquetRecords) each(k int, f func(v value) error) (list bool, err error) {
	defer caught("Parquet", &err)
	c := p.used[k]
	for _, v := range c.row {
		level := v.DefinitionLevel()
		if level < c.list {
			return level == c.list-1, nil // the list is empty or null
		}
		cell := value{null: true}
		if level >= c.present {
			cell = c.value(v)
		}
		if err := f(cell); err != nil {
			return c.list > 0, err
		}
	}
	return c.list > 0, nil
}

// value converts a value that is not null.
func (c *cursor) value(v parquet.Value) value {
	t := &c.logical
	switch v.Kind() {
	case parquet.Boolean:
		if v.Boolean() {
			return value{whole: 1}
		}
	case parquet.Int32, parquet.Int64:
		n := v.Int64()
		if v.Kind() == parquet.Int32 {
			if n = int64(v.Int32()); t.kind == unsigned {
				n = int64(v.Uint32())
			}
		}
		if t.second > 0 {
			return t.moment(n)
		}
		return value{whole: n}
	case parquet.Int96: // the nanoseconds of the day and the Julian day number
		const julian1970, secondsADay = 2440588, 24 * 60 * 60
		n := v.Int96()
		nanos := int64(n[1])<<32 | int64(n[0])
		return value{whole: (int64(n[2])-julian1970)*secondsADay + nanos/1e9, nanos: nanos % 1e9}
	case parquet.Float:
		return value{float: float64(v.Float())}
	case parquet.Double:
		return value{float: v.Double()}
	case parquet.ByteArray, parquet.FixedLenByteArray:
		switch b := v.ByteArray(); {
		case t.kind == decimal:
			return bigEndian(string(b))
		case t.kind == float && len(b) == 2:
			return value{float: float64(Half(binary.LittleEndian.Uint16(b)))}
		default:
			return value{text: string(b)}
		}
	}
	return value{}
}

func (p *parquetRecords) close() {
	for _, c := range p.used {
		if c.pages != nil {
			c.pages.Close()
		}
	}
	p.file.Close()
}

// Half converts a binary16 to float32.
func Half(h uint16) float32 {
	sign, e, m := uint32(h&0x8000)<<16, uint32(h>>10)&0x1f, uint32(h&0x3ff)
	switch e {
	case 0: // m 2^-24 is exact
		return math.Float32frombits(math.Float32bits(float32(m)*(1.0/(1<<24))) | sign)
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | m<<13)
	}
	return math.Float32frombits(sign | (e+112)<<23 | m<<13)
}
