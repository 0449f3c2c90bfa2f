// Command serve measures `taxon serve`: the time of one row, and rows per second on one core by the
// number of rows in a request, over HTTP and gRPC, beside `taxon predict` on the same rows and the
// same weights in a scikit-learn model behind FastAPI.
//
//	go run ./test/bench/serve -model DIR -data FILE.svm.xz [-python python3]
//
// The time of a row is measured by a caller, over one connection, one call after the other. Rows
// per second refer to the CPU time of the server's process, user and system, which has one thread
// to run Go code (GOMAXPROCS=1); for `predict`, to the CPU time of the whole command on twenty
// copies of the file minus that on one. -python names an interpreter with scikit-learn, fastapi and
// uvicorn; without it they are left out. The command needs Linux.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	"taxon/test/command"
)

// settings holds the parameters of the measurement.
type settings struct {
	model, data, taxon, python string
	calls                      int           // number of calls with one row
	seconds                    time.Duration // duration of each throughput measurement
	top                        int
}

// batches lists the numbers of rows in a request.
var batches = []int{1, 64, 1024}

func main() {
	s := settings{}
	flag.StringVar(&s.model, "model", "", "`folder` of a model of vectors")
	flag.StringVar(&s.data, "data", "", "instances to ask for, libsvm `file`")
	flag.StringVar(&s.taxon, "taxon", "", "`binary` (default: built from this checkout)")
	flag.StringVar(&s.python, "python", "", "`interpreter` of the peer (default none)")
	flag.IntVar(&s.calls, "calls", 5000, "calls of one row")
	flag.DurationVar(&s.seconds, "time", 3*time.Second, "of each throughput")
	flag.IntVar(&s.top, "top", 5, "labels of a row")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	if s.model == "" || s.data == "" {
		return errors.New("name a model with -model and instances with -data")
	}
	dir, err := os.MkdirTemp("", "taxon-serve-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if s.taxon == "" {
		if s.taxon, err = command.Build(dir); err != nil {
			return err
		}
	}
	rows, err := read(ctx, s.data)
	if err != nil {
		return err
	}
	fmt.Printf("%d rows, top %d\n\n", len(rows), s.top)
	alone, err := predictRate(ctx, s, dir, rows)
	if err != nil {
		return err
	}
	fmt.Println("| | p50 ms | p99 ms | batch | rows a CPU second | of predict's |")
	fmt.Println("| --- | --- | --- | --- | --- | --- |")
	fmt.Printf("| predict --threads 1 | | | | %.0f | 1 |\n", alone)
	web, rpc, end, err := startTaxon(ctx, s)
	if err != nil {
		return err
	}
	err = errors.Join(measure(ctx, s, "serve, HTTP", web, rows, alone), measure(ctx, s, "serve, gRPC", rpc, rows, alone))
	if err = errors.Join(err, end()); err != nil || s.python == "" {
		return err
	}
	peer, end, err := startPeer(ctx, s, dir)
	if err != nil {
		return err
	}
	return errors.Join(measure(ctx, s, "scikit-learn, FastAPI", peer, rows, alone), end())
}

// row is an instance as written in its file.
type row struct {
	index []uint32
	value []float32
}

func read(ctx context.Context, path string) ([]row, error) {
	f, err := dataset.OpenReader(ctx, fs.Local{}, path, dataset.ReaderOptions{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []row
	for {
		r, err := f.Read()
		if err != nil {
			if len(out) < slices.Max(batches) {
				return nil, fmt.Errorf("%s: %d rows, %w", path, len(out), err)
			}
			return out, nil
		}
		out = append(out, row{slices.Clone(r.Index), slices.Clone(r.Value)})
	}
}

// server is a server to measure.
type server struct {
	pid int

	// prepare returns a call with the given rows, which fails unless it returns labels for all of
	// them.
	prepare func(rows []row) (call func(ctx context.Context) error, err error)
}

// measure calls a server, and prints a line of the table for each number of rows.
func measure(ctx context.Context, s settings, name string, srv server, rows []row, alone float64) error {
	for _, batch := range batches {
		var calls []func(context.Context) error
		for first := 0; first+batch <= len(rows) && len(calls) < 5000; first += batch {
			call, err := srv.prepare(rows[first : first+batch])
			if err != nil {
				return err
			}
			calls = append(calls, call)
		}
		for _, call := range calls[:min(len(calls), 1+200/batch)] { // warm up
			if err := call(ctx); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		latency := ""
		if batch == 1 {
			took := make([]float64, s.calls)
			before := debug.SetGCPercent(-1) // the caller's pauses must not count as the server's
			for i := range took {
				began := time.Now()
				if err := calls[i%len(calls)](ctx); err != nil {
					return err
				}
				took[i] = time.Since(began).Seconds() * 1e3
			}
			debug.SetGCPercent(before)
			slices.Sort(took)
			latency = fmt.Sprintf("%.3f | %.3f", took[len(took)/2], took[len(took)*99/100])
		} else {
			latency = " | "
		}
		before, err := cpuOf(srv.pid)
		if err != nil {
			return err
		}
		done := 0
		for began := time.Now(); time.Since(began) < s.seconds; done++ {
			if err := calls[done%len(calls)](ctx); err != nil {
				return err
			}
		}
		after, err := cpuOf(srv.pid)
		if err != nil {
			return err
		}
		rate := float64(done*batch) / (after - before)
		fmt.Printf("| %s | %s | %d | %.0f | %.2f |\n", name, latency, batch, rate, rate/alone)
	}
	return nil
}

// predictRate returns the rows per CPU second of `taxon predict`: twenty copies of the rows minus
// one.
func predictRate(ctx context.Context, s settings, dir string, rows []row) (float64, error) {
	var one bytes.Buffer
	for _, r := range rows {
		one.WriteByte(' ') // no label
		for i, n := range r.index {
			fmt.Fprintf(&one, " %d:%v", n, r.value[i])
		}
		one.WriteByte('\n')
	}
	cpu := map[int]float64{}
	for _, copies := range []int{1, 20} {
		path := filepath.Join(dir, "rows.svm")
		if err := os.WriteFile(path, bytes.Repeat(one.Bytes(), copies), 0o600); err != nil {
			return 0, err
		}
		c := exec.CommandContext(ctx, s.taxon, "predict", "--model", s.model, "--data", path, "--out",
			filepath.Join(dir, "out"), "--top", fmt.Sprint(s.top), "--scores", "--threads", "1", "--quiet")
		c.Env = append(os.Environ(), "GOMAXPROCS=1")
		if text, err := c.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("predict: %w\n%s", err, text)
		}
		cpu[copies] = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	}
	return float64(19*len(rows)) / (cpu[20] - cpu[1]), nil
}

// cpuOf returns the CPU time of a process in seconds, user and system.
func cpuOf(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // after the name
	fields := strings.Fields(rest)
	sum := 0.0
	for _, f := range fields[11:13] {
		var ticks float64
		if _, err := fmt.Sscan(f, &ticks); err != nil {
			return 0, err
		}
		sum += ticks / ticksPerSecond
	}
	return sum, nil
}

// ticksPerSecond is the unit of times in Linux's /proc, on all of its platforms.
const ticksPerSecond = 100
