package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	iofs "io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/export"
	"taxon/internal/fs"
	"taxon/internal/model"
)

// exportOptions are the flags of export.
type exportOptions struct {
	model     string
	format    string
	out       string
	threshold thresholdValue
	values    string
	loss      float64 // points of micro-F1 that --threshold auto may cost
	rows      rowOptions
	threads   int
	forceSize bool
	force     bool
	exportJobOptions
}

// exportFormats lists the formats there are.
var exportFormats = []string{"text", "model", "liblinear", "npz", "safetensors", "parquet"}

func newExportCmd(a *app) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:     "export --model DIR (or --job ID) --format NAME --out PATH",
		GroupID: groupModel,
		Short:   "write a model's weights for other programs, or a small one for prediction",
		Long: "Writes the weights of a model. Format text is a line a node in node order, internal ones too, KIND NAME idx:val ... [bias:val]: " +
			"KIND is node, spawned (the leaf spawned under the internal label NAME), virtual (NAME is -) or dummy, indices are those of the input, " +
			"counted from 1, and only nonzero weights stand there, as the shortest decimals that read back to the same float32; parquet has the same in long form. " +
			"npz (SciPy), safetensors and liblinear hold classes x features, the bias last, beside a labels.txt with a line a class (and, for text, a features.txt with the words). " +
			"A liblinear file is dense: one that would take more than 1 GiB is refused without --force-size. " +
			"Format model is a smaller model for predict, eval, explain, info and export: a weight that differs from the parent's by less than --threshold becomes the parent's, so it " +
			"stays within --threshold of the trained one, and scores change a little; --threshold auto takes the largest threshold that lowers micro F1 on --data by at most --prune-loss points. " +
			"--out FILE gets one file; --out DIR/ gets parts, one a weight shard, and _SUCCESS. " +
			"With --job the weights of a cluster's finished job are read straight from its shards; format model, with no threshold, is then the model that train would have made.",
		Example: "taxon export --model model --format npz --out weights.npz\n" +
			"taxon export --job job-1 --coordinator 127.0.0.1:7070 --format model --out model",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.rows.threads, o.rows.asTrained = o.threads, true
			if o.job != "" {
				return runExportJob(cmd, a, o)
			}
			return runExport(cmd, a, o)
		},
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringVar(&o.model, "model", "", "the `DIR` of a model")
		f.StringVar(&o.job, "job", "", "a cluster's finished job: its `ID`")
		f.StringVar(&o.rows.path, "data", "", "labelled instances to measure --threshold auto on, best not those of the training: a `FILE` or a folder made by ingest")
	})
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		choiceFlag(f, &o.format, "format", "text", exportFormats, "format of the weights: `NAME` is "+strings.Join(exportFormats, ", "))
		f.StringVar(&o.out, "out", "", "write to `PATH`: a file, - for standard output, or a new folder if it ends in / ")
		f.BoolVar(&o.force, "force", false, "format model: replace a model that is there")
		f.Var(&o.threshold, "threshold", "leave out weights smaller than `T` in absolute value; format model: weights that differ from the parent's by less than T become the parent's; auto: the largest T that --prune-loss allows on --data")
		choiceFlag(f, &o.values, "values", "float32", []string{"float32", "float16"}, "format model with a --threshold: how weights are stored; float16 takes half the bytes and rounds to 11 bits")
		f.BoolVar(&o.forceSize, "force-size", false, "format liblinear: write a file of more than 1 GiB")
		floatFlag(f, &o.loss, "prune-loss", 0.1, "with --threshold auto: how much micro F1 on --data may fall, in percentage points", atLeast0)
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) { threadsFlag(f, &o.threads) })
	o.client.flags(cmd)
	require(cmd, "out")
	return cmd
}

// thresholdValue is the flag --threshold: a number >= 0, or auto.
type thresholdValue struct {
	at   float64
	auto bool
}

func (v *thresholdValue) String() string {
	if v.auto {
		return "auto"
	}
	return (&floatValue{p: &v.at}).String()
}

func (v *thresholdValue) Type() string { return "number" }

func (v *thresholdValue) Set(s string) error {
	if s == "auto" {
		v.auto = true
		return nil
	}
	v.auto = false
	return (&floatValue{p: &v.at, check: atLeast0}).Set(s)
}

