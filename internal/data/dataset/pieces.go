package dataset

import (
	"bytes"
	"context"
	"io"
	"sync"

	"taxon/internal/fs"
)

// pieces reads a file ahead and parses it on several cores. One goroutine cuts the stream into runs
// of whole lines, others parse them, and next returns them in the file's order. A Reader over the
// file would give the same results, including errors and their lines. The cutting goroutine owns
// the file and closes it at its end, so that a cancelled ingest need not wait for standard input.
type pieces struct {
	ctx context.Context
	o   ReaderOptions
	// count returns a new counter, of which each parsing goroutine has one. It is nil if the input is
	// not text.
	count func() *counter
	size  int         // bytes of a piece, unless a line is longer
	work  chan *piece // pieces to be parsed, in any order
	order chan *piece // the same pieces in the file's order
	free  chan *piece
	stop  chan struct{}
	// headed is closed once the first piece is parsed: from then on the header is known.
	headed chan struct{}
	header *xmcHeader
	group  sync.WaitGroup // parsers, and the cutter unless its read may block
}

// piece is a run of whole lines together with the rows parsed from it.
type piece struct {
	text   []byte
	first  bool
	err    error // the stream's error after text, or io.EOF
	rows   batch
	parsed chan struct{}
}

// startPieces starts to read f, with one goroutine that reads and `parsers` goroutines that parse,
// and that count the terms of texts where count is not nil.
func startPieces(ctx context.Context, f *fs.File, o ReaderOptions, parsers, size int, count func() *counter) *pieces {
	o.Name = f.Name()
	inFlight := parsers + 2 // one being cut, one returned by next
	s := &pieces{ctx: ctx, o: o, count: count, size: size, work: make(chan *piece, inFlight),
		order: make(chan *piece, inFlight), free: make(chan *piece, inFlight),
		stop: make(chan struct{}), headed: make(chan struct{})}
	for range inFlight {
		s.free <- &piece{parsed: make(chan struct{}, 1)}
	}
	for range parsers {
		s.group.Add(1)
		go s.parse()
	}
	if f.Waits() {
		go s.cut(f)
		return s
	}
	s.group.Add(1)
	go func() {
		defer s.group.Done()
		s.cut(f)
	}()
	return s
}

// cut reads the stream into pieces that end where lines end.
func (s *pieces) cut(f *fs.File) {
	defer f.Close()
	defer close(s.work)
	var rest []byte // start of a line that ends in the next piece
	for first := true; ; first = false {
		var p *piece
		select {
		case p = <-s.free:
		case <-s.stop:
			return
		}
		p.first = first
		rest = s.fill(p, f, rest)
		last := p.err != nil // once p is sent, its parser owns it
		select {             // both channels have room for all pieces
		case <-s.stop:
			return
		default:
			s.order <- p
			s.work <- p
		}
		if last {
			return
		}
	}
}

// fill reads one piece that begins with rest, and returns the incomplete line at its end.
func (s *pieces) fill(p *piece, f io.Reader, rest []byte) []byte {
	if cap(p.text) < s.size || cap(p.text) > 2*s.size+len(rest) { // release the memory of a long line
		p.text = make([]byte, 0, s.size+len(rest))
	}
	p.text = append(p.text[:0], rest...)
	for seen := 0; ; {
		if len(p.text) == cap(p.text) {
			p.text = append(make([]byte, 0, min(2*cap(p.text), maxLineBytes+2+s.size)), p.text...)
		}
		n, err := io.ReadAtLeast(f, p.text[len(p.text):cap(p.text)], (cap(p.text)-len(p.text)+1)/2)
		p.text = p.text[:len(p.text)+n]
		if err == io.EOF || err == io.ErrUnexpectedEOF { // ReadAtLeast returns the latter; errors of f are wrapped
			p.err = io.EOF
			return nil
		}
		end := seen + bytes.LastIndexByte(p.text[seen:], '\n') + 1
		if end > seen {
			seen = end
		}
		switch {
		case err != nil:
			p.err, p.text = err, p.text[:seen]
			return nil
		case seen > 0:
			rest = append(rest[:0], p.text[seen:]...)
			p.text = p.text[:seen]
			return rest
		case len(p.text) > maxLineBytes+1: // a CR may follow a line of full length
			p.err, p.text = errTooLong, nil
			return nil
		}
	}
}

