package dataset

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"iter"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
)

// writePostings inverts the rows' labels: it writes the rows of each label. It handles one range of
// labels at a time, whose rows fit into the memory bound, in one pass over the labels of all rows.
// A single label that exceeds the bound is streamed.
func (p *publisher) writePostings(ctx context.Context) error {
	st := p.in.stats
	f, err := createBinary(p.dir, postingsFile, header{kindPostings, uint64(st.Labels), uint64(st.LabelEntries),
		uint64(st.Rows)})
	if err != nil {
		return err
	}
	begin := f.array(0, 0, p.o.bufBytes())
	at := uint64(0)
	for _, n := range p.in.perLabel {
		begin.u64(at)
		at += n
	}
	begin.u64(at)
	if err := begin.flush(); err != nil {
		return f.close(err)
	}
	rows := f.array(1, 0, p.o.bufBytes())
	room := uint64(p.o.MemoryBytes / 4 / 4)
	for lo := 0; lo < len(p.in.perLabel); {
		hi, n := lo+1, p.in.perLabel[lo]
		for hi < len(p.in.perLabel) && n+p.in.perLabel[hi] <= room {
			n += p.in.perLabel[hi]
			hi++
		}
		if err := p.writePostingRange(ctx, rows, lo, hi, n, room); err != nil {
			return f.close(err)
		}
		lo = hi
	}
	return f.close(rows.flush())
}

// writePostingRange appends the rows of the labels from lo to below hi, which are n rows together.
func (p *publisher) writePostingRange(ctx context.Context, w *arrayWriter, lo, hi int, n, room uint64) error {
	if n > room { // a single label, whose rows arrive in order
		return p.eachLabel(ctx, func(row, label uint32) {
			if int(label) == lo {
				w.u32(row)
			}
		})
	}
	out := make([]uint32, n)
	next := make([]uint64, hi-lo)
	for l, at := lo, uint64(0); l < hi; l++ {
		next[l-lo] = at
		at += p.in.perLabel[l]
	}
	err := p.eachLabel(ctx, func(row, label uint32) {
		if l := int(label); l >= lo && l < hi {
			out[next[l-lo]] = row
			next[l-lo]++
		}
	})
	for _, row := range out {
		w.u32(row)
	}
	return err
}

// eachLabel reads the file just written and calls f for every (row, label) pair, rows ascending.
func (p *publisher) eachLabel(ctx context.Context, f func(row, label uint32)) error {
	file, err := p.dir.Open(rowLabelsFile)
	if err != nil {
		return err
	}
	defer file.Close()
	st := p.in.stats
	off, size, _ := header{kindLabels, uint64(st.Rows), uint64(st.LabelEntries), 0}.sections()
	open := func(i int) *bufio.Reader {
		return bufio.NewReaderSize(io.NewSectionReader(file, off[i], size[i]), p.o.bufBytes())
	}
	begin, index := open(0), open(1)
	var word [8]byte
	if _, err := io.ReadFull(begin, word[:]); err != nil {
		return fs.Explain(p.dir.Name(), err)
	}
	at := uint64(0)
	for row := range uint32(st.Rows) {
		if row%progressRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := io.ReadFull(begin, word[:]); err != nil {
			return fs.Explain(p.dir.Name(), err)
		}
		for end := binary.LittleEndian.Uint64(word[:]); at < end; at++ {
			if _, err := io.ReadFull(index, word[:4]); err != nil {
				return fs.Explain(p.dir.Name(), err)
			}
			f(row, binary.LittleEndian.Uint32(word[:]))
		}
	}
	return nil
}

// writeList writes names, one per line.
func (p *publisher) writeList(name string, names iter.Seq[string]) error {
	f, err := p.dir.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, p.o.bufBytes())
	for n := range names {
		w.WriteString(n)
		w.WriteByte('\n')
	}
	return fs.Explain(p.dir.Name(), vfs.CloseSynced(f, w.Flush()))
}
