package main

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/fs"
)

// exportOptions are the flags of export.
type exportOptions struct {
	model     string
	format    string
	out       string
	threshold float64
	threads   int
}

// exportFormats lists the formats there are.
var exportFormats = []string{"text"}

func newExportCmd(a *app) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:     "export --model DIR --format text --out PATH",
		GroupID: groupModel,
		Short:   "write a model's weights for other programs",
		Long: "Writes the weights of every node, internal ones too. Format text is a line a node in node order, KIND NAME idx:val ... [bias:val]: " +
			"KIND is node, spawned (the leaf spawned under the internal label NAME) or virtual (NAME is -), indices are those of the input, " +
			"counted from 1, and only nonzero weights stand there, as the shortest decimals that read back to the same float32. " +
			"--out FILE gets one file; --out DIR/ gets parts, one a weight shard, and _SUCCESS.",
		Example: "taxon export --model model --format text --out weights.txt\n" +
			"taxon export --model model --format text --out - | head -3",
		RunE: func(cmd *cobra.Command, _ []string) error { return runExport(cmd, a, o) },
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringVar(&o.model, "model", "", "the `DIR` of a model")
	})
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		choiceFlag(f, &o.format, "format", "text", exportFormats, "format of the weights: `NAME` is "+strings.Join(exportFormats, ", "))
		f.StringVar(&o.out, "out", "", "write to `PATH`: a file, - for standard output, or a new folder if it ends in / ")
		floatFlag(f, &o.threshold, "threshold", 0, "leave out weights smaller than `T` in absolute value", atLeast0)
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) { threadsFlag(f, &o.threads) })
	require(cmd, "model", "out")
	return cmd
}

// exportReport is `taxon export --json`.
type exportReport struct {
	Out     string  `json:"out"`
	Format  string  `json:"format"`
	Nodes   int     `json:"nodes"`
	Bytes   int64   `json:"bytes,omitempty"` // of one file
	Seconds float64 `json:"seconds"`
}

func runExport(cmd *cobra.Command, a *app, o exportOptions) error {
	if o.out == fs.Stdin && a.json {
		return usagef("export: --json prints to standard output: name a file for the weights with --out")
	}
	if o.out == "" {
		return usagef("export: --out \"\": name a file, a folder with / at its end, or - for standard output")
	}
	m, err := openModel(o.model)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := checkOut("export", o.out, "", o.model); err != nil {
		return err
	}
	e, err := m.NewTextExporter(o.threshold)
	if err != nil {
		return err
	}
	began := time.Now()
	r := exportReport{Out: o.out, Format: o.format, Nodes: m.Tree.Len()}
	line := a.ui.StartBytes("export", 0)
	defer line.Done()
	if o.out != fs.Stdin && isFolder(o.out) {
		if entries, _ := os.ReadDir(o.out); len(entries) > 0 {
			return fs.Inputf(o.out, 0, "exists already: choose another --out")
		}
		err = e.WriteParts(cmd.Context(), o.out, workers(o.threads))
	} else {
		err = a.writeOut(o.out, func(w io.Writer) error {
			return e.Write(cmd.Context(), &countWriter{w: w, n: &r.Bytes, line: line}, workers(o.threads))
		})
	}
	line.Done()
	if err != nil {
		return err
	}
	r.Seconds = time.Since(began).Seconds()
	if a.json {
		return a.printJSON(r)
	}
	a.ui.Note("%s nodes written in %s", formatCount(int64(r.Nodes)), formatSeconds(r.Seconds))
	return nil
}

// isFolder tells a folder by the slash at the end of its name, or by its being there.
func isFolder(path string) bool {
	if strings.HasSuffix(path, "/") {
		return true
	}
	st, err := os.Stat(path)
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
