package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/train"
	"taxon/internal/cluster/client"
	"taxon/internal/cluster/jobs"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/evaluate"
	"taxon/internal/model/measure"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

// submitOptions holds the flags of submit.
type submitOptions struct {
	clientOptions
	train    trainOptions
	file     string
	id       string
	name     string
	replicas int
	inPlace  bool
	wait     bool
}

// tuneFlag is the flag of submit that makes it a search.
const tuneFlag = "tune"

func newSubmitCmd(a *app) *cobra.Command {
	var o submitOptions
	validate := func() error { return o.train.Validate("submit") }
	cmd := &cobra.Command{
		Use:     "submit --data FILE",
		GroupID: groupCluster,
		Short:   "give a training to a cluster",
		Long: "Gives a training to a cluster and prints the job's id. The flags are those of train, or lines `flag: value` " +
			"of a --job file. Local data is read here, " +
			"uploaded through the store, once for each data set, and kept by the workers; with --in-place it is an ingested " +
			"folder that the workers see themselves, in HDFS or on their disks, below one of their data roots. " +
			"--wait follows the job to its end and exits as train does; with --out it fetches the model as well. Ctrl-C " +
			"leaves the job running. " +
			"The same data, options and seed give the same bytes as train.",
		Example: "taxon submit --data train.svm --hierarchy tree.txt --coordinator 127.0.0.1:7070 --wait --out model\n" +
			"taxon submit --job training.yaml --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readJobFile(cmd, o.file, validate); err != nil {
				return err
			}
			return runSubmit(cmd.Context(), a, &o)
		},
	}
	o.train.inputFlags(cmd)
	flagGroup(cmd, "Job", func(f *pflag.FlagSet) {
		f.StringVar(&o.file, "job", "", "read options from a `FILE` of lines `option: value` (YAML); flags override them")
		f.StringVar(&o.id, "id", "", "`ID` of the job (default: chosen); submitting it again finds the existing job")
		f.StringVar(&o.name, "name", "", "`NAME` shown in lists")
		intFlag(f, &o.replicas, "replicas", 1, 1, 8, "`N` copies of each value, on different shards")
		f.BoolVar(&o.inPlace, "in-place", false, "--data is an ingested folder that all workers see under the same path: "+
			"upload nothing but names")
		f.BoolVar(&o.wait, "wait", false, "follow the job to its end")
		// runRoot takes it out
		f.Bool(tuneFlag, false, "search for the options first, as `taxon tune --submit` does: with the flags of tune")
		f.StringVar(&o.train.Out, "out", "", "the `DIR` of the model, with --wait")
	})
	o.train.jobFlags(cmd)
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		threadsFlag(f, &o.train.Threads)
		bytesFlag(f, &o.train.Memory, "memory", 0, "`SIZE` that reading the data may take here")
	})
	optionGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		methodOptions(f, &o.train.Said, method.GroupResources, false)
	})
	o.flags(cmd)
	cmd.SetFlagErrorFunc(a.flagErrors(validate))
	return cmd
}

// check returns an error for invalid combinations of flags.
func (o *submitOptions) check() error {
	t := &o.train
	if err := t.Validate("submit"); err != nil {
		return err
	}
	switch {
	case len(t.Data) == 0:
		return option.Errorf("submit: flag --data is required: see `taxon help submit`")
	case o.id != "" && client.CheckID(o.id) != nil:
		return option.Errorf("submit: --id %s: %w", format.QuoteIfNeeded(o.id), client.CheckID(o.id))
	case t.Out != "" && !o.wait:
		return option.Errorf("submit: --out needs --wait; later, `taxon export --job ID --format model --out "+
			"%s` fetches the model", t.Out)
	case t.Test != "" && t.Out == "":
		return option.Errorf("submit: --test needs --wait and --out")
	case registry.Number(t.Job, "eval-every") > 0:
		return option.Errorf("submit: --eval-every: a cluster never sees the test data: leave it out and evaluate at the " +
			"end, with --wait, --out and --test, or use `taxon train --eval-every`")
	case o.inPlace && (len(t.Data) != 1 || !train.Ingested(t.Data)):
		return option.Errorf("submit: --in-place needs one ingested folder as --data: make it with `taxon ingest`")
	}
	if t.Out != "" {
		return model.Replaceable(t.Out)
	}
	return nil
}

