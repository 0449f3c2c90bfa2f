package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"taxon/test/bench/drive"
)

// A network has four hosts on one machine: network namespaces on a bridge, each behind a link of
// its own speed. The first host runs the coordinator, the second a store, and each of the others a
// worker of one slot. There are as many workers as cores, so that no host waits for another one's
// core.
const (
	hosts   = 4
	workers = hosts - 2
	prefix  = "taxon-replay"
)

// network is the set of namespaces and their bridge.
type network struct{}

func host(i int) string    { return fmt.Sprintf("%s%d", prefix, i) }
func address(i int) string { return fmt.Sprintf("10.213.0.%d", i+1) }

// lay creates the namespaces. rate is in the form of tc, as in 100mbit.
func lay(ctx context.Context, rate string) (network, error) {
	n := network{}
	n.remove() // remains of an earlier run
	commands := []string{
		"ip link add " + prefix + " type bridge",
		"ip link set " + prefix + " up",
	}
	for i := range hosts {
		outer, inner := fmt.Sprintf("txr%da", i), fmt.Sprintf("txr%db", i)
		in := "ip netns exec " + host(i) + " "
		shape := " root tbf rate " + rate + " burst 256kb latency 50ms"
		commands = append(commands,
			"ip netns add "+host(i),
			"ip link add "+outer+" type veth peer name "+inner,
			"ip link set "+inner+" netns "+host(i),
			"ip link set "+outer+" master "+prefix,
			"ip link set "+outer+" up",
			in+"ip addr add "+address(i)+"/24 dev "+inner,
			in+"ip link set "+inner+" up",
			in+"ip link set lo up",
			"tc qdisc add dev "+outer+shape,
			in+"tc qdisc add dev "+inner+shape,
		)
	}
	for _, c := range commands {
		words := strings.Fields(c)
		if out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput(); err != nil {
			n.remove()
			return n, fmt.Errorf("%s: %w: %s (namespaces need root and iproute2)", c, err, bytes.TrimSpace(out))
		}
	}
	return n, nil
}

// remove removes the namespaces together with their links.
func (network) remove() {
	for i := range hosts {
		_ = exec.Command("ip", "netns", "del", host(i)).Run()
	}
	_ = exec.Command("ip", "link", "del", prefix).Run()
}

// process is a process that runs on a host.
type process struct{ cmd *exec.Cmd }

// start runs a verb on a host and waits for the line that says that it is ready.
func (network) start(ctx context.Context, binary string, i int, args ...string) (*process, error) {
	args = append([]string{"netns", "exec", host(i), binary}, append(args, "--insecure", "--log-level", "error")...)
	p := &process{exec.CommandContext(ctx, "ip", args...)}
	p.cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		return nil, fmt.Errorf("taxon %s: it never got ready: %w", args[4], errors.Join(lines.Err(), p.cmd.Wait()))
	}
	go func() {
		for lines.Scan() {
		}
	}()
	return p, nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(os.Interrupt)
	done := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
	_ = p.cmd.Wait()
	done.Stop()
}

// measure trains on the four hosts and returns the wall time of the training.
func measure(ctx context.Context, d *drive.Driver, data, tree, rate string, gap float64) (seconds float64, err error) {
	n, err := lay(ctx, rate)
	if err != nil {
		return 0, err
	}
	defer n.remove()
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	root, port := filepath.Dir(data), ":7070"
	at := address(0) + port
	for i := range hosts {
		args := []string{"worker", "--coordinator", at, "--slots", "1", "--data-root", root}
		switch i {
		case 0:
			args = []string{"coordinator", "--listen", at, "--data-root", root}
		case 1:
			args = []string{"store", "--coordinator", at, "--listen", address(1) + ":7071"}
		}
		p, err := n.start(ctx, d.Binary(), i, append(args, "--dir", filepath.Join(dir, strconv.Itoa(i)))...)
		if err != nil {
			return 0, err
		}
		defer p.stop()
	}
	profile := filepath.Join(dir, "profile")
	if err := os.WriteFile(profile, []byte("insecure: true\n"), 0o600); err != nil {
		return 0, err
	}
	submit := []string{"netns", "exec", host(0), d.Binary(), "submit", "--coordinator", at, "--in-place", "--wait",
		"--data", data, "--hierarchy", tree,
		"--gap", fmt.Sprint(gap), "--json", "--quiet", "--profile", profile}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "ip", submit...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("taxon submit: %w: %s", err, bytes.TrimSpace(errs.Bytes()))
	}
	var r struct {
		Seconds float64
		Report  struct{ Seconds float64 }
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return 0, fmt.Errorf("taxon submit --json: %w", err)
	}
	return max(r.Seconds, r.Report.Seconds), nil
}

// bitsASecond parses a rate of tc.
func bitsASecond(rate string) (float64, error) {
	for _, unit := range []struct {
		name string
		of   float64
	}{{"gbit", 1e9}, {"mbit", 1e6}} {
		if text, ok := strings.CutSuffix(rate, unit.name); ok {
			v, err := strconv.ParseFloat(text, 64)
			return v * unit.of, err
		}
	}
	return 0, fmt.Errorf("-links %s: a number of gbit or mbit", rate)
}

// compare measures each rate `runs` times, in turns, and prints the results beside the predictions.
func compare(ctx context.Context, steps []step, dir string, rates []string, task, between, gap float64,
	runs int) error {
	d, err := drive.New(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	work, err := os.MkdirTemp("", prefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	data := filepath.Join(work, "data")
	if _, err := d.Output(ctx, "ingest", "--data", filepath.Join(dir, "train.svm.xz"), "--out", data,
		"--quiet"); err != nil {
		return err
	}
	measured := make([][]float64, len(rates))
	for range runs {
		for k, rate := range rates {
			s, err := measure(ctx, d, data, filepath.Join(dir, "tree.txt"), rate, gap)
			if err != nil {
				return err
			}
			measured[k] = append(measured[k], s)
		}
	}
	fmt.Printf("\n%d hosts, %d workers of one slot:\n\n| links | predicted s | measured s | predicted / measured |\n| "+
		"--- | --- | --- | --- |\n", hosts, workers)
	for k, rate := range rates {
		bits, err := bitsASecond(rate)
		if err != nil {
			return err
		}
		p := play(steps, workers, costs{task: task, between: between, link: bits / 8}).total
		slices.Sort(measured[k])
		m := measured[k][len(measured[k])/2]
		fmt.Printf("| %s | %.1f | %.1f (%.1f to %.1f) | %.2f |\n", rate, p, m, measured[k][0],
			measured[k][len(measured[k])-1], p/m)
	}
	return nil
}
