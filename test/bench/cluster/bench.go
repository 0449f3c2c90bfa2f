package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// bench measures one binary in a folder of its own.
type bench struct {
	settings
	binary, dir string
}

// prepare builds the binary, if none is given, and ingests the data.
func (b *bench) prepare(ctx context.Context) error {
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		return err
	}
	if b.binary == "" {
		b.binary = filepath.Join(b.dir, "taxon")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.binary, "taxon/cmd/taxon").CombinedOutput(); err != nil {
			return fmt.Errorf("go build (run this inside the repository): %w: %s", err, bytes.TrimSpace(out))
		}
	}
	_, _, err := b.exec(ctx, "ingest", "--data", b.data, "--out", b.path("data"), "--quiet")
	return err
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// exec runs a verb to its end and gives what it printed and its CPU seconds.
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

// job are the flags of the training.
func (b *bench) job() []string {
	return append([]string{"--data", b.path("data"), "--hierarchy", b.tree, "--gap", b.gap, "--max-sweeps", fmt.Sprint(b.sweeps),
		"--out", b.path("model"), "--json", "--quiet"}, b.flags...)
}

// train is the side in one process.
func (b *bench) train(ctx context.Context) (cost, error) {
	defer os.RemoveAll(b.path("model"))
	began := time.Now()
	out, cpu, err := b.exec(ctx, append([]string{"train", "--threads", fmt.Sprint(b.workers)}, b.job()...)...)
	if err != nil {
		return cost{}, err
	}
	return read(out, cost{wall: time.Since(began).Seconds(), byRole: map[string]float64{"command": cpu}})
}

// cluster is the side of several processes.
func (b *bench) cluster(ctx context.Context) (c cost, err error) {
	dir := b.path("cluster")
	defer os.RemoveAll(dir)
	defer os.RemoveAll(b.path("model"))
	var up []*process
	defer func() {
		for _, p := range up {
			_ = p.cmd.Process.Kill() // those that have not ended
			_ = p.cmd.Wait()
		}
	}()
	start := func(args ...string) (string, error) {
		p, addr, err := b.start(args...)
		if p != nil {
			up = append(up, p)
		}
		return addr, err
	}
	addr, err := start("coordinator", "--dir", filepath.Join(dir, "coordinator"), "--listen", "127.0.0.1:0", "--data-root", b.dir)
	for i := 0; i < b.stores && err == nil; i++ {
		_, err = start("store", "--dir", filepath.Join(dir, fmt.Sprint("store", i)), "--coordinator", addr, "--name", fmt.Sprint("s", i))
	}
	for i := 0; i < b.workers && err == nil; i++ {
		_, err = start("worker", "--dir", filepath.Join(dir, fmt.Sprint("worker", i)), "--coordinator", addr, "--slots", "1", "--data-root", b.dir)
	}
	if err != nil {
		return cost{}, err
	}
	began := time.Now()
	out, cpu, err := b.exec(ctx, append([]string{"submit", "--coordinator", addr, "--in-place", "--wait"}, b.job()...)...)
	if err != nil {
		return cost{}, err
	}
	c = cost{wall: time.Since(began).Seconds(), byRole: map[string]float64{"command": cpu}}
	for i := len(up) - 1; i >= 0; i-- { // workers first: they leave
		seconds, err := up[i].end()
		if err != nil {
			return cost{}, err
		}
		c.byRole[up[i].role] += seconds
	}
	up = nil
	return read(out, c)
}

// process is one that runs until it is ended.
type process struct {
	role string
	cmd  *exec.Cmd
}

// start begins a process and gives the address that it says it is ready on.
func (b *bench) start(args ...string) (*process, string, error) {
	cmd := exec.Command(b.binary, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, "", err
	}
	p := &process{role: args[0], cmd: cmd}
	line, err := bufio.NewReader(out).ReadString('\n')
	_, rest, found := strings.Cut(line, "ready on ")
	if err != nil || !found {
		return p, "", fmt.Errorf("taxon %s: %w: %s", args[0], errNotReady, bytes.TrimSpace(errs.Bytes()))
	}
	addr, _, _ := strings.Cut(strings.TrimSpace(rest), ",")
	return p, addr, nil
}

// end lets the process end in good order and gives its CPU seconds.
func (p *process) end() (float64, error) {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	if err := p.cmd.Wait(); err != nil {
		return 0, fmt.Errorf("taxon %s: %w", p.role, err)
	}
	return cpuOf(p.cmd.ProcessState), nil
}

// read takes the result out of what the command printed.
func read(out []byte, c cost) (cost, error) {
	type report struct {
		SHA    string `json:"weights_sha256"`
		Sweeps int    `json:"sweeps"`
	}
	var d struct {
		report
		Report *report `json:"report"` // of submit
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