// submitDocument is the JSON output of `taxon submit`. Without --wait, only the job is set.
type submitDocument struct {
	Job    string          `json:"job"`
	State  string          `json:"state,omitempty"`
	Report *model.Report   `json:"report,omitempty"`
	Test   *measure.Result `json:"test,omitempty"`
}

func runSubmit(ctx context.Context, a *app, o *submitOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.wait && o.train.Out != "" {
		if err := fs.CheckWritable(o.train.Out); err != nil {
			return err
		}
	}
	c, err := o.dial(ctx, a)
	if err != nil {
		return err
	}
	defer c.Close()
	job, err := o.submit(ctx, a, c)
	if err != nil {
		return err
	}
	if !o.wait {
		if a.json {
			return a.printJSON(submitDocument{Job: job})
		}
		_, err := fmt.Fprintln(a.stdout, job)
		return err
	}
	if !a.json {
		fmt.Fprintln(a.stdout, job)
	}
	return o.await(ctx, a, c, job)
}

// submit prepares the data and submits the job.
func (o *submitOptions) submit(ctx context.Context, a *app, c *client.Client) (string, error) {
	temp, err := os.MkdirTemp("", "taxon-submit-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	t, err := train.Open(ctx, o.train.options(a), a.ui, temp)
	if err != nil {
		return "", err
	}
	defer t.Close()
	if err := t.CheckLengths(); err != nil {
		return "", err
	}
	t.GiveStructure()
	return c.Submit(ctx, &client.Submission{Spec: t.Spec, Data: t.Dir, InPlace: o.inPlace, ID: o.id, Name: o.name,
		Replicas: o.replicas})
}

// await follows a job to its end and prints the report.
func (o *submitOptions) await(ctx context.Context, a *app, c *client.Client, job string) error {
	report, err := c.Await(ctx, job, o.train.Out)
	if err != nil {
		return err
	}
	d := submitDocument{Job: job, State: jobs.StateName(taxonv1.JobState_JOB_STATE_DONE), Report: report}
	why := aboveGap(d.Report, registry.Number(o.train.Job, "gap"), func(flag string) string {
		return fmt.Sprintf("`taxon resume %s %s N` continues it", job, flag)
	})
	if why != "" {
		a.ui.Warn("%s", why)
	}
	if o.train.Test != "" {
		if d.Test, err = evaluate.Run(ctx, testOptions(a, &o.train), a.ui); err != nil {
			return err
		}
	}
	if a.json {
		err = a.printJSON(d)
	} else {
		title := cmp.Or(o.train.Out, job)
		printReport(a, title, d.Report)
		if d.Test != nil {
			printEval(a, testOptions(a, &o.train), o.train.Out, d.Test)
		}
	}
	if err == nil && o.train.requireGap && d.Report.StoppedBy != "gap" && d.Report.Gap != nil {
		return exitf(exitGap, "job %s: stopped by %s at gap %.3g, above the %.3g asked for", job, d.Report.StoppedBy,
			*d.Report.Gap, registry.Number(o.train.Job, "gap"))
	}
	return err
}

// maxJobFile bounds the size of a job file and of a profile, in bytes.
const maxJobFile = 1 << 20

// readJobFile sets the flags that a job file contains and the command line does not.
func readJobFile(cmd *cobra.Command, path string, validate func() error) error {
	if path == "" {
		return nil
	}
	data, err := fs.ReadBounded(cmd.Context(), path, maxJobFile)
	if err != nil {
		return err
	}
	return parseJobFile(cmd, path, data, validate)
}
