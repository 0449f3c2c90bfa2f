package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster/supervise"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/pause"
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
			return usagef("submit: --%s: leave it out with --engine mapreduce, which needs no coordinator", name)
		}
	}
	t := &o.train
	if len(t.data) == 0 || t.out == "" {
		return usagef("submit: --engine mapreduce needs --data and --out: the model appears there when the job is done")
	}
	t.mr.engine, t.stores, t.cutoff = engineMapReduce, 1, "none"
	if o.wait {
		return runTrain(cmd.Context(), a, t)
	}
	if err := errors.Join(t.check(), t.checkMapReduce("submit")); err != nil {
		return err
	}
	if err := model.Replaceable(t.out); err != nil {
		return err
	}
	if oneStdin("submit", "--data", append([]string{fs.Stdin}, t.data...)...) != nil {
		return usagef("submit: standard input ends with this command: give files, or add --wait")
	}
	return startDriver(cmd, a, o)
}

// driverDocument is `taxon submit --engine mapreduce --json`, and what a driver says of itself.
type driverDocument struct {
	Job         string `json:"job"`
	Coordinator string `json:"coordinator"` // answers status, jobs and cancel, on this machine
	PID         int    `json:"pid"`
	Log         string `json:"log"`
	Out         string `json:"out"`
}

// driverDir is the folder of a driver's log and address.
func driverDir(out string) (string, error) {
	if !fs.IsRemote(out) {
		return filepath.Abs(fs.Clean(out) + ".driver")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(fs.Clean(out)))
	return filepath.Join(cache, "taxon", hex.EncodeToString(sum[:8])+".driver"), nil
}

// startDriver starts the driver and waits until Hadoop has taken its first job.
func startDriver(cmd *cobra.Command, a *app, o *submitOptions) error {
	dir, err := driverDir(o.train.out)
	if err != nil {
		return err
	}
	if o.id == "" {
		o.id = "job-" + strings.ToLower(rand.Text()[:8])
	}
	if err := renewDriverDir(dir); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := append([]string{"train", "--quiet", "--drive", dir, "--drive-id", o.id}, trainArguments(cmd)...)
	driver, err := supervise.Detach(self, dir, args...)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- driver.Wait() }()
	d, err := awaitDriver(cmd.Context(), dir, ended)
	if err != nil {
		return err
	}
	log, _ := os.ReadFile(d.Log) // the driver has read the data by now
	for line := range strings.Lines(string(log)) {
		if w, ok := strings.CutPrefix(line, warningLead); ok {
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

// renewDriverDir makes the folder of a driver empty, with the mark that says whose it is.
func renewDriverDir(dir string) error {
	if err := fs.RemoveOwn(dir); err != nil {
		return fs.Explain(dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fs.Explain(dir, err)
	}
	return fs.Explain(dir, fs.Mark(dir))
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

// driverFile is where a driver says where it answers.
func driverFile(dir string) string { return filepath.Join(dir, "driver.json") }

// awaitDriver waits for the driver's word, or for its end.
func awaitDriver(ctx context.Context, dir string, ended <-chan error) (*driverDocument, error) {
	for {
		var d driverDocument
		if b, err := os.ReadFile(driverFile(dir)); err == nil && json.Unmarshal(b, &d) == nil {
			return &d, nil
		}
		select {
		case err := <-ended:
			line := strings.TrimPrefix(lastLine(driverLog(dir)), "taxon: ")
			var exit *exec.ExitError
			if err == nil { // the model was there already, or was made at once
				return nil, withStatus(exitFailed, "submit: the driver ended: %s", line)
			}
			if errors.As(err, &exit) && exit.ExitCode() == exitUsage {
				_ = fs.RemoveOwn(dir)
				return nil, usagef("%s", line)
			}
			return nil, withStatus(exitFailed, "submit: the driver ended (%w): %s", err, line)
		default:
		}
		if err := pause.For(ctx, 50*time.Millisecond); err != nil {
			return nil, err // the driver goes on
		}
	}
}

func driverLog(dir string) string { return filepath.Join(supervise.LogDir(dir), "supervisor.log") }
