package export

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"math/bits"
)

// groupRows is how many rows a row group holds before it is written; one node's rows are
// not cut, so it may hold more.
const groupRows = 1 << 20

// Parquet writes the nodes [first, last), internal ones too, in long form: a row a weight,
// in node order, features ascending, the bias last:
//
//	kind    string   node, spawned, virtual or dummy
//	node    string   name; - for a virtual root
//	feature int32    index in the input, counted from 1; 0 for the bias
//	word    string   text models only; empty for the bias
//	weight  float
//
// File: "PAR1", row groups of required columns without compression, the metadata in
// Thrift's compact protocol, their length, "PAR1". Strings are dictionaries of the group;
// runs of one node take a few bytes. Memory: one row group.
func (s *Source) Parquet(ctx context.Context, w io.Writer, first, last, threads int) error {
	p := newParquet(s, w)
	if err := p.put([]byte(parquetMagic)); err != nil {
		return err
	}
	if err := s.m.Render(ctx, p, first, last, threads, s.appendNode); err != nil {
		return err
	}
	if err := p.flush(); err != nil {
		return err
	}
	return p.finish()
}

const parquetMagic = "PAR1"

// appendNode renders node n for parquet.Write: u32 node, u32 count, then count times
// u32 feature, u32 bits of the weight.
func (s *Source) appendNode(b []byte, n int, vector []float32) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	put := func(feature uint32, v float32) {
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, feature), math.Float32bits(v))
	}
	for _, c := range s.order {
		if v := vector[c]; s.keeps(v) {
			put(s.m.Feature[c], v)
		}
	}
	if s.hasBias() && vector[len(vector)-1] != 0 {
		put(0, vector[len(vector)-1])
	}
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4)/8)
	return b
}

// Codes of Parquet's format (parquet.thrift).
const (
	typeInt32, typeFloat, typeBytes = 1, 4, 6
	encodingPlain, encodingRLE      = 0, 3
	encodingDictionary              = 8 // RLE_DICTIONARY
	pageData, pageDictionary        = 0, 2
)

// parquet gathers a row group from rendered nodes.
type parquet struct {
	s      *Source
	w      io.Writer
	at     int64           // bytes written
	word   map[int32]int32 // feature -> the model's column; text models only
	groups []rowGroup

	rows       int64
	kind, node runs
	feature    []byte
	used       map[int32]uint32 // feature -> its place in words
	words      dictionary
	wordOf     []uint32 // row -> place in words
	weight     []byte
}

type rowGroup struct {
	rows, bytes int64
	chunks      []columnChunk
}

// columnChunk is what the metadata say of a column of a row group.
type columnChunk struct {
	name             string
	kind             int
	rows, bytes      int64
	dictionary, data int64 // where the pages begin; no dictionary: -1
}

func newParquet(s *Source, w io.Writer) *parquet {
	p := &parquet{s: s, w: w, used: map[int32]uint32{}}
	if s.m.Text != nil {
		p.word = make(map[int32]int32, len(s.order))
		for c, f := range s.m.Feature {
			p.word[int32(f)] = int32(c)
		}
	}
	return p
}

func (p *parquet) put(b []byte) error {
	n, err := p.w.Write(b)
	p.at += int64(n)
	return err
}

// Write takes whole nodes, as Render hands them out.
func (p *parquet) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n, count := int(binary.LittleEndian.Uint32(rest)), int64(binary.LittleEndian.Uint32(rest[4:]))
		p.addNode(n, rest[8:8+8*count])
		rest = rest[8+8*count:]
		if p.rows >= groupRows {
			if err := p.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(b), nil
}

