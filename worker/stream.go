package worker

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"

	"taxon/internal/sparse"
	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

const (
	// blockReaders and rangeReaders are how many values are fetched and decoded at a time.
	// Ranges are fewer and larger.
	blockReaders = 4
	rangeReaders = 2
	// spoolBytes is shared by the buffers that the ranges are read back through.
	spoolBytes = 16 << 20
)

// ErrSpool is wrapped by errors of the file that StreamWeights keeps weights in.
var ErrSpool = errors.New("weights can't be kept on the disk meanwhile")

// StreamWeights is Weights in bounded memory, for results of any size: the values are
// fetched from the shards several at a time, and kept decoded in a temporary file in dir
// ("": the system's) of about the size of the model. Memory is that of four blocks' or two
// ranges' values, encoded and decoded (at most 2.6 times their size), 16 MiB of buffers and
// 12 bytes a node. yield must not keep the slices.
func StreamWeights(ctx context.Context, src Store, tree *taxonomy.Tree, plan *taxonv1.Plan, st *taxonv1.JobStatus, dir string,
	yield func(node int, columns []uint32, values []float32) error) (err error) {
	file, err := os.CreateTemp(dir, "taxon-weights-*.part")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSpool, err)
	}
	named := os.Remove(file.Name()) != nil // at once, so that a kill leaves nothing
	defer func() {
		err = errors.Join(err, file.Close())
		if named { // a system that keeps the names of open files
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	s := &weightSpool{
		weightReader: weightReader{src: src, tree: tree, plan: plan, status: st},
		file:         file, at: make([]int64, tree.Len()), count: make([]uint32, tree.Len()),
	}
	if err := s.fetch(ctx); err != nil {
		return err
	}
	return s.each(ctx, yield)
}

// weightSpool keeps weights in a file: a terminal's features and values at its place, and
// for each range a section of all internals' counts, features and values.
type weightSpool struct {
	weightReader
	file     *os.File
	at       []int64  // of each terminal
	count    []uint32 // of its features
	sections []*io.SectionReader
	writers  sync.Pool // of *bufio.Writer, at most as many as there are readers

	mu   sync.Mutex
	size int64 // of the file
}

// fetch reads all values into the file.
func (s *weightSpool) fetch(ctx context.Context) error {
	blocks := len(s.plan.GetBlockBegin()) - 1
	if err := s.tasks(ctx, 0, blocks, blockReaders, s.keepBlock); err != nil {
		return err
	}
	if len(s.tree.Internals()) == 0 {
		return nil
	}
	ranges := len(s.plan.GetRangeBegin()) - 1
	s.sections = make([]*io.SectionReader, ranges)
	return s.tasks(ctx, blocks, ranges, rangeReaders, s.keepRange)
}

// tasks calls keep for the values of n tasks from a first one on, several at a time.
func (s *weightSpool) tasks(ctx context.Context, first, n, readers int, keep func(i int, data []byte) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i := range n {
		g.Go(func() error {
			key, err := s.key(first + i)
			if err != nil {
				return err
			}
			data, err := store.Need(ctx, s.src, []store.Key{key})
			if err != nil {
				return err
			}
			return keep(i, data[0])
		})
	}
	return g.Wait()
}

// section takes so many bytes of the file and gives a writer to them, which spooled takes back.
func (s *weightSpool) section(n int) (w *bufio.Writer, at int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at = s.size
	s.size += int64(n)
	w, _ = s.writers.Get().(*bufio.Writer)
	if w == nil {
		w = bufio.NewWriterSize(nil, 256<<10)
	}
	w.Reset(io.NewOffsetWriter(s.file, at))
	return w, at
}

// spooled ends a section. An error of writing has stayed until now.
func (s *weightSpool) spooled(w *bufio.Writer) error {
	err := w.Flush()
	s.writers.Put(w)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSpool, err)
	}
	return nil
}