// exportReport is `taxon export --json`.
type exportReport struct {
	Out     string  `json:"out"`
	Format  string  `json:"format"`
	Nodes   int     `json:"nodes"`
	Bytes   int64   `json:"bytes,omitempty"` // of one file, or of a pruned model's folder
	Seconds float64 `json:"seconds"`

	*pruneReport // format model only
}

// check refuses what does not go together.
func (o *exportOptions) check(a *app) error {
	pruning := o.format == "model"
	switch {
	case o.model == "" && o.job == "":
		return usagef("export: flag --model is required, or --job: see `taxon help export`")
	case o.model != "" && o.job != "":
		return usagef("export: --model and --job exclude each other")
	case o.out == fs.Stdin && a.json:
		return usagef("export: --json prints to standard output: name a file for the weights with --out")
	case o.out == "":
		return usagef("export: --out \"\": name a file, a folder with / at its end, or - for standard output")
	case o.forceSize && o.format != "liblinear":
		return usagef("export: --force-size goes with --format liblinear")
	case o.force && !pruning:
		return usagef("export: --force goes with --format model")
	case pruning && o.out == fs.Stdin:
		return usagef("export: a model is a folder: name it with --out")
	case !pruning && o.values != "float32":
		return usagef("export: --values %s goes with --format model", o.values)
	case !pruning && o.threshold.auto:
		return usagef("export: --threshold auto goes with --format model: give a number")
	case o.threshold.auto && o.rows.path == "":
		return usagef("export: --threshold auto measures what pruning costs: add --data FILE with labelled instances")
	case o.rows.path == fs.Stdin:
		return usagef("export: --data is read several times: give a file instead of standard input")
	case !o.threshold.auto && o.rows.path != "":
		return usagef("export: --data goes with --threshold auto")
	}
	return nil
}

func runExport(cmd *cobra.Command, a *app, o exportOptions) error {
	if err := o.check(a); err != nil {
		return err
	}
	m, err := openModel(o.model)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := checkOut("export", o.out, o.rows.path, o.model); err != nil {
		return err
	}
	began := time.Now()
	r := exportReport{Out: o.out, Format: o.format, Nodes: m.Tree.Len()}
	if o.format == "model" {
		err = a.exportPruned(cmd.Context(), m, o, &r)
	} else {
		err = a.exportWeights(cmd.Context(), m, o, &r)
	}
	if err != nil {
		return err
	}
	r.Seconds = time.Since(began).Seconds()
	if a.json {
		return a.printJSON(r)
	}
	if p := r.pruneReport; p != nil {
		a.ui.Note("%s of %s weights kept at threshold %g, %s on disk, in %s", formatCount(p.Entries), formatCount(int64(m.Manifest.Counts.Overrides)),
			p.Threshold, formatBytes(r.Bytes), formatSeconds(r.Seconds))
		return nil
	}
	a.ui.Note("%s nodes written in %s", formatCount(int64(r.Nodes)), formatSeconds(r.Seconds))
	return nil
}

// weightFormat is a format of one file or of parts.
type weightFormat struct {
	ext    string
	matrix bool // classes x features: labels stand beside it
	whole  bool // cannot be cut
	write  func(ctx context.Context, w io.Writer, first, last, threads int) error
}

func formatOf(name string, m *model.Model, s *export.Source, threshold float64) (weightFormat, error) {
	switch name {
	case "liblinear":
		return weightFormat{ext: ".model", matrix: true, whole: true, write: func(ctx context.Context, w io.Writer, _, _, threads int) error {
			return s.Liblinear(ctx, w, threads)
		}}, nil
	case "npz":
		return weightFormat{ext: ".npz", matrix: true, write: s.NPZ}, nil
	case "safetensors":
		return weightFormat{ext: ".safetensors", matrix: true, write: s.Safetensors}, nil
	case "parquet":
		return weightFormat{ext: ".parquet", write: s.Parquet}, nil
	}
	t, err := m.NewTextExporter(threshold)
	return weightFormat{ext: ".txt", write: t.WriteRange}, err
}

