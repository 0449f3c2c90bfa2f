package export

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/model"
	"taxon/internal/model/form"
	"taxon/internal/model/parallel"
)

// renderChunk is the number of nodes that a goroutine renders at once. With more, the path to the
// first one costs less per node. With fewer, the chunks take less memory; a line of text may have
// 100 KB.
const renderChunk = 8

// Render calls render with the effective vector of each node in [first, last), in several
// goroutines, and writes the bytes that it appends to b, in node order. One Write has whole nodes.
// The vector is valid during the call only. The memory is a vector per thread, and the bytes of a
// few chunks.
func Render(ctx context.Context, m *model.Model, w io.Writer, first, last, threads int, render func(b []byte, n int,
	vector []float32) []byte) error {
	return renderBy(ctx, m, w, first, last, threads, m.WalkVectors, render)
}

// RenderRows does what Render does, with the vectors that give the terminals' scores. If scores are
// sums over paths, these are the sums of the vectors on the paths.
func RenderRows(ctx context.Context, m *model.Model, w io.Writer, first, last, threads int, render func(b []byte, n int,
	vector []float32) []byte) error {
	walk := m.WalkVectors
	if m.Form.Predictor == form.Sums {
		walk = m.WalkSums
	}
	return renderBy(ctx, m, w, first, last, threads, walk, render)
}

func renderBy(ctx context.Context, m *model.Model, w io.Writer, first, last, threads int, walk func(first, last int,
	visit func(n int, vector []float32) error) error,
	render func(b []byte, n int, vector []float32) []byte) error {
	if threads < 1 {
		return fmt.Errorf("export: %d threads: must be at least 1", threads)
	}
	type chunk struct {
		first, last int
		bytes       []byte
	}
	at := first
	err := parallel.InOrder(ctx, threads, func(c *chunk) (bool, error) {
		c.first, c.last = at, min(at+renderChunk, last)
		at = c.last
		return c.first < c.last, nil
	}, func() func(context.Context, *chunk) error {
		return func(ctx context.Context, c *chunk) error {
			c.bytes = c.bytes[:0]
			return walk(c.first, c.last, func(n int, vector []float32) error {
				c.bytes = render(c.bytes, n, vector)
				return ctx.Err()
			})
		}
	}, func(c *chunk) error {
		_, err := w.Write(c.bytes)
		return err
	})
	if err != nil {
		return err
	}
	return m.Whole()
}

// Parts divides the nodes into ranges for an export in parts: the weight shards or, for a pruned
// model, ranges of equal length. Part i has the nodes from parts[i] to before parts[i+1].
func Parts(m *model.Model) []int {
	parts := []int{0}
	if m.Manifest.Pruned != nil {
		for at := prunedPart; at < m.Tree.Len(); at += prunedPart {
			parts = append(parts, at)
		}
		return append(parts, m.Tree.Len())
	}
	for _, f := range m.Manifest.Files {
		if f.Nodes > 0 {
			parts = append(parts, f.FirstNode+f.Nodes)
		}
	}
	return parts
}

// prunedPart is the number of nodes of one part of a pruned model.
const prunedPart = 4096

// WriteParts makes the folder dir with the files part-00000EXT, part-00001EXT, ..., several at a
// time, the files of beside (name to content) and an empty _SUCCESS. write gets the nodes of a
// part, from parts[i] to before parts[i+1], and a buffered writer. The folder must be missing or
// empty. It appears when it is complete.
func WriteParts(ctx context.Context, dir, ext string, parts []int, threads int, write func(ctx context.Context,
	w io.Writer, first, last int) error, beside map[string][]byte) error {
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
	for i := range len(parts) - 1 {
		g.Go(fs.Guarded(func() error {
			return writePart(out, fmt.Sprintf("part-%05d%s", i, ext), func(w io.Writer) error {
				return write(gctx, w, parts[i], parts[i+1])
			})
		}))
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for name, content := range beside {
		if err := out.Write(name, content); err != nil {
			return err
		}
	}
	if err := writePart(out, successFile, func(io.Writer) error { return nil }); err != nil {
		return err
	}
	return out.Commit()
}

// writePart writes a file of the folder out through a buffer.
func writePart(out *fs.OutDir, name string, write func(io.Writer) error) error {
	f, err := out.Create(name)
	if err != nil {
		return err
	}
	buf := bufio.NewWriterSize(f, 1<<20)
	err = write(buf)
	if err == nil {
		err = buf.Flush()
	}
	return fs.Explain(out.Name(), vfs.CloseSynced(f, err))
}

// successFile marks a folder as complete for Hadoop's tools.
const successFile = "_SUCCESS"
