package main

import (
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/app/train"
	"taxon/internal/data/dataset"
	"taxon/internal/data/table"
	"taxon/internal/fs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// ingestOptions holds the flags of ingest.
type ingestOptions struct {
	data      []string
	text      bool
	words     dataset.Words
	labelText dataset.LabelText
	strings   bool
	kernel    dataset.Strings
	zeroBased bool
	weights   string
	table     table.Options
	out       string
	force     bool
	memory    int64
	threads   int
	temp      string
}

// newIngestCmd returns the verb ingest, which converts data to the binary format.
func newIngestCmd(a *app) *cobra.Command {
	var o ingestOptions
	cmd := &cobra.Command{
		Use:     "ingest --data FILE --out DIR",
		GroupID: groupData,
		Short:   "turn instances or text into binary shards that train reads at once",
		Long: "Reads labelled instances (libsvm or XMC lines, tables; plain, gzip, bzip2, zstd or xz) or labelled " +
			"text as a stream and " +
			"writes them as a folder of checked, memory-mapped shards, which `train --data DIR` opens without parsing. " +
			"Memory stays within --memory however large the input is; a failed or interrupted run leaves nothing behind.",
		Example: "taxon ingest --data train.svm.xz --out train.taxon\n" +
			"zcat train.txt.gz | taxon ingest --data - --text --instance-weights weights.txt --out train.taxon",
		RunE: func(cmd *cobra.Command, _ []string) error { return runIngest(cmd, a, o) },
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.data, "data", nil, "instances: a `FILE`, or - for standard input; repeated: read "+
			"one after the other")
		textFlag(f, &o.text)
		f.BoolVar(&o.strings, "strings", false,
			"lines are LABEL[,LABEL...]<TAB>SEQUENCE: string-kernel features; ingest test data "+
				"with the same options")
		f.BoolVar(&o.zeroBased, "zero-based", false, "feature indices count from 0")
		instanceWeightsFlag(f, &o.weights)
	})
	optionGroup(cmd, "Input", func(f *pflag.FlagSet) {
		wordOptions(f, &o.words)
		labelTextOptions(f, &o.labelText)
		stringOptions(f, &o.kernel)
	})
	tableFlags(cmd, &o.table)
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVar(&o.out, "out", "", "the `DIR` to make")
		f.BoolVar(&o.force, "force", false, "replace an existing data set")
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		bytesFlag(f, &o.memory, "memory", dataset.DefaultMemoryBytes, "`SIZE` that buffers may take")
		intFlag(f, &o.threads, "threads", 0, 0, math.MaxInt, "threads of the second pass, 0 for all cores; "+
			"`N` changes no result")
		f.StringVar(&o.temp, "temp", "", "`DIR` for temporary files, 8 bytes a nonzero (default: next to --out)")
	})
	require(cmd, "data", "out")
	return cmd
}

// stringOptions are the options on string kernels.
func stringOptions(f *pflag.FlagSet, o *dataset.Strings) {
	choiceFlag(f, &o.Kernel, "kernel", dataset.Kernels[0], dataset.Kernels,
		"strings: spectrum (substrings of length symbols) or gappy (with up to gaps symbols "+
			"skipped)")
	intFlag(f, &o.Length, "length", 3, 1, 16, "strings: `N` symbols")
	intFlag(f, &o.Gaps, "gaps", 1, 0, 64, "gappy strings: at most `N` skipped symbols")
	floatFlag(f, &o.Decay, "decay", 0.5, "gappy strings: factor for each skipped symbol: a `NUMBER` up to 1", above0)
	choiceFlag(f, &o.Alphabet, "alphabet", dataset.Alphabets[1], dataset.Alphabets,
		"strings: letters (A to Z, length up to 6), printable (ASCII, up to 4) or bytes "+
			"(UTF-8, up to 3)")
}

