package worker

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/linalg/sparse"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker/codec"
	"taxon/worker/program"
)

const (
	// weightReaders is how many values are fetched and decoded at a time. Half as many are if they
	// are larger than largeValue bytes.
	weightReaders = 4
	largeValue    = 1 << 20
	// spoolBytes is how many bytes of weights are kept in memory before a file takes the rest. The
	// buffers that read the file back share the same amount.
	spoolBytes = 16 << 20
)

// ErrWeightBuffer is wrapped by errors of the temporary file of weights.
var ErrWeightBuffer = errors.New("weights can't be kept on the disk meanwhile")

// StreamWeights reads the weights that the tasks of a finished job's last step wrote. It calls
// yield with the nonzero entries of all nodes, in node order; the bias is the column after the last
// feature. st is the job's final status. Weights beyond 16 MiB are kept in a temporary file in dir,
// which takes about the size of the model. An empty dir is the system's folder for temporary files.
// It takes the memory of four values, or of two large ones, encoded and decoded (at most 2.8 times
// their size), 32 MiB, and a few words per task. yield must not keep the slices.
func StreamWeights(ctx context.Context, src Store, nodes int, st *taxonv1.JobStatus, dir string,
	yield func(node int, columns []uint32, values []float32) error) (err error) {
	if err := emitted(st); err != nil {
		return err
	}
	s := &weightBuffer{dir: dir}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.fetch(ctx, src, st); err != nil {
		return err
	}
	return s.stream(ctx, nodes, st, yield)
}

// emitted returns an error if a job has written no weights.
func emitted(st *taxonv1.JobStatus) error {
	if st.GetFinalStep() == 0 || len(st.GetFinalAttempts()) == 0 {
		return fmt.Errorf("job %s has no weights: it has not ended", st.GetJob())
	}
	return nil
}

// WeightBuffer keeps the final weights that tasks of this process write, in place of a store: up to
// 16 MiB of each step in memory, and the rest in a temporary file. It may be used by several
// goroutines.
type WeightBuffer struct {
	dir   string
	mu    sync.Mutex
	steps map[jobStep]*weightBuffer
}

// jobStep identifies a step of a job.
type jobStep struct {
	job  string
	step uint32
}

// NewWeightBuffer returns a WeightBuffer with its files in dir. An empty dir is the system's folder for
// temporary files.
func NewWeightBuffer(dir string) *WeightBuffer {
	return &WeightBuffer{dir: dir, steps: map[jobStep]*weightBuffer{}}
}

// put adds a value named program.WeightsName.
func (s *WeightBuffer) put(v store.Value) error {
	words, err := program.DecodeWeights(v.Data)
	if err != nil {
		return fmt.Errorf("%v: %w", v.Key, err)
	}
	at := jobStep{v.Key.Job, v.Key.Step}
	s.mu.Lock()
	w := s.steps[at]
	if w == nil {
		w = &weightBuffer{dir: s.dir}
		s.steps[at] = w
	}
	s.mu.Unlock()
	return w.keep(v.Key.Task, v.Key.Attempt, words)
}

// Stream does what StreamWeights does, for a job of this process. It makes no further file.
func (s *WeightBuffer) Stream(ctx context.Context, nodes int, st *taxonv1.JobStatus,
	yield func(node int, columns []uint32, values []float32) error) error {
	if err := emitted(st); err != nil {
		return err
	}
	s.mu.Lock()
	w := s.steps[jobStep{st.GetJob(), st.GetFinalStep()}]
	s.mu.Unlock()
	if w == nil {
		w = &weightBuffer{}
	}
	return w.stream(ctx, nodes, st, yield)
}

// Drop removes the weights of the steps that the argument selects, as Store.Drop does for values.
func (s *WeightBuffer) Drop(what store.DropSpec) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, w := range s.steps {
		if at.job == what.Job && what.Drops(at.step) {
			delete(s.steps, at)
			err = errors.Join(err, w.close())
		}
	}
	return err
}

// Close removes all weights and files.
func (s *WeightBuffer) Close() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.steps {
		err = errors.Join(err, w.close())
	}
	clear(s.steps)
	return err
}

// weightBuffer keeps the decoded values of a step's tasks; see program.DecodeWeights.
type weightBuffer struct {
	dir string

	mu     sync.Mutex
	values []spooledValue
	// kept is the number of bytes in memory.
	kept int
	// size is that of the file in bytes.
	size int64
	file *os.File
	// drop closes and removes the file.
	drop func() error
}

// spooledValue is one attempt's value, read up to the head of its next record.
type spooledValue struct {
	task, attempt uint32
	node, count   uint32
	// words is the rest of the value, if it is in memory.
	words []uint32
	// at and left are the offset and length in bytes of the rest, if it is in the file.
	at, left int64
	file     *bufio.Reader
}

