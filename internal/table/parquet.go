package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"taxon/internal/fs"
)

// parquetRecords reads the wanted columns, each with its own cursor.
type parquetRecords struct {
	file  *os.File
	in    *parquet.File
	names []string
	used  []*cursor
	row   int64
}

// cursor walks a column's values.
type cursor struct {
	name    string
	column  *parquet.Column
	half    bool // its values are float16
	pages   parquet.Pages
	page    parquet.Page
	from    parquet.ValueReader
	buf     []parquet.Value
	at, end int
	row     []parquet.Value // values of the current record
}

// openParquet opens the file behind f. A file without random access (compressed, a stream, in
// HDFS) is first copied to a temporary file.
func openParquet(f *fs.File, path string) (*parquetRecords, error) {
	file, _, err := seekable(f, path, "PAR1")
	if err != nil {
		return nil, err
	}
	p := &parquetRecords{file: file}
	if err := p.open(); err != nil {
		file.Close()
		return nil, err
	}
	return p, nil
}

func (p *parquetRecords) open() (err error) {
	defer caught("Parquet", &err)
	info, err := p.file.Stat()
	if err != nil {
		return err
	}
	if p.in, err = parquet.OpenFile(p.file, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true)); err != nil {
		return fmt.Errorf("is no Parquet file that can be read: %w", err)
	}
	for _, c := range p.in.Root().Columns() {
		p.names = append(p.names, c.Name())
	}
	return nil
}

// caught turns the library's panic about a damaged file into an error.
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
	for !column.Leaf() && len(column.Columns()) == 1 {
		column = column.Columns()[0]
	}
	p.used = append(p.used, &cursor{name: name, column: column, half: column.Leaf() && p.isHalf(int(column.Index()))})
	return len(p.used) - 1
}

// isHalf says whether a leaf has float16 values, which the library's types do not show.
func (p *parquetRecords) isHalf(leaf int) bool {
	for _, e := range p.in.Metadata().Schema {
		if e.NumChildren.V > 0 {
			continue
		}
		if leaf--; leaf < 0 {
			_, half := e.LogicalType.Value.(*format.Float16Type)
			return half
		}
	}
	return false
}

func (p *parquetRecords) next() (line int64, err error) {
	defer caught("Parquet", &err)
	if p.row == p.in.NumRows() {
		return p.row, io.EOF
	}
	p.row++
	for _, c := range p.used {
		if err := c.next(); err != nil {
			return p.row, fmt.Errorf("column %q: %w", c.name, err)
		}
	}
	return p.row, nil
}

func (c *cursor) next() error {
	if !c.column.Leaf() {
		return errors.New("has columns of its own: want texts, numbers or lists of them")
	}
	c.row = c.row[:0]
	for {
		for ; c.at < c.end; c.at++ {
			v := c.buf[c.at]
			if len(c.row) > 0 && v.RepetitionLevel() == 0 {
				return nil
			}
			if c.row = append(c.row, v.Clone()); c.column.MaxRepetitionLevel() == 0 {
				c.at++
				return nil
			}
		}
		err := c.fill()
		if err == io.EOF && len(c.row) > 0 {
			return nil
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
}

// fill reads some values.
func (c *cursor) fill() (err error) {
	if c.pages == nil {
		c.pages, c.buf = c.column.Pages(), make([]parquet.Value, 512)
	}
	for {
		if c.from == nil {
			parquet.Release(c.page) // its values were copied
			if c.page, err = c.pages.ReadPage(); err != nil {
				return err
			}
			c.from = c.page.Values()
		}
		n, err := c.from.ReadValues(c.buf)
		if err != nil {
			c.from = nil // values point into the page, and are copied before the next is read
		}
		if c.at, c.end = 0, n; n > 0 {
			return nil
		}
		if err != nil && err != io.EOF {
			return err
		}
	}
}

func (p *parquetRecords) texts(column int, dst []string) ([]string, error) {
	for _, v := range p.used[column].row {
		switch v.Kind() {
		case parquet.ByteArray, parquet.FixedLenByteArray:
			if s := string(v.ByteArray()); s != "" {
				dst = append(dst, s)
			}
		case parquet.Boolean, parquet.Int32, parquet.Int64, parquet.Float, parquet.Double:
			x, err := p.used[column].number(v)
			if err != nil {
				return dst, err
			}
			if math.IsNaN(x) {
				continue
			}
			if v.Kind() == parquet.Int64 {
				dst = append(dst, strconv.FormatInt(v.Int64(), 10))
			} else {
				dst = append(dst, strconv.FormatFloat(x, 'f', -1, 64))
			}
		}
	}
	return dst, nil
}

func (p *parquetRecords) numbers(column int, dst []float64) (_ []float64, list bool, err error) {
	c := p.used[column]
	list = c.column.MaxRepetitionLevel() > 0
	for _, v := range c.row {
		x, err := c.number(v)
		if err != nil {
			return dst, list, err
		}
		dst = append(dst, x)
	}
	if list && len(c.row) == 1 && c.row[0].IsNull() && c.row[0].DefinitionLevel() < c.column.MaxDefinitionLevel()-1 {
		return dst[:0], false, nil // no list at all
	}
	return dst, list, nil
}

func (c *cursor) number(v parquet.Value) (float64, error) {
	if v.IsNull() {
		return math.NaN(), nil
	}
	switch v.Kind() {
	case parquet.Boolean:
		if v.Boolean() {
			return 1, nil
		}
		return 0, nil
	case parquet.Int32:
		return float64(v.Int32()), nil
	case parquet.Int64:
		return float64(v.Int64()), nil
	case parquet.Float:
		return float64(v.Float()), nil
	case parquet.Double:
		return v.Double(), nil
	case parquet.FixedLenByteArray:
		if c.half {
			return float64(Half(binary.LittleEndian.Uint16(v.ByteArray()))), nil
		}
	case parquet.ByteArray:
		return parseNumber(string(v.ByteArray()))
	}
	return 0, fmt.Errorf("is of a kind (%s) that is no number", c.column.Type())
}

func (p *parquetRecords) close() {
	for _, c := range p.used {
		if c.pages != nil {
			c.pages.Close()
		}
	}
	p.file.Close()
}

// Half is the float32 of a binary16.
func Half(h uint16) float32 {
	sign, e, m := uint32(h&0x8000)<<16, uint32(h>>10)&0x1f, uint32(h&0x3ff)
	switch e {
	case 0: // m 2^-24, exact
		return math.Float32frombits(math.Float32bits(float32(m)*(1.0/(1<<24))) | sign)
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | m<<13)
	}
	return math.Float32frombits(sign | (e+112)<<23 | m<<13)
}