// parse parses pieces until there are no more.
func (s *pieces) parse() {
	defer s.group.Done()
	r := &Reader{o: s.o, part: true}
	var c *counter
	if s.count != nil {
		c = s.count()
	}
	for {
		var p *piece
		var ok bool
		select {
		case p, ok = <-s.work:
		case <-s.stop:
		}
		if !ok || !s.parsePiece(r, c, p) {
			return
		}
	}
}

// parsePiece parses one piece. It returns false if it was stopped.
func (s *pieces) parsePiece(r *Reader, c *counter, p *piece) bool {
	if !p.first {
		select {
		case <-s.headed:
		case <-s.stop:
			return false
		}
	}
	r.restart(p.text, p.first, s.header)
	p.rows.read(r, c)
	if p.first {
		s.header = r.header
		close(s.headed)
	}
	p.parsed <- struct{}{}
	return true
}

// next returns the next parsed piece, or the context's error. The caller must pass the piece to
// release. A piece whose err is not nil is the last one.
func (s *pieces) next() (*piece, error) {
	select {
	case p := <-s.order:
		select {
		case <-p.parsed:
			return p, nil
		case <-s.ctx.Done():
			return nil, s.ctx.Err()
		}
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (s *pieces) release(p *piece) {
	if s.count == nil {
		p.rows.trim(s.size)
	} else {
		p.rows.trim(textGrowth * s.size)
	}
	p.err = nil
	s.free <- p
}

// Close ends the goroutines and waits for them. It does not wait for a goroutine that is blocked in
// a read from a pipe; such a goroutine ends when the read returns.
func (s *pieces) Close() {
	close(s.stop)
	s.group.Wait()
}

// batch holds the instances of a piece.
type batch struct {
	rows   []batchRow
	labels [][]byte // names, which point into the piece's text
	index  []uint32
	bits   []uint32 // bits of the values, or counts of terms
	terms  countedTerms
	counts Counts
	lines  int64
	broken []error // errors of skipped lines; lines count within the piece
	// err is the error of the line after the last row. Its line number counts within the piece.
	err error
}

// batchRow says where the parts of a row end. Each part begins where that of the previous row ends.
type batchRow struct {
	line            int64 // number of the line within the piece, from 1
	labels, entries int
	text            []byte
	numbers         []number      // numbers of a table's row
	terms           *countedTerms // names of the entries, of a text
}

// textGrowth is about how many entries a byte of text may become: each character begins an n-gram of
// each length.
const textGrowth = 8

// read takes all rows of r. Texts become counts of terms if c is not nil.
func (b *batch) read(r *Reader, c *counter) {
	if c != nil {
		c.forget()
	}
	b.rows, b.labels, b.index, b.bits = b.rows[:0], b.labels[:0], b.index[:0], b.bits[:0]
	for {
		row, err := r.Read()
		if err != nil {
			if b.err = err; err == io.EOF {
				b.err = nil
			}
			break
		}
		b.labels = append(b.labels, row.Labels...)
		b.index = append(b.index, row.Index...)
		for _, v := range row.Value {
			b.bits = append(b.bits, floatBits(v))
		}
		next := batchRow{line: row.Line, labels: len(b.labels), text: row.Text}
		if c != nil {
			index, tf := c.count(row.Text)
			b.index, b.bits, next.terms = append(b.index, index...), append(b.bits, tf...), &b.terms
		}
		next.entries = len(b.index)
		b.rows = append(b.rows, next)
	}
	if c != nil {
		b.terms = countedTerms{c.names, c.names.list}
	}
	b.counts, b.broken, b.lines = r.Counts(), r.broken, r.lines.line
}

// trim releases memory far beyond the needs of a piece of `size` bytes.
func (b *batch) trim(size int) {
	if cap(b.index) > size || cap(b.labels) > size || cap(b.rows) > size {
		*b = batch{}
	}
}
