package export

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/parallel"
	"taxon/internal/model/predict"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
)

// Alias replaces an alias of a format by its name: taxon is model.
func (o *Options) Alias() {
	if o.Format == "taxon" {
		o.Format = modelFormat
	}
}

// Options configure an export. Messages name options as package option does.
type Options struct {
	// Model is the folder of the model.
	Model string
	// Format is one of Names.
	Format string
	// What is Mean, Variance or Precision.
	What string
	// Out is a file, - for Stdout, or a folder that exists or ends in a slash.
	Out    string
	Stdout io.Writer
	// MinParts is the smallest number of parts of a folder, if the format can be divided.
	MinParts int
	// Threads is the number of threads. Zero means one per core.
	Threads int
	// ForceSize writes the format liblinear however large it is.
	ForceSize bool

	// Threshold is the absolute value below which weights are omitted. With format model, they
	// become their parent's.
	Threshold float64
	// The remaining fields are for format model.
	// Auto searches the largest threshold whose loss on Data is at most Loss.
	Auto bool
	// Loss is the number of points of micro-F1 that may be lost with Auto.
	Loss float64
	// Data has labelled instances.
	Data predict.Input
	// Values is one of shard.Values.
	Values string
	// Force replaces an existing model.
	Force bool
}

// WholeModel reports whether the model is to be copied unchanged.
func (o *Options) WholeModel() bool {
	return o.Format == modelFormat && !o.Auto && o.Threshold == 0 && o.Values == "float32"
}

// Report summarises an export, as `taxon export --json` prints it.
type Report struct {
	Out    string `json:"out"`
	Format string `json:"format"`
	Nodes  int    `json:"nodes"`
	// Bytes is the size of one file, or of a pruned model's folder.
	Bytes   int64   `json:"bytes,omitempty"`
	Seconds float64 `json:"seconds"`

	// PruneReport is set for format model only.
	*PruneReport
}

// Check returns an error for options that contradict each other.
func (o *Options) Check() error {
	o.Alias()
	pruning := o.Format == modelFormat
	switch {
	case o.Out == "":
		return option.Errorf("export: ‹out=\"\"›: name a file, a folder with / at its end, or - for standard output")
	case o.What != Mean && (o.Format != textFormat || o.Threshold != 0):
		return option.Errorf("export: ‹what=%s› goes with ‹format=text›, without ‹threshold›", o.What)
	case o.What != Mean && isFolder(o.Out):
		return option.Errorf("export: ‹what=%s› writes one file: name it with ‹out›", o.What)
	case o.ForceSize && o.Format != liblinearFormat:
		return option.Errorf("export: ‹force-size› goes with ‹format=liblinear›")
	case o.Force && !pruning:
		return option.Errorf("export: ‹force› goes with ‹format=model›")
	case pruning && o.Out == fs.Stdin:
		return option.Errorf("export: a model is a folder: name it with ‹out›")
	case !pruning && o.Values != "float32":
		return option.Errorf("export: ‹values=%s› goes with ‹format=model›", o.Values)
	case !pruning && o.Auto:
		return option.Errorf("export: ‹threshold=auto› goes with ‹format=model›: give a number")
	case o.Auto && o.Data.Path == "":
		return option.Errorf("export: ‹threshold=auto› measures what pruning costs: add ‹data=FILE› with labelled instances")
	case o.Data.Path == fs.Stdin:
		return option.Errorf("export: ‹data› is read several times: give a file instead of standard input")
	case !o.Auto && o.Data.Path != "":
		return option.Errorf("export: ‹data› goes with ‹threshold=auto›")
	}
	return nil
}

// Run writes the weights of a model, or a smaller model.
func Run(ctx context.Context, o Options, ui progress.Reporter) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	m, err := model.Open(o.Model)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if err := predict.RefuseOverwrite("export", "out", o.Out, o.Data.Path, o.Model); err != nil {
		return nil, err
	}
	began := time.Now()
	r := &Report{Out: o.Out, Format: o.Format, Nodes: m.Tree.Len()}
	if o.Format == modelFormat {
		err = o.writePruned(ctx, m, r, ui)
	} else {
		err = o.writeWeights(ctx, m, r, ui)
	}
	r.Seconds = time.Since(began).Seconds()
	return r, err
}

// writeWeights writes all formats but a model.
func (o *Options) writeWeights(ctx context.Context, m *model.Model, r *Report, ui progress.Reporter) error {
	s, err := NewSource(m, o.Threshold)
	if err != nil {
		return err
	}
	f := o.formatOf()
	write, err := f.open(m, s, o)
	if err != nil {
		return err
	}
	f.whole = f.whole || o.What != Mean
	if o.Format == liblinearFormat {
		if err := o.liblinearFits(s, ui); err != nil {
			return err
		}
	}
	beside := map[string][]byte{}
	if f.matrix {
		if err := s.CheckMatrix(); err != nil {
			return err
		}
		beside = s.Features()
		beside["labels.txt"] = s.Labels(0, m.Tree.Len())
		if m.Structure != nil {
			beside["edges.txt"] = m.Structure.Text()
		}
	}
	size, err := o.size(ctx, f.whole, write, s)
	if err != nil {
		return err
	}
	if size > noteBytes && o.Format != liblinearFormat {
		ui.Note("the weights take about %s in format %s", format.Bytes(size), o.Format)
	}
	line := ui.StartBytes("export", size)
	defer line.Done()
	var written atomic.Int64
	if o.Out != fs.Stdin && isFolder(o.Out) {
		if names, _ := fs.ReadDirNames(o.Out); len(names) > 0 {
			return fs.Inputf(o.Out, 0, "exists already: choose another ‹out›")
		}
		parts := o.cut(Parts(m))
		if f.whole {
			parts = []int{0, m.Tree.Len()}
		}
		n := parallel.Threads(o.Threads)
		each := max(1, n/(len(parts)-1)) // threads of a part
		return WriteParts(ctx, o.Out, f.ext, parts, n, func(ctx context.Context, w io.Writer, first, last int) error {
			return write(ctx, &countWriter{w: w, n: &written, line: line}, first, last, each)
		}, beside)
	}
	if err := checkBeside(o.Out, beside); err != nil {
		return err
	}
	if err := fs.WriteOut(o.Out, o.Stdout, func(w *bufio.Writer) error {
		return write(ctx, &countWriter{w: w, n: &written, line: line}, 0, m.Tree.Len(), parallel.Threads(o.Threads))
	}); err != nil {
		return err
	}
	r.Bytes = written.Load()
	return writeBeside(o.Out, beside)
}

