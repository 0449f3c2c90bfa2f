package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/console"
	"taxon/internal/exit"
	"taxon/internal/fs"
	"taxon/internal/human"
	"taxon/internal/jobs"
	"taxon/internal/mapreduce/driver"
	"taxon/internal/model"
)

// engineCluster is submit's other engine: coordinator, stores and workers.
const engineCluster = "cluster"

// notForMapReduce are flags of submit that mean something on a cluster of taxon's alone.
var notForMapReduce = []string{"coordinator", "replicas", "in-place", "name"}

// submitMapReduce starts a driver that outlives this process, and tells where it answers;
// with --wait the driver is this process.
func submitMapReduce(cmd *cobra.Command, a *app, o *submitOptions) error {
	for _, name := range notForMapReduce {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			return exit.Usagef("submit: --%s: leave it out with --engine mapreduce, which needs no coordinator", name)
		}
	}
	t := &o.train
	if len(t.Data) == 0 || t.Out == "" {
		return exit.Usagef("submit: --engine mapreduce needs --data and --out: the model appears there when the job is done")
	}
	t.mr.engine, t.Stores, t.Cutoff = engineMapReduce, 1, "none"
	if o.wait {
		return runTrain(cmd.Context(), a, t)
	}
	if err := exit.Join(t.Validate("submit"), t.checkMapReduce("submit")); err != nil {
		return err
	}
	if err := model.Replaceable(t.Out); err != nil {
		return err
	}
	if oneStdin("submit", "--data", append([]string{fs.Stdin}, t.Data...)...) != nil {
		return exit.Usagef("submit: standard input ends with this command: give files, or add --wait")
	}
	return startDriver(cmd, a, o)
}

// startDriver starts the driver and waits until Hadoop has taken its first job.
func startDriver(cmd *cobra.Command, a *app, o *submitOptions) error {
	dir, err := driver.Dir(o.train.Out)
	if err != nil {
		return err
	}
	if o.id == "" {
		o.id = "job-" + strings.ToLower(rand.Text()[:8])
	}
	args := append([]string{"train", "--quiet", "--drive", dir, "--drive-id", o.id}, trainArguments(cmd)...)
	d, err := driver.Start(cmd.Context(), dir, args)
	var early *driver.EarlyEnd
	switch {
	case errors.As(err, &early) && early.Status == exit.Usage:
		_ = fs.RemoveOwn(dir)
		return exit.Usagef("%s", early.Line)
	case early != nil:
		return exit.Errorf(exit.Failed, "submit: %w", err)
	case err != nil:
		return err
	}
	log, _ := os.ReadFile(d.Log) // the driver has read the data by now
	for line := range strings.Lines(string(log)) {
		if w, ok := strings.CutPrefix(line, console.WarningLead); ok {
			a.ui.Warn("%s", w)
		}
	}
	if a.json {
		return a.printJSON(d)
	}
	_, err = fmt.Fprintln(a.stdout, d.Job)
	a.ui.Note("its driver is process %d, its log %s; `taxon status %s --coordinator %s` asks it", d.PID, d.Log, d.Job, d.Coordinator)
	return err
}

// trainArguments are the flags given that train has as well, and those that are only submit's
// by their other meaning there.
func trainArguments(cmd *cobra.Command) (out []string) {
	train := newTrainCmd(&app{})
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if train.Flags().Lookup(f.Name) == nil || f.Name == "engine" {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			out = append(out, "--"+f.Name+"="+v)
		}
	})
	return append(out, "--engine="+engineMapReduce, "--cutoff=none")
}

// driverGone is the error of asking the driver at an address when it has ended; nil: there
// was none, or it lives.
func driverGone(ctx context.Context, verb, addr string) error {
	e, err := driver.Gone(ctx, addr)
	switch {
	case e == nil:
		return err
	case e.Document == nil:
		return exit.Errorf(exit.Failed, "%s: %w", verb, e)
	}
	return exit.Usagef("%s: %w", verb, e)
}

// showEnded shows how a job has ended whose driver is asked for it and has ended in order;
// any other error stays.
func showEnded(a *app, job string, err error) error {
	var e *driver.Ended
	var doc jobs.Status
	if !errors.As(err, &e) || e.Job != job || json.Unmarshal(e.Document, &doc) != nil {
		return err
	}
	if a.json {
		return a.printJSON(doc)
	}
	row := func(name, format string, args ...any) {
		fmt.Fprintf(a.stdout, "  %-12s%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(a.stdout, a.style.Bold(job))
	row("state", "%s; its driver has ended", doc.State)
	row("sweep", "%d", doc.Sweep)
	if r := doc.Report; r != nil {
		row("stopped by", "%s", r.StoppedBy)
		row("weights", "sha256 %s", r.WeightsSHA256)
	}
	if doc.State == "done" {
		row("model", "%s", e.Out)
	} else {
		row("go on", "the same `taxon submit` goes on from the last whole sweep")
	}
	row("log", "%s", e.Log)
	if doc.Error != "" {
		row("error", "%s", human.OneLine(doc.Error))
	}
	return nil
}
