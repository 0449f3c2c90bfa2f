package export

import "encoding/binary"

// compact writes Thrift's compact protocol as far as Parquet's metadata need it. Fields
// of a struct come in ascending order of their numbers.
type compact struct {
	b    []byte
	last []int // number of the last field in each open struct
}

// Types of a field in the compact protocol.
const (
	thriftI32    = 5
	thriftI64    = 6
	thriftBinary = 8
	thriftList   = 9
	thriftStruct = 12
)

func newCompact() *compact { return &compact{last: []int{0}} }

func (c *compact) field(number, kind int) {
	top := &c.last[len(c.last)-1]
	if d := number - *top; d < 16 {
		c.b = append(c.b, byte(d<<4|kind))
	} else {
		c.b = binary.AppendVarint(append(c.b, byte(kind)), int64(number))
	}
	*top = number
}

func (c *compact) i32(number int, v int64) {
	c.field(number, thriftI32)
	c.b = binary.AppendVarint(c.b, v)
}

func (c *compact) i64(number int, v int64) {
	c.field(number, thriftI64)
	c.b = binary.AppendVarint(c.b, v)
}

func (c *compact) text(number int, s string) {
	c.field(number, thriftBinary)
	c.bare(s)
}

// bare appends a string without a field's head, as in a list.
func (c *compact) bare(s string) {
	c.b = append(binary.AppendUvarint(c.b, uint64(len(s))), s...)
}

func (c *compact) list(number, kind, n int) {
	c.field(number, thriftList)
	if n < 15 {
		c.b = append(c.b, byte(n<<4|kind))
		return
	}
	c.b = binary.AppendUvarint(append(c.b, byte(0xf0|kind)), uint64(n))
}

// open begins a struct in a field, element one in a list; close ends either, and stop the
// outermost.
func (c *compact) open(number int) {
	c.field(number, thriftStruct)
	c.element()
}

func (c *compact) element() { c.last = append(c.last, 0) }

func (c *compact) close() {
	c.b = append(c.b, 0)
	c.last = c.last[:len(c.last)-1]
}

func (c *compact) stop() []byte { return append(c.b, 0) }
