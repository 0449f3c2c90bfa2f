package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
			return usagef("train: flag --data is required: see `taxon help train`")
		}
		return train(cmd, args)
	}
	return cmd
}