// exportWeights writes every format but a model.
func (a *app) exportWeights(ctx context.Context, m *model.Model, o exportOptions, r *exportReport) error {
	s, err := export.NewSource(m, o.threshold.at)
	if err != nil {
		return err
	}
	f, err := formatOf(o.format, m, s, o.threshold.at)
	if err != nil {
		return err
	}
	if o.format == "liblinear" {
		if err := a.liblinearFits(s, o); err != nil {
			return err
		}
	}
	beside := map[string][]byte{}
	if f.matrix {
		if err := s.CheckMatrix(); err != nil {
			return err
		}
		beside["labels.txt"] = s.Labels(0, m.Tree.Len())
		if words := s.Words(); words != nil {
			beside["features.txt"] = words
		}
	}
	line := a.ui.StartBytes("export", 0)
	defer line.Done()
	if o.out != fs.Stdin && isFolder(o.out) {
		if names, _ := fs.ReadDirNames(o.out); len(names) > 0 {
			return fs.Inputf(o.out, 0, "exists already: choose another --out")
		}
		parts := o.cut(m.Parts())
		if f.whole {
			parts = []int{0, m.Tree.Len()}
		}
		n := workers(o.threads)
		each := max(1, n/(len(parts)-1)) // threads of a part
		return model.WriteParts(ctx, o.out, f.ext, parts, n, func(ctx context.Context, w io.Writer, first, last int) error {
			return f.write(ctx, w, first, last, each)
		}, beside)
	}
	if err := checkBeside(o.out, beside); err != nil {
		return err
	}
	if err := a.writeOut(o.out, func(w io.Writer) error {
		return f.write(ctx, &countWriter{w: w, n: &r.Bytes, line: line}, 0, m.Tree.Len(), workers(o.threads))
	}); err != nil {
		return err
	}
	return a.writeBeside(o.out, beside)
}

// Sizes of a liblinear file from which it is told beforehand, and refused.
const (
	tellBytes   = 64 << 20
	refuseBytes = 1 << 30
)

// liblinearFits tells how large a dense file becomes, and refuses what nobody expects of a
// sparse model.
func (a *app) liblinearFits(s *export.Source, o exportOptions) error {
	n := s.LiblinearBytes()
	if n > refuseBytes && !o.forceSize {
		return usagef("export: --format liblinear is dense, and would take at least %s: use npz, safetensors or text, or add --force-size", formatBytes(n))
	}
	if n > tellBytes {
		a.ui.Note("format liblinear is dense: it takes at least %s", formatBytes(n))
	}
	return nil
}

// checkBeside refuses to replace a file of the user's by one that stands beside the
// weights: one of the same content may stay.
func checkBeside(out string, files map[string][]byte) error {
	if out == fs.Stdin {
		return nil
	}
	for name, content := range files {
		path := fs.Join(fs.Dir(out), name)
		if path == fs.Clean(out) {
			return usagef("export: --out %s is the name of the file that goes beside the weights: choose another", out)
		}
		had, err := fs.ReadFile(context.Background(), path)
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fs.Explain(path, err)
		}
		if !bytes.Equal(had, content) {
			return fs.Inputf(path, 0, "exists with other content, and %s goes beside the weights: choose an --out in another folder, or a new folder with / at its end", name)
		}
	}
	return nil
}

// writeBeside writes the files that go beside the weights.
func (a *app) writeBeside(out string, files map[string][]byte) error {
	if out == fs.Stdin {
		return nil
	}
	for _, name := range []string{"labels.txt", "features.txt"} {
		content, ok := files[name]
		if !ok {
			continue
		}
		if err := a.writeOut(fs.Join(fs.Dir(out), name), func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// isFolder tells a folder by the slash at the end of its name, or by its being there.
func isFolder(path string) bool {
	if strings.HasSuffix(path, "/") {
		return true
	}
	st, err := fs.Stat(path)
	return err == nil && !errors.Is(err, iofs.ErrNotExist) && st.IsDir()
}

// countWriter counts bytes for the progress line and the report.
type countWriter struct {
	w    io.Writer
	n    *int64
	line *progress
}

func (c *countWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	*c.n += int64(n)
	c.line.Set(*c.n)
	return n, err
}