// ingestReport is the JSON output of `taxon ingest`.
type ingestReport struct {
	Out       string `json:"out"`
	Instances int64  `json:"instances"`
	// Documents and Terms are the instances that are documents, and texts about labels.
	Documents int64 `json:"documents"`
	Terms     int64 `json:"terms"`
	// Features is the number of features that occur.
	Features int64 `json:"features"`
	Nonzeros int64 `json:"nonzeros"`
	Labels   int64 `json:"labels"`
	// LabelEntries is the number of (instance, label) pairs.
	LabelEntries int64 `json:"label_entries"`
	// MaxLabels is the largest number of labels of an instance.
	MaxLabels int64 `json:"max_labels"`
	// Unlabelled is the number of instances without a label.
	Unlabelled int64 `json:"unlabelled"`
	ZeroRows   int64 `json:"zero_rows"`
	// LeftOut is the number of instances of weight 0.
	LeftOut int64 `json:"left_out,omitempty"`
	// Weights is the sum of the instances' weights. It is 0 if all are 1.
	Weights    float64 `json:"instance_weights,omitempty"`
	EmptyLines int64   `json:"empty_lines"`
	Text       bool    `json:"text"`
	// Bytes is the size of the folder.
	Bytes       int64    `json:"bytes"`
	Fingerprint string   `json:"fingerprint"`
	Seconds     float64  `json:"seconds"`
	Warnings    []string `json:"warnings"`
}

func runIngest(cmd *cobra.Command, a *app, o ingestOptions) error {
	if err := oneStdin("ingest", "--data", o.data...); err != nil {
		return err
	}
	if !o.strings {
		for _, name := range []string{"kernel", "length", "gaps", "decay", "alphabet"} {
			if lookup(cmd, name).Changed {
				return option.Errorf("ingest: ‹%s› is for --strings: add that, or leave it out", name)
			}
		}
		o.kernel = dataset.Strings{}
	} else if o.text {
		return option.Errorf("ingest: --strings and --text exclude each other")
	} else if o.kernel.Kernel == dataset.Kernels[0] {
		for _, name := range []string{"gaps", "decay"} {
			if lookup(cmd, name).Changed {
				return option.Errorf("ingest: ‹%s› is for ‹kernel=gappy›: add that, or leave it out", name)
			}
		}
	}
	began := time.Now()
	progress, end := train.IngestLines(a.ui)
	defer end()
	rep, err := dataset.Ingest(cmd.Context(), dataset.Options{
		Paths: o.data, Out: o.out, Replace: o.force, Text: o.text, Words: o.words, Strings: o.kernel, ZeroBased: o.zeroBased,
		Weights: o.weights, LabelText: o.labelText, Table: o.table,
		FS: fs.Local{In: a.stdin}, MemoryBytes: o.memory, Threads: o.threads, TempDir: o.temp, Progress: progress,
	})
	end()
	if err != nil {
		return err
	}
	s := rep.Stats
	r := ingestReport{
		Out: o.out, Instances: s.Rows, Documents: s.Rows - s.Terms, Terms: s.Terms,
		Features: s.Columns, Nonzeros: s.Nonzeros, Labels: s.Labels,
		LabelEntries: s.LabelEntries, MaxLabels: s.MaxLabels, Unlabelled: s.Unlabelled, ZeroRows: s.ZeroRows,
		LeftOut: s.LeftOut, Weights: s.Weight, EmptyLines: s.EmptyLines, Text: s.Text, Bytes: rep.Bytes,
		Fingerprint: rep.Fingerprint,
		Seconds:     time.Since(began).Seconds(), Warnings: []string{},
	}
	for _, w := range rep.Warnings {
		r.Warnings = append(r.Warnings, option.Flags(w))
		a.ui.Warn("%s", w)
	}
	return a.print(r, func() { printIngest(a, r) })
}

// printIngest prints a report as text.
func printIngest(a *app, r ingestReport) {
	row := func(name, value string) { fmt.Fprintf(a.stdout, "  %-12s%s\n", name, value) }
	fmt.Fprintf(a.stdout, "%s\n", a.style.Bold(r.Out))
	row("instances", format.Count(r.Instances))
	if r.Terms > 0 {
		row("", format.Counted(r.Documents, "document", "documents")+", "+format.Counted(r.Terms, "term", "terms")+
			" of labels")
	}
	if r.LeftOut > 0 {
		row("left out", format.Count(r.LeftOut)+" of weight 0")
	}
	if r.Weights != 0 {
		row("weighing", fmt.Sprintf("%.6g in all", r.Weights))
	}
	row("features", format.Count(r.Features))
	row("nonzeros", format.Count(r.Nonzeros)+format.PerInstance(r.Nonzeros, r.Instances))
	row("labels", format.Count(r.Labels)+format.PerInstance(r.LabelEntries, r.Instances))
	row("size", format.Bytes(r.Bytes))
	row("time", format.Seconds(r.Seconds))
}