// keepBlock writes the terminals of a block.
func (s *weightSpool) keepBlock(b int, data []byte) error {
	begin, ranges := s.plan.GetBlockBegin(), s.plan.GetRangeBegin()
	lanes := s.plan.BlockTerminals[begin[b]:begin[b+1]]
	os, err := decodeOverrides(data, len(lanes), ranges[len(ranges)-1])
	if err != nil {
		return err
	}
	total := 0
	for _, o := range os {
		total += 8 * len(o.Feature)
	}
	w, at := s.section(total)
	for l, n := range lanes {
		s.at[n], s.count[n] = at, uint32(len(os[l].Feature))
		at += 8 * int64(len(os[l].Feature))
		writeWords(w, os[l].Feature)
		writeWords(w, os[l].Value)
	}
	return s.spooled(w)
}

// keepRange writes all internals' entries of a range.
func (s *weightSpool) keepRange(r int, data []byte) error {
	ranges, nodes := s.plan.GetRangeBegin(), len(s.tree.Internals())
	v, err := decodeVectors(data, nodes, ranges[r], ranges[r+1])
	if err != nil {
		return err
	}
	size := 4*nodes + 8*len(v.Feature)
	w, at := s.section(size)
	for p := range nodes {
		lo, hi := v.Begin[p], v.Begin[p+1]
		writeWords(w, []uint32{uint32(hi - lo)})
		writeWords(w, v.Feature[lo:hi])
		writeWords(w, v.Value[lo:hi])
	}
	s.sections[r] = io.NewSectionReader(s.file, at, int64(size))
	return s.spooled(w)
}

// writeWords writes features or values as they lie in memory, a bufferful at a time: w has
// got nothing but words, and a buffer of whole ones.
func writeWords[T uint32 | float32](w *bufio.Writer, words []T) {
	for len(words) > 0 {
		if w.Available() == 0 && w.Flush() != nil {
			return // Flush says it again at the end
		}
		n := min(len(words), w.Available()/4)
		_, _ = w.Write(sparse.Append(w.AvailableBuffer(), words[:n]))
		words = words[n:]
	}
}

// each reads the nodes back in order.
func (s *weightSpool) each(ctx context.Context, yield func(node int, columns []uint32, values []float32) error) error {
	readers := make([]*bufio.Reader, len(s.sections))
	for r, section := range s.sections {
		readers[r] = bufio.NewReaderSize(section, min(max(spoolBytes/len(s.sections), 4<<10), 256<<10))
	}
	var l weightList
	for n := range s.tree.Len() {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.columns, l.values = l.columns[:0], l.values[:0]
		var err error
		if s.tree.Leaf[n] {
			err = l.read(io.NewSectionReader(s.file, s.at[n], 8*int64(s.count[n])), s.count[n])
		} else {
			err = l.join(readers)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrSpool, err)
		}
		if err := yield(n, l.columns, l.values); err != nil {
			return err
		}
	}
	return nil
}

// weightList is one node's list, and room to read it.
type weightList struct {
	columns []uint32
	values  []float32
	buffer  []byte
}

// join reads the next internal out of all ranges.
func (l *weightList) join(ranges []*bufio.Reader) error {
	for _, r := range ranges {
		n, err := l.bytes(r, 4)
		if err == nil {
			err = l.read(r, binary.LittleEndian.Uint32(n))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read appends n features and values.
func (l *weightList) read(r io.Reader, n uint32) error {
	b, err := l.bytes(r, 8*int(n))
	if err != nil {
		return err
	}
	l.columns = append(l.columns, sparse.View[uint32](b[:4*int(n)])...)
	l.values = append(l.values, sparse.View[float32](b[4*int(n):])...)
	return nil
}

func (l *weightList) bytes(r io.Reader, n int) ([]byte, error) {
	if cap(l.buffer) < n {
		l.buffer = make([]byte, n+n/2)
	}
	b := l.buffer[:n]
	_, err := io.ReadFull(r, b)
	return b, err
}
