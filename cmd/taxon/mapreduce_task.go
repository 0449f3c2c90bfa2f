package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/dataset"
	"taxon/internal/exit"
	"taxon/internal/mapreduce"
	taxonv1 "taxon/proto/taxon/v1"
)

// newMapReduceTaskCmd is what a map or reduce task starts.
func newMapReduceTaskCmd(a *app) *cobra.Command {
	var t mapreduce.Task
	data := ""
	cmd := &cobra.Command{
		Use:     "mapreduce-task KIND --state DIR --run ID --data DIR",
		GroupID: groupOther,
		Short:   "what a map or reduce task of `train --engine mapreduce` runs",
		Long:    "Runs a map or reduce task: input on standard input, output for the shuffle on standard output, the rest in the state folder. `train --engine mapreduce` has Hadoop start it.",
		Example: "taxon mapreduce-task map --state model.train/mapreduce --run s1-0a1b2c3d4e --data data < lines > records\n" +
			"taxon mapreduce-task reduce --state model.train/mapreduce --run s1-0a1b2c3d4e --data data < records",
		Hidden: true,
		Args:   oneArg("KIND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.Attempt = mapreduce.AttemptName()
			t.Stdin, t.Stdout, t.Stderr = a.stdin, a.stdout, a.stderr
			t.Open = func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return dataset.Open(data) }
			switch args[0] {
			case "map":
				return t.Tell(t.Map(cmd.Context()))
			case "reduce":
				return t.Tell(t.Reduce(cmd.Context()))
			}
			return exit.Usagef("mapreduce-task: %q: give map or reduce", args[0])
		},
	}
	flagGroup(cmd, "Task", func(f *pflag.FlagSet) {
		f.StringVar(&t.State, "state", "", "the state folder: a `DIR`")
		f.StringVar(&t.Run, "run", "", "`ID` of the job's folder in it")
		f.StringVar(&data, "data", "", "`DIR` of the ingested data")
		intFlag(f, &t.Cores, "cores", 1, 1, 1024, "`N` tasks of the coordinator's at a time")
	})
	require(cmd, "state", "run", "data")
	return cmd
}
