package generate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strconv"

	"golang.org/x/sync/errgroup"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
)

// These files are in the folder that Write creates.
const (
	TrainFile     = "train.svm"
	TestFile      = "test.svm"
	HierarchyFile = "hierarchy.txt"
	ShapeFile     = "shape.json"
)

// Options configures a Write.
type Options struct {
	Shape Shape
	Seed  uint64

	// Out is the folder to create.
	Out string

	// Replace allows a folder that Write has created, or an empty one, to be replaced.
	Replace bool

	// Threads is the number of threads. All cores are used if it is 0.
	Threads int

	// Progress is called with the number of documents written and of all documents. It may be nil.
	Progress func(done, total int64)
}

// Report describes the output of a Write. It has the exact counts where Shape has averages.
type Report struct {
	Shape Shape  `json:"shape"`
	Seed  uint64 `json:"seed"`

	// Nodes is the number of nodes of the hierarchy, or 0 if there is none.
	Nodes int `json:"nodes"`
	Edges int `json:"edges"`

	// Labels counts the (row, label) pairs of the training data.
	Labels int64 `json:"label_entries"`

	// Bytes is the size of the folder without the shape's file.
	Bytes int64 `json:"bytes"`
}

// Write creates a folder with training data, test data and a hierarchy. A failed or cancelled Write
// leaves no files.
func Write(ctx context.Context, o Options) (*Report, error) {
	g, err := New(o.Shape, o.Seed)
	if err != nil {
		return nil, fs.Inputf("", 0, "%w", err)
	}
	if o.Replace && !replaceable(o.Out) {
		return nil, fs.Inputf(o.Out, 0, "is a folder that holds something other than generated data: choose another place")
	}
	dir, err := fs.CreateDir(o.Out, o.Replace)
	if err != nil {
		return nil, err
	}
	defer dir.Abort()
	w := &writer{o: o, g: g, dir: dir, report: Report{Shape: o.Shape, Seed: o.Seed}}
	if w.o.Threads <= 0 {
		w.o.Threads = runtime.GOMAXPROCS(0)
	}
	if err := w.write(ctx); err != nil {
		return nil, err
	}
	return &w.report, dir.Commit()
}

// replaceable reports whether the folder may be replaced, so that folders of others are protected.
func replaceable(out string) bool {
	names, err := fs.ReadDirNames(out)
	if err != nil || len(names) == 0 {
		return true
	}
	return fs.Exists(fs.Join(out, ShapeFile))
}

type writer struct {
	o      Options
	g      *Source
	dir    *fs.OutDir
	report Report
	done   int64
}

func (w *writer) write(ctx context.Context) error {
	s := w.o.Shape
	err := w.file(TrainFile, func(out io.Writer) error { return w.rows(ctx, out, s.Instances, false) })
	if err == nil && s.Test > 0 {
		err = w.file(TestFile, func(out io.Writer) error { return w.rows(ctx, out, s.Test, true) })
	}
	if err == nil && s.Internals > 0 {
		w.report.Nodes, w.report.Edges = len(w.g.Tree.Parent), w.g.Tree.Edges()
		err = w.file(HierarchyFile, w.g.Tree.write)
	}
	if err != nil {
		return err
	}
	doc, err := json.MarshalIndent(w.report, "", "  ")
	if err != nil {
		return err
	}
	return w.dir.Write(ShapeFile, append(doc, '\n'))
}

func (w *writer) file(name string, fill func(io.Writer) error) error {
	f, err := w.dir.Create(name)
	if err != nil {
		return err
	}
	out := &counter{w: f}
	err = vfs.CloseSynced(f, fill(out))
	w.report.Bytes += out.n
	return fs.Explain(w.dir.Name(), err)
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// chunkRows is the number of documents that a goroutine generates at a time: some hundred
// kilobytes.
const chunkRows = 1024

// rows writes n documents in order. Each thread generates one chunk at a time.
func (w *writer) rows(ctx context.Context, out io.Writer, n int, test bool) error {
	makers := make([]maker, w.o.Threads)
	chunks := make([][]byte, w.o.Threads)
	for at := 0; at < n; {
		var g errgroup.Group
		from := at
		for k := 0; k < len(makers) && at < n; k++ {
			lo, hi := at, min(at+chunkRows, n)
			at = hi
			g.Go(func() error {
				makers[k].g = w.g
				chunks[k] = chunks[k][:0]
				for i := lo; i < hi; i++ {
					chunks[k] = makers[k].row(chunks[k], i, test)
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for k := range (at - from + chunkRows - 1) / chunkRows {
			if _, err := out.Write(chunks[k]); err != nil {
				return err
			}
		}
		w.done += int64(at - from)
		if w.o.Progress != nil {
			w.o.Progress(w.done, int64(w.o.Shape.Instances+w.o.Shape.Test))
		}
	}
	for k := range makers {
		if !test {
			w.report.Labels += int64(makers[k].total)
		}
	}
	return nil
}

// write writes one line per edge. Internal nodes are called n0, n1 .., classes c0, c1 ..
func (t *Tree) write(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	name := func(b []byte, n int32) []byte {
		if int(n) < t.Internals {
			return strconv.AppendInt(append(b, 'n'), int64(n), 10)
		}
		return strconv.AppendInt(append(b, 'c'), int64(int(n)-t.Internals), 10)
	}
	var b []byte
	edge := func(p, n int32) {
		b = append(name(append(name(b[:0], p), ' '), n), '\n')
		out.Write(b)
	}
	for n := int32(1); int(n) < len(t.Parent); n++ {
		edge(t.Parent[n], n)
		if t.More != nil {
			for _, p := range t.More[t.MoreFrom[n]:t.MoreFrom[n+1]] {
				edge(p, n)
			}
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("hierarchy: %w", err)
	}
	return nil
}
