package driver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/app/train"
	"taxon/internal/data/dataset"
	"taxon/internal/hadoop/mapreduce"
	"taxon/internal/hadoop/mapreduce/driver"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// TestMain is the tests' entry, and the task program's: the runner starts this binary with the arguments of
// mapreduce.TaskCommand.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	if os.Args[1] != "mapreduce-task" {
		os.Exit(m.Run())
	}
	if err := runTask(os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runTask(kind string, flags []string) error {
	given := map[string]string{}
	for i := 0; i+1 < len(flags); i += 2 {
		given[flags[i]] = flags[i+1]
	}
	t := mapreduce.Task{State: given["--state"], Run: given["--run"], Cores: 1, Attempt: mapreduce.AttemptName(),
		Open:  func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return dataset.Open(given["--data"]) },
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if kind == "map" {
		return t.Map(context.Background())
	}
	return t.Reduce(context.Background())
}

// TestTraining: another program trains by MapReduce, to the weights of a training in its own
// process.
func TestTraining(t *testing.T) {
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(7, 11))
	var rows strings.Builder
	for range 200 {
		c := r.IntN(4)
		fmt.Fprintf(&rows, "c%d %d:%.3f %d:%.3f\n", c, 1+c, r.Float64(), 10+r.IntN(8), r.Float64())
	}
	data := filepath.Join(dir, "train.svm")
	if err := os.WriteFile(data, []byte(rows.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, name := range []string{"here", "mapreduce"} {
		o := &train.Options{Job: &taxonv1.Options{Method: "rr-svm"}, Data: []string{data}, DAG: "graph",
			Out: filepath.Join(dir, name), Cutoff: "none",
			Threads: 1, Stores: 1, Store: "memory", Pause: 10}
		if name == "mapreduce" {
			o.Remote = &driver.Training{Options: mapreduce.Options{Runner: mapreduce.RunnerProcesses, Cores: 1},
				UI: progress.Discard{}}
		}
		report, err := train.Run(t.Context(), o, progress.Discard{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sums[name] = report.WeightsSHA256
	}
	if sums["here"] != sums["mapreduce"] || sums["here"] == "" {
		t.Errorf("weights %v", sums)
	}
}