// fetch reads all values from a store, several at a time.
func (s *weightBuffer) fetch(ctx context.Context, src Store, st *taxonv1.JobStatus) error {
	g, all := errgroup.WithContext(ctx)
	room, takes := semaphore.NewWeighted(weightReaders), int64(1)
	for task, attempt := range st.GetFinalAttempts() {
		s.mu.Lock()
		n := takes
		s.mu.Unlock()
		if room.Acquire(all, n) != nil {
			break // the group knows why
		}
		g.Go(func() error {
			defer room.Release(n)
			key := store.Key{Job: st.GetJob(), Step: st.GetFinalStep(), Task: uint32(task), Attempt: attempt,
				Name: program.WeightsName}
			data, err := store.Need(all, src, []store.Key{key})
			if err != nil {
				return err
			}
			words, err := program.DecodeWeights(data[0])
			if err != nil {
				return fmt.Errorf("%v: %w", key, err)
			}
			s.mu.Lock()
			takes = 1
			if len(data[0]) > largeValue {
				takes = 2
			}
			s.mu.Unlock()
			return s.keep(uint32(task), attempt, words)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// keep adds a decoded value.
func (s *weightBuffer) keep(task, attempt uint32, words []uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := spooledValue{task: task, attempt: attempt}
	if len(words) > 0 {
		v.node, v.count, words = words[0], words[1], words[2:]
	}
	switch bytes := 4 * len(words); {
	case s.kept+bytes <= spoolBytes:
		s.kept += bytes
		v.words = words
	default:
		v.at, v.left = s.size, int64(bytes)
		if err := s.write(words); err != nil {
			return fmt.Errorf("%w: %w", ErrWeightBuffer, fs.Explain(cmp.Or(s.dir, os.TempDir()), err))
		}
		s.size += v.left
	}
	s.values = append(s.values, v)
	return nil
}

// write appends to the file, one piece at a time.
func (s *weightBuffer) write(words []uint32) (err error) {
	if s.file == nil {
		if s.file, s.drop, err = vfs.ScratchFile(s.dir, "weights"); err != nil {
			return err
		}
	}
	var buffer []byte
	for piece := range slices.Chunk(words, 64<<10) {
		buffer = sparse.Append(buffer[:0], piece)
		if _, err := s.file.Write(buffer); err != nil {
			return err
		}
	}
	return nil
}

// close closes and removes the file.
func (s *weightBuffer) close() error {
	if s.file == nil {
		return nil
	}
	return s.drop()
}

// stream reads back, in order, the nodes of the attempts that count. The values whose next record
// is about one node form a list of that node.
func (s *weightBuffer) stream(ctx context.Context, nodes int, st *taxonv1.JobStatus,
	yield func(node int, columns []uint32, values []float32) error) error {
	values, err := s.of(st)
	if err != nil {
		return err
	}
	first, next := make([]int32, nodes), make([]int32, len(values)+1) // numbers of values from 1, or 0
	prepend := func(i int32) error {
		v := &values[i-1]
		if int(v.node) >= nodes {
			return fmt.Errorf("weights of task %d: node %d, there are %d: %w", v.task, v.node, nodes, codec.ErrBroken)
		}
		first[v.node], next[i] = i, first[v.node]
		return nil
	}
	for i := range values {
		if values[i].count == 0 { // the task found nothing
			continue
		}
		if err := prepend(int32(i + 1)); err != nil {
			return err
		}
	}
	var here []int32
	var l weightList
	for n := range nodes {
		if err := ctx.Err(); err != nil {
			return err
		}
		here, l.columns, l.values = here[:0], l.columns[:0], l.values[:0]
		for i := first[n]; i > 0; i = next[i] {
			here = append(here, i)
		}
		slices.Sort(here) // by task
		for _, i := range here {
			more, err := values[i-1].read(s, &l)
			if err == nil && more {
				err = prepend(i)
			}
			if err != nil {
				return err
			}
		}
		if err := yield(n, l.columns, l.values); err != nil {
			return err
		}
	}
	return nil
}

// of lists the values of a job's final attempts by task. They can be read once.
func (s *weightBuffer) of(st *taxonv1.JobStatus) ([]spooledValue, error) {
	attempts := st.GetFinalAttempts()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]spooledValue, len(attempts))
	for _, v := range s.values {
		if int(v.task) < len(out) && v.attempt == attempts[v.task] {
			out[v.task] = v
		}
	}
	for task, v := range out {
		if v.attempt == 0 {
			return nil, fmt.Errorf("job %s: the weights of task %d of step %d are not kept: %w", st.GetJob(), task,
				st.GetFinalStep(), store.ErrMissing)
		}
	}
	return out, nil
}

// weightList is the list of one node, and a buffer to read it.
type weightList struct {
	columns []uint32
	values  []float32
	buffer  []byte
}

// read appends the next record to a list. If more follows, it reads the head of the record after
// it.
func (v *spooledValue) read(s *weightBuffer, l *weightList) (more bool, err error) {
	m := int(v.count)
	body, err := v.take(s, l, 2*m)
	if err != nil {
		return false, err
	}
	if n := len(l.columns); n > 0 && body[0] <= l.columns[n-1] {
		return false, fmt.Errorf("weights of task %d: node %d, column %d is behind column %d of an earlier task: %w", v.task,
			v.node, body[0], l.columns[n-1], codec.ErrBroken)
	}
	l.columns = append(l.columns, body[:m]...)
	for _, bits := range body[m:] {
		l.values = append(l.values, math.Float32frombits(bits))
	}
	if len(v.words) == 0 && v.left == 0 {
		v.file = nil
		return false, nil
	}
	head, err := v.take(s, l, 2)
	if err != nil {
		return false, err
	}
	v.node, v.count = head[0], head[1]
	return true, nil
}

// take returns the next n words, which are valid until the next call.
func (v *spooledValue) take(s *weightBuffer, l *weightList, n int) (words []uint32, err error) {
	if v.left == 0 {
		words, v.words = v.words[:n], v.words[n:]
		return words, nil
	}
	if v.file == nil {
		room := int64(float64(spoolBytes) * float64(v.left) / float64(s.size))
		v.file = bufio.NewReaderSize(io.NewSectionReader(s.file, v.at, v.left), int(min(max(room, 512), 256<<10)))
	}
	if cap(l.buffer) < 4*n {
		l.buffer = make([]byte, 6*n)
	}
	b := l.buffer[:4*n]
	v.left -= int64(len(b))
	if _, err := io.ReadFull(v.file, b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWeightBuffer, err)
	}
	return sparse.View[uint32](b), nil
}