func (p *parquet) addNode(n int, entries []byte) {
	count := len(entries) / 8
	if count == 0 {
		return
	}
	kind, name := p.s.m.VectorName(n)
	p.kind.add(kind, count)
	p.node.add(name, count)
	for ; len(entries) > 0; entries = entries[8:] {
		p.feature, p.weight = append(p.feature, entries[:4]...), append(p.weight, entries[4:8]...)
		if p.word != nil {
			p.addWord(int32(binary.LittleEndian.Uint32(entries)))
		}
	}
	p.rows += int64(count)
}

func (p *parquet) addWord(feature int32) {
	at, ok := p.used[feature]
	if !ok {
		at = uint32(p.words.n)
		p.used[feature] = at
		word := ""
		if c, ok := p.word[feature]; ok {
			word = p.s.m.Text.Vocabulary[c]
		}
		p.words.add(word)
	}
	p.wordOf = append(p.wordOf, at)
}

// flush writes the rows gathered so far as a row group.
func (p *parquet) flush() error {
	if p.rows == 0 {
		return nil
	}
	g := rowGroup{rows: p.rows}
	columns := []struct {
		name  string
		kind  int
		words *dictionary
		data  []byte
	}{
		{"kind", typeBytes, &p.kind.words, p.kind.encode()},
		{"node", typeBytes, &p.node.words, p.node.encode()},
		{"feature", typeInt32, nil, p.feature},
		{"word", typeBytes, &p.words, nil},
		{"weight", typeFloat, nil, p.weight},
	}
	for _, c := range columns {
		if c.name == "word" {
			if p.word == nil {
				continue
			}
			c.data = packIndices(p.wordOf, p.words.n)
		}
		chunk, err := p.writeColumn(c.name, c.kind, c.words, c.data)
		if err != nil {
			return err
		}
		g.chunks, g.bytes = append(g.chunks, chunk), g.bytes+chunk.bytes
	}
	p.groups = append(p.groups, g)
	p.rows, p.feature, p.weight, p.wordOf = 0, p.feature[:0], p.weight[:0], p.wordOf[:0]
	p.kind, p.node, p.words = runs{}, runs{}, dictionary{}
	clear(p.used)
	return nil
}

// writeColumn writes a dictionary page, if there is a dictionary, and a data page.
func (p *parquet) writeColumn(name string, kind int, words *dictionary, data []byte) (columnChunk, error) {
	c := columnChunk{name: name, kind: kind, rows: p.rows, dictionary: -1}
	begin := p.at
	encoding := int64(encodingPlain)
	if words != nil {
		c.dictionary, encoding = p.at, encodingDictionary
		if err := p.writePage(pageDictionary, len(words.plain), 7, int64(words.n), encodingPlain, words.plain); err != nil {
			return c, err
		}
	}
	c.data = p.at
	if err := p.writePage(pageData, len(data), 5, p.rows, encoding, data); err != nil {
		return c, err
	}
	c.bytes = p.at - begin
	return c, nil
}

// writePage writes the header of a page (in field `header` of PageHeader) and the page.
func (p *parquet) writePage(kind, size, header int, values, encoding int64, page []byte) error {
	t := newCompact()
	t.i32(1, int64(kind))
	t.i32(2, int64(size))
	t.i32(3, int64(size))
	t.open(header)
	t.i32(1, values)
	t.i32(2, encoding)
	if kind == pageData {
		t.i32(3, encodingRLE)
		t.i32(4, encodingRLE)
	}
	t.close()
	if err := p.put(t.stop()); err != nil {
		return err
	}
	return p.put(page)
}

