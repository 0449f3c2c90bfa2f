package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// bench measures one binary in its own folder.
type bench struct {
	settings
	binary, dir string
}

// prepare builds the binary, unless one is given, and ingests the data.
func (b *bench) prepare(ctx context.Context) error {
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		return err
	}
	if b.binary == "" {
		b.binary = filepath.Join(b.dir, "taxon")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.binary,
			"taxon/cmd/taxon").CombinedOutput(); err != nil {
			return fmt.Errorf("go build (run this inside the repository): %w: %s", err, bytes.TrimSpace(out))
		}
	}
	_, _, err := b.exec(ctx, "ingest", "--data", b.data, "--out", b.path("data"), "--quiet")
	return err
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// exec runs a verb to its end. It returns its output and its CPU seconds.
func (b *bench) exec(ctx context.Context, args ...string) ([]byte, float64, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, b.binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, 0, fmt.Errorf("taxon %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.Bytes(), cpuOf(cmd.ProcessState), nil
}

func cpuOf(s *os.ProcessState) float64 { return (s.UserTime() + s.SystemTime()).Seconds() }

// job returns the flags of the training.
func (b *bench) job() []string {
	return append([]string{"--data", b.path("data"), "--hierarchy", b.tree, "--gap", b.gap, "--max-sweeps",
		fmt.Sprint(b.sweeps),
		"--out", b.path("model"), "--json", "--quiet"}, b.flags...)
}

// train measures training in one process.
func (b *bench) train(ctx context.Context) (cost, error) {
	defer os.RemoveAll(b.path("model"))
	w := watch()
	out, cpu, err := b.exec(ctx, append([]string{"train", "--threads", fmt.Sprint(b.workers)}, b.job()...)...)
	if err != nil {
		return cost{}, err
	}
	return read(out, w.cost(cpu))
}

// cluster measures training by several processes, as `taxon cluster up` starts them.
func (b *bench) cluster(ctx context.Context) (c cost, err error) {
	dir := b.path("cluster")
	defer os.RemoveAll(dir)
	defer os.RemoveAll(b.path("model"))
	text, _, err := b.exec(ctx, "cluster", "up", "--dir", dir, "--workers", fmt.Sprint(b.workers), "--stores",
		fmt.Sprint(b.stores),
		"--data-root", b.dir, "--json", "--quiet")
	if err != nil {
		return cost{}, err
	}
	defer func() {
		_, _, down := b.exec(context.WithoutCancel(ctx), "cluster", "down", "--dir", dir)
		err = errors.Join(err, down)
	}()
	var up struct {
		Coordinator string
		Processes   []struct {
			Role string
			PID  int
		}
	}
	if err := json.Unmarshal(text, &up); err != nil {
		return cost{}, err
	}
	w := watch()
	out, cpu, err := b.exec(ctx, append([]string{"submit", "--coordinator", up.Coordinator, "--in-place", "--wait"},
		b.job()...)...)
	if err != nil {
		return cost{}, err
	}
	c = w.cost(cpu)
	for _, p := range up.Processes {
		seconds, err := cpuOfPID(p.PID)
		if err != nil {
			return cost{}, fmt.Errorf("%s: %w", p.Role, err)
		}
		c.byRole[p.Role] += seconds
	}
	return read(out, c)
}

// ticksPerSecond is the unit of times in Linux's /proc, on all of its platforms.
const ticksPerSecond = 100

// cpuOfPID returns the CPU time of a running process, in seconds.
func cpuOfPID(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the name may contain blanks
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var sum float64
	for _, field := range fields[11:13] { // user and system time
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += float64(n) / ticksPerSecond
	}
	return sum, nil
}

// read extracts the result from the command's output.
func read(out []byte, c cost) (cost, error) {
	type report struct {
		SHA    string `json:"weights_sha256"`
		Sweeps int    `json:"sweeps"`
	}
	var d struct {
		report
		Report *report `json:"report"` // report in the output of submit
	}
	if err := json.Unmarshal(out, &d); err != nil {
		return c, fmt.Errorf("read the report: %w", err)
	}
	if d.Report != nil {
		d.report = *d.Report
	}
	if c.sha, c.sweeps = d.SHA, d.Sweeps; len(c.sha) != 64 {
		return c, fmt.Errorf("the report has no digest: %s", out)
	}
	return c, nil
}
