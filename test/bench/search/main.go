// Command search measures how much `taxon tune` saves compared with the naive sum: training every
// point of its grid on every fold separately, from nothing and to the same gap. ~ CPU seconds are
// those of the trainings: ingest, predictions and measures are in neither. => CPU seconds are those
// of the trainings. Both sides exclude ingest, predictions and measures.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"taxon/test/bench/drive"
)

func main() {
	cs := flag.String("C", "0.001,0.01,0.1,1,10", "the search's `list` of values of C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *cs, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

// run searches, and then searches with each C separately: a path of a single point has no warm
// start.
func run(ctx context.Context, cs string, args []string) (err error) {
	d, err := drive.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	dir, err := os.MkdirTemp("", "taxon-search-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	search := func(c string, more ...string) (cpu float64, err error) {
		out, err := d.Output(ctx, slices.Concat([]string{"tune"}, args, []string{"--C", c, "--out", filepath.Join(dir, c),
			"--json", "--quiet"}, more)...)
		if err != nil {
			return 0, err
		}
		var r struct {
			CPU float64 `json:"cpu_seconds"`
		}
		err = json.Unmarshal(out, &r)
		return r.CPU, err
	}
	raced, err := search(cs)
	if err != nil {
		return err
	}
	naive := 0.0
	for _, c := range strings.Split(cs, ",") {
		cpu, err := search(c, "--exhaustive")
		if err != nil {
			return err
		}
		naive += cpu
	}
	drive.Row("search s", "naive sum s", "ratio")
	drive.Rule(3)
	drive.Row(fmt.Sprintf("%.2f", raced), fmt.Sprintf("%.2f", naive), fmt.Sprintf("%.2f", raced/naive))
	return nil
}