// finish writes the metadata.
func (p *parquet) finish() error {
	names, kinds := []string{"kind", "node", "feature", "word", "weight"}, []int64{typeBytes, typeBytes, typeInt32, typeBytes, typeFloat}
	if p.word == nil {
		names, kinds = append(names[:3:3], names[4]), append(kinds[:3:3], kinds[4])
	}
	t := newCompact()
	t.i32(1, 2) // version
	t.list(2, thriftStruct, len(names)+1)
	t.element()
	t.text(4, "schema")
	t.i32(5, int64(len(names)))
	t.close()
	for i, name := range names {
		t.element()
		t.i32(1, kinds[i])
		t.i32(3, 0) // required
		t.text(4, name)
		if kinds[i] == typeBytes {
			t.i32(6, 0) // UTF8
			t.open(10)  // logical type
			t.open(1)   // string
			t.close()
			t.close()
		}
		t.close()
	}
	total := int64(0)
	for _, g := range p.groups {
		total += g.rows
	}
	t.i64(3, total)
	t.list(4, thriftStruct, len(p.groups))
	for _, g := range p.groups {
		t.element()
		g.describe(t)
		t.close()
	}
	t.text(6, "taxon")
	b := t.stop()
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	return p.put(append(b, parquetMagic...))
}

// describe writes the fields of a RowGroup.
func (g *rowGroup) describe(t *compact) {
	t.list(1, thriftStruct, len(g.chunks))
	for _, c := range g.chunks {
		t.element()
		t.i64(2, 0) // deprecated offset
		t.open(3)
		t.i32(1, int64(c.kind))
		if c.dictionary >= 0 {
			t.list(2, thriftI32, 2)
			t.b = binary.AppendVarint(binary.AppendVarint(t.b, encodingPlain), encodingDictionary)
		} else {
			t.list(2, thriftI32, 1)
			t.b = binary.AppendVarint(t.b, encodingPlain)
		}
		t.list(3, thriftBinary, 1)
		t.bare(c.name)
		t.i32(4, 0) // no compression
		t.i64(5, c.rows)
		t.i64(6, c.bytes)
		t.i64(7, c.bytes)
		t.i64(9, c.data)
		if c.dictionary >= 0 {
			t.i64(11, c.dictionary)
		}
		t.close()
		t.close()
	}
	t.i64(2, g.bytes)
	t.i64(3, g.rows)
}

// dictionary is a page of strings: each a u32 length and its bytes.
type dictionary struct {
	plain []byte
	n     int
}

func (d *dictionary) add(s string) {
	d.plain = append(binary.LittleEndian.AppendUint32(d.plain, uint32(len(s))), s...)
	d.n++
}

// runs is a column of strings that come in runs.
type runs struct {
	words  dictionary
	at     map[string]uint32
	values []uint32
	counts []int
}

func (r *runs) add(s string, count int) {
	if r.at == nil {
		r.at = map[string]uint32{}
	}
	v, ok := r.at[s]
	if !ok {
		v = uint32(r.words.n)
		r.at[s] = v
		r.words.add(s)
	}
	r.values, r.counts = append(r.values, v), append(r.counts, count)
}

// indexWidth is the bits of an index into n strings, in whole bytes so that a bit-packed
// run is plain little-endian numbers; 0 if there is nothing to tell apart.
func indexWidth(n int) int { return (bits.Len(uint(n-1)) + 7) / 8 * 8 }

// encode gives the width and run-length encoded runs.
func (r *runs) encode() []byte {
	width := indexWidth(r.words.n)
	b := []byte{byte(width)}
	for i, v := range r.values {
		b = appendLow(binary.AppendUvarint(b, uint64(r.counts[i])<<1), v, width)
	}
	return b
}

// packIndices gives the width and one bit-packed run, filled up to a multiple of eight values.
func packIndices(values []uint32, n int) []byte {
	width := indexWidth(n)
	eights := (len(values) + 7) / 8
	b := binary.AppendUvarint([]byte{byte(width)}, uint64(eights)<<1|1)
	for _, v := range values {
		b = appendLow(b, v, width)
	}
	for range 8*eights - len(values) {
		b = appendLow(b, 0, width)
	}
	return b
}

// appendLow appends the low bits of v, little-endian; width is a multiple of eight.
func appendLow(b []byte, v uint32, width int) []byte {
	for ; width > 0; width -= 8 {
		b = append(b, byte(v))
		v >>= 8
	}
	return b
}
