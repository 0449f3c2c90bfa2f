package model

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"taxon/internal/fs"
	"taxon/internal/taxonomy"
)

// TextExporter writes effective weights as text, a line a node:
//
//	KIND NAME idx:val ... [bias:val]
//
// KIND is node, spawned (the leaf spawned under the internal label NAME) or virtual
// (NAME is -). Indices are those of the input, counted from 1, ascending; only nonzero
// weights are written, as the shortest decimals that read back to the same float32.
type TextExporter struct {
	m         *Model
	threshold float32
	order     []uint32 // columns by ascending input index
}

// NewTextExporter prepares an export that leaves out weights below threshold in
// absolute value (0: none; the bias is never left out for its size).
func (m *Model) NewTextExporter(threshold float64) (*TextExporter, error) {
	if !(threshold >= 0) || math.IsInf(threshold, 0) {
		return nil, fmt.Errorf("export: threshold %v: must be a number >= 0", threshold)
	}
	e := &TextExporter{m: m, threshold: float32(threshold), order: make([]uint32, len(m.Feature))}
	for c := range e.order {
		e.order[c] = uint32(c)
	}
	slices.SortFunc(e.order, func(a, b uint32) int { return int(int64(m.Feature[a]) - int64(m.Feature[b])) })
	return e, nil
}

// appendNode appends the line of node n, whose effective weights are w.
func (e *TextExporter) appendNode(b []byte, n int, w []float32) []byte {
	t := e.m.Tree
	kind, _ := kindName(t.Kind[n])
	name := t.Name[n]
	if t.Kind[n] == taxonomy.Virtual {
		name = "-"
	}
	b = append(append(append(b, kind...), ' '), name...)
	for _, c := range e.order {
		v := w[c]
		if v == 0 || float32(math.Abs(float64(v))) < e.threshold {
			continue
		}
		b = strconv.AppendUint(append(b, ' '), uint64(e.m.Feature[c]), 10)
		b = strconv.AppendFloat(append(b, ':'), float64(v), 'g', -1, 32)
	}
	if len(w) > len(e.order) && w[len(w)-1] != 0 {
		b = strconv.AppendFloat(append(b, " bias:"...), float64(w[len(w)-1]), 'g', -1, 32)
	}
	return append(b, '\n')
}

// exportChunk is how many nodes a goroutine renders at once: enough that finding the
// path to the first one costs little, few enough that the text of all threads' chunks
// stays small (a line may have 100 KB).
const exportChunk = 8

// Write writes all nodes in node order, rendered by `threads` goroutines.
func (e *TextExporter) Write(ctx context.Context, w io.Writer, threads int) error {
	return e.write(ctx, w, 0, e.m.Tree.Len(), threads)
}

func (e *TextExporter) write(ctx context.Context, w io.Writer, first, last, threads int) error {
	if threads < 1 {
		return fmt.Errorf("export: %d threads: must be at least 1", threads)
	}
	type chunk struct {
		first, last int
		text        []byte
		done        chan struct{}
	}
	free := make(chan *chunk, 2*threads)
	for range cap(free) {
		free <- &chunk{}
	}
	work, order := make(chan *chunk, cap(free)), make(chan *chunk, cap(free))
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(work)
		defer close(order)
		for at := first; at < last; at += exportChunk {
			select {
			case c := <-free:
				c.first, c.last, c.done = at, min(at+exportChunk, last), make(chan struct{})
				work <- c // both have room for every chunk there is
				order <- c
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range threads {
		g.Go(func() error {
			for c := range work {
				c.text = c.text[:0]
				if err := e.m.WalkVectors(c.first, c.last, func(n int, w []float32) error {
					c.text = e.appendNode(c.text, n, w)
					return ctx.Err()
				}); err != nil {
					return err
				}
				close(c.done)
			}
			return nil
		})
	}
	g.Go(func() error {
		for c := range order {
			select {
			case <-c.done:
			case <-ctx.Done():
				return ctx.Err()
			}
			if _, err := w.Write(c.text); err != nil {
				return err
			}
			free <- c
		}
		return nil
	})
	return g.Wait()
}

// successName marks a folder of parts as complete, as Hadoop's tools expect.
const successName = "_SUCCESS"

// WriteParts makes the folder dir with part-00000.txt, ..., one a weight shard, `threads`
// at a time, and an empty _SUCCESS. The folder must not exist or be empty; it appears under
// its name when it is whole.
func (e *TextExporter) WriteParts(ctx context.Context, dir string, threads int) error {
	if threads < 1 {
		return fmt.Errorf("export: %d threads: must be at least 1", threads)
	}
	out, err := fs.CreateDir(dir, false)
	if err != nil {
		return err
	}
	defer out.Abort()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(threads)
	part := 0
	for _, f := range e.m.Manifest.Files {
		if f.Nodes == 0 {
			continue
		}
		name := fmt.Sprintf("part-%05d.txt", part)
		part++
		g.Go(func() error { return fs.Explain(dir, e.writePart(gctx, out.Join(name), f)) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := os.WriteFile(out.Join(successName), nil, 0o666); err != nil {
		return fs.Explain(dir, err)
	}
	return out.Commit()
}

func (e *TextExporter) writePart(ctx context.Context, name string, f File) error {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer out.Close()
	buf := bufio.NewWriterSize(out, 1<<20)
	if err := e.write(ctx, buf, f.FirstNode, f.FirstNode+f.Nodes, 1); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return err
	}
	return out.Close()
}
