package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/exit"
)

// fromJobFile marks a flag that is required unless there is a file of --job, which may give it.
const fromJobFile = "taxon_from_job_file"

// newTrainVerb is train with --job: its flags may come from a file, as submit's.
func newTrainVerb(a *app) *cobra.Command {
	cmd := newTrainCmd(a)
	file := ""
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringVar(&file, "job", "", "read flags from a `FILE` of lines `flag: value` (YAML), as tune writes; flags of the command line override them")
	})
	marks := cmd.Flags().Lookup("data").Annotations
	delete(marks, cobra.BashCompOneRequiredFlag)
	marks[fromJobFile] = nil
	train := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := readJobFile(cmd, file); err != nil {
			return err
		}
		if !cmd.Flags().Changed("data") {
			return exit.Usagef("train: flag --data is required: see `taxon help train`")
		}
		return train(cmd, args)
	}
	return cmd
}

// warmFlags are train's alone: a cluster does not see the model.
func (o *trainOptions) warmFlags(cmd *cobra.Command) {
	flagGroup(cmd, "Path to the optimum", func(f *pflag.FlagSet) {
		f.StringVar(&o.Warm, "warm-start", "", "begin at the weights of a `MODEL` of other data, C or structure. Training mostly takes fewer sweeps so; its weights differ from those of a training from nothing, but both meet --gap. Classes and features are matched by name; "+
			"new classes begin at their parents' weights. On graphs only internal nodes begin there")
	})
}