// The size of an export is estimated from a number of sampled ranges, which together have one node
// of sampleShare.
const (
	sampleRanges = 128
	sampleShare  = 64
)

// size estimates the number of bytes of the nodes in a format. It is 0 if the export takes only a
// moment, or if the size is unknown.
func (o *Options) size(ctx context.Context, whole bool, write writer, s *Source) (int64, error) {
	if o.Format == liblinearFormat {
		return s.LiblinearBytes(), nil
	}
	nodes := s.m.Tree.Len()
	each := nodes / sampleRanges / sampleShare
	if whole || each == 0 {
		return 0, nil
	}
	sizeOf := func(first, last int) (int64, error) {
		var n atomic.Int64
		err := write(ctx, &countWriter{w: io.Discard, n: &n, line: progress.Discard{}}, first, last, 1)
		return n.Load(), err
	}
	random := rand.New(rand.NewPCG(1, 1)) // irregular, as nodes may follow a pattern
	frame, err := sizeOf(0, 0)
	sum := int64(0)
	for i := 0; i < sampleRanges && err == nil; i++ {
		step, n := nodes/sampleRanges, int64(0)
		first := i*step + random.IntN(step-each+1)
		n, err = sizeOf(first, first+each)
		sum += n - frame
	}
	return frame + int64(float64(sum)*float64(nodes)/float64(sampleRanges*each)), err
}

// These are the size from which on the user is told beforehand, and the sizes of a liblinear file
// from which on the export warns and refuses.
const (
	noteBytes   = 8 << 20
	tellBytes   = 64 << 20
	refuseBytes = 1 << 30
)

// liblinearFits warns of a large dense file and refuses a huge one, because nobody expects it from
// a sparse model.
func (o *Options) liblinearFits(s *Source, ui progress.Reporter) error {
	n := s.LiblinearBytes()
	if n > refuseBytes && !o.ForceSize {
		return option.Errorf("export: ‹format=liblinear› is dense, and would take at least %s: use npz, safetensors or "+
			"text, or add ‹force-size›", format.Bytes(n))
	}
	if n > tellBytes {
		ui.Note("format liblinear is dense: it takes at least %s", format.Bytes(n))
	}
	return nil
}

// checkBeside returns an error if writing would overwrite a file of the user's next to the weights.
// A file with the same content may stay.
func checkBeside(out string, files map[string][]byte) error {
	if out == fs.Stdin {
		return nil
	}
	for name, content := range files {
		path := fs.Join(fs.Dir(out), name)
		if path == fs.Clean(out) {
			return option.Errorf("export: ‹out=%s› is the name of the file that goes beside the weights: choose another", out)
		}
		had, err := fs.ReadFile(context.Background(), path)
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fs.Explain(path, err)
		}
		if !bytes.Equal(had, content) {
			return fs.Inputf(path, 0, "exists with other content, and %s goes beside the weights: choose an ‹out› in another "+
				"folder, or a new folder with / at its end", name)
		}
	}
	return nil
}

// writeBeside writes the files next to the weights.
func writeBeside(out string, files map[string][]byte) error {
	if out == fs.Stdin {
		return nil
	}
	for name, content := range files {
		if err := fs.WriteOut(fs.Join(fs.Dir(out), name), nil, func(w *bufio.Writer) error {
			_, err := w.Write(content)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// isFolder reports whether a path is a folder: it exists as one, or ends in a slash.
func isFolder(path string) bool {
	if strings.HasSuffix(path, "/") {
		return true
	}
	st, err := fs.Stat(path)
	return err == nil && !errors.Is(err, iofs.ErrNotExist) && st.IsDir()
}

// cut divides the nodes into at least MinParts parts. parts are the first nodes of the model's
// parts, and at the end the number of nodes.
func (o *Options) cut(parts []int) []int {
	nodes := parts[len(parts)-1]
	n := min(o.MinParts, nodes)
	if n < len(parts) {
		return parts
	}
	out := make([]int, n+1)
	for i := range out {
		out[i] = i * nodes / n
	}
	return out
}

// countWriter counts bytes for the progress line and the report.
type countWriter struct {
	w io.Writer
	// n is the number of bytes of all parts.
	n    *atomic.Int64
	line progress.Progress
}

func (c *countWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.line.Set(c.n.Add(int64(n)))
	return n, err
}
