package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method/registry"
	"taxon/internal/fs"
	"taxon/internal/model/export"
	"taxon/internal/model/shard"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// exportOptions holds the flags of export.
type exportOptions struct {
	export.Options
	threshold thresholdValue
	// job is a job of a cluster.
	job    string
	client clientOptions
}

func newExportCmd(a *app) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:     "export --model DIR (or --job ID) --format NAME --out PATH",
		GroupID: groupModel,
		Short:   "write a model's weights for other programs, or a small one for prediction",
		Long: "Writes the weights of a model. Format text has a line for each node, internal ones too, in node order: KIND " +
			"NAME idx:val ... [bias:val]. " +
			"KIND is node, spawned (the leaf spawned under the internal label NAME), virtual (NAME is -) or dummy, indices " +
			"are those of the input, " +
			"counted from 1. Only nonzero weights are written, as the shortest decimals that read back to the same float32. " +
			"Parquet has the same in long form. " +
			"npz (SciPy), safetensors and liblinear hold classes x features, the bias last, with a labels.txt that has a line " +
			"for each class (with a hierarchy also an edges.txt; for text a features.txt with the words and an idf.txt). " +
			"A liblinear file is dense. One of more than 1 GiB is refused without --force-size. " +
			"Format model is a smaller model for predict, eval, explain, info and export. A weight that differs from the " +
			"parent's by less than --threshold becomes the parent's, so it " +
			"stays within --threshold of the trained one, and scores change a little. --threshold auto takes the largest " +
			"threshold that lowers micro F1 on --data by at most --prune-loss points. " +
			"--out FILE gets one file. --out DIR/ gets a part for each weight shard, and _SUCCESS. " +
			"With --job the weights of a cluster's finished job are read directly from its shards. Format model without a " +
			"threshold is then the model that train would have made.",
		Example: "taxon export --model model --format npz --out weights.npz\n" +
			"taxon export --job job-1 --coordinator 127.0.0.1:7070 --format model --out model",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Alias()
			o.Threshold, o.Auto = o.threshold.at, o.threshold.auto
			o.Data.Threads, o.Data.AsTrained, o.Stdout = o.Threads, true, a.stdout
			return o.run(cmd.Context(), a)
		},
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringVar(&o.Model, "model", "", "the `DIR` of a model")
		f.StringVar(&o.job, "job", "", "a cluster's finished job: its `ID`")
		f.StringVar(&o.Data.Path, "data", "",
			"labelled instances for --threshold auto, best held-out ones: a `FILE` or a folder "+
				"made by ingest")
	})
	optionGroup(cmd, "Input", func(f *pflag.FlagSet) { formatOption(f, &o.Data.Table) })
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		choiceFlag(f, &o.Format, "format", "text", append(export.Names(), "taxon"),
			"format of the weights: `NAME` is "+strings.Join(export.Names(), ", ")+"; taxon is another name for model")
		choiceFlag(f, &o.What, "what", export.Mean, []string{export.Mean, export.Variance, export.Precision},
			"format text: means, posterior variances or learned precisions (models of "+strings.Join(registry.Precise(false),
				", ")+")")
		f.StringVar(&o.Out, "out", "", "write to `PATH`: a file, - for standard output, or a new folder if it ends in / ")
		f.BoolVar(&o.Force, "force", false, "format model: replace an existing model")
		f.Var(&o.threshold, "threshold", "drop weights below `T`; format model: replace weights within T of the parent's; "+
			"auto: see --prune-loss")
		choiceFlag(f, &o.Values, "values", "float32", shard.Values,
			"format model with --threshold: storage of weights; float16 halves, int8 quarters "+
				"the size")
		f.BoolVar(&o.ForceSize, "force-size", false, "format liblinear: write a file of more than 1 GiB")
		floatFlag(f, &o.Loss, "prune-loss", 0.1, "with --threshold auto: how much micro F1 on --data may fall, "+
			"in percentage points", atLeast0)
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) { threadsFlag(f, &o.Threads) })
	o.client.flags(cmd)
	require(cmd, "out")
	return cmd
}

// thresholdValue is the value of the flag threshold, which is a number >= 0 or auto.
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

func (o *exportOptions) run(ctx context.Context, a *app) error {
	switch {
	case o.Model == "" && o.job == "":
		return option.Errorf("export: flag --model is required, or --job: see `taxon help export`")
	case o.Model != "" && o.job != "":
		return option.Errorf("export: --model and --job exclude each other")
	case o.Out == fs.Stdin && a.json:
		return option.Errorf("export: --json prints to standard output: name a file for the weights with --out")
	}
	if o.job != "" {
		done, err := o.fetch(ctx, a)
		if err != nil || o.Model == "" {
			return err
		}
		defer done()
	}
	r, err := export.Run(ctx, o.Options, a.ui)
	if err != nil {
		return err
	}
	switch p := r.PruneReport; {
	case a.json:
		return a.printJSON(r)
	case p != nil:
		a.ui.Note("%s of %s weights kept at threshold %g, %s on disk, in %s", format.Count(p.Entries), format.Count(p.Whole),
			p.Threshold, format.Bytes(r.Bytes), format.Seconds(r.Seconds))
	default:
		a.ui.Note("%s nodes written in %s", format.Count(int64(r.Nodes)), format.Seconds(r.Seconds))
	}
	return nil
}

// fetch converts the result of a cluster's job to a model, and checks it against the job's digest.
// The model is temporary, and done removes it. If the user asked for the model itself, fetch prints
// it and leaves Model empty.
func (o *exportOptions) fetch(ctx context.Context, a *app) (done func(), err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Format == "model" {
		if o.Out, err = o.ModelDir(); err != nil {
			return nil, err
		}
	}
	c, err := o.client.dial(ctx, a)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	began := time.Now()
	if o.WholeModel() {
		r, err := c.FetchModel(ctx, o.job, o.Out)
		if err != nil {
			return nil, err
		}
		if a.json {
			return nil, a.printJSON(export.Report{Out: o.Out, Format: o.Format, Nodes: r.Nodes,
				Seconds: time.Since(began).Seconds()})
		}
		a.ui.Note("%s nodes fetched in %s, sha256 %s", format.Count(int64(r.Nodes)),
			format.Seconds(time.Since(began).Seconds()), r.WeightsSHA256)
		return nil, nil
	}
	temp, done, err := fs.TempDir("export")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(temp, "model")
	if _, err = c.FetchModel(ctx, o.job, path); err == nil {
		shards, e := c.Shards.Known(ctx)
		o.Model, o.MinParts, err = path, len(shards), e
	}
	if err != nil {
		done()
	}
	return done, err
}
