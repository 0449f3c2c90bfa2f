package mapreduce_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"taxon/internal/data/dataset"
	"taxon/internal/hadoop/mapreduce"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/jobs"
)

// TestMain is the tests' entry, and the task program's when the local runner starts this
// binary as a map or reduce task: taxon-task KIND STATE RUN SEED ROWS CLASSES.
func TestMain(m *testing.M) {
	// heaps are small here: the collector would run all the time
	debug.SetGCPercent(400)
	if len(os.Args) == 9 && os.Args[1] == "taxon-task" {
		if err := runTask(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func runTask(args []string) error {
	var n [4]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(args[3+i]); err != nil {
			return err
		}
	}
	t := mapreduce.Task{State: args[1], Run: args[2], Cores: 2, Attempt: mapreduce.AttemptName(),
		Open: func(context.Context, *taxonv1.Data) (*dataset.Set, error) {
			return data{n[0], n[1], n[2], n[3]}.job().Set, nil
		},
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if args[0] == "map" {
		return t.Map(context.Background())
	}
	return t.Reduce(context.Background())
}

// data names a small job by what jobs.Small makes it from; first 1: with the rows' first labels
// alone, and no structure.
type data struct{ seed, rows, classes, first int }

func (d data) job() *jobs.Job {
	j := jobs.Small(uint64(d.seed), d.rows, d.classes)
	if d.first == 1 {
		return j.FirstLabels()
	}
	return j
}

// local is a runner whose tasks are this test binary.
func (d data) local() *mapreduce.Local {
	return &mapreduce.Local{Threads: 2, Command: func(kind string, j *mapreduce.Job) []string {
		return []string{os.Args[0], "taxon-task", kind, j.State, j.Run, strconv.Itoa(d.seed), strconv.Itoa(d.rows),
			strconv.Itoa(d.classes), strconv.Itoa(d.first)}
	}}
}
