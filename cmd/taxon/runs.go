package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/app/modellist"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

func newRunsCmd(a *app) *cobra.Command {
	by, table, traces := "dir", false, false
	cmd := &cobra.Command{
		Use:     "runs DIR",
		GroupID: groupModel,
		Short:   "list the models in a folder side by side",
		Long: "Lists all models in a folder and below it: method and options, gap, what evaluation during the training " +
			"measured (--test with --eval-every), sweeps, time, size. One that can't be read is listed with what is wrong, " +
			"and the exit status is 2.",
		Example: "taxon runs models --sort macro_f1 --csv\ntaxon runs models --traces > traces.csv",
		Args:    cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return option.Errorf("runs: name one folder")
			}
			all, err := modellist.Find(args[0], by)
			switch {
			case err != nil:
				return err
			case traces:
				return errors.Join(modellist.WriteTraces(a.stdout, all), modellist.Broken(all))
			case table:
				return errors.Join(modellist.WriteCSV(a.stdout, all), modellist.Broken(all))
			}
			rows := [][]string{{"MODEL", "OPTIONS", "GAP", "MICRO-F1", "MACRO-F1", "SWEEPS", "TIME", "SIZE"}}
			for _, r := range all {
				if r.Error != "" {
					rows = append(rows, []string{r.Dir, r.Error, "", "", "", "", "", ""})
					continue
				}
				gap := ""
				if r.Gap != nil {
					gap = format.Gap(*r.Gap)
				}
				rows = append(rows, []string{r.Dir, r.Options, gap, modellist.Percent(r.MicroF1), modellist.Percent(r.MacroF1),
					fmt.Sprint(r.Sweeps), format.Seconds(r.Seconds), format.Bytes(r.Bytes)})
			}
			return errors.Join(a.printTable(all, rows, "no model in "+args[0]), modellist.Broken(all))
		},
	}
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		choiceFlag(f, &by, "sort", by, modellist.Sorts, "sort by `KEY`: "+strings.Join(modellist.Sorts, ", "))
		f.BoolVar(&table, "csv", false, "write a CSV table")
		f.BoolVar(&traces, "traces", false, "write a CSV table of the models' sweeps: objective, bound, gap and F1 by "+
			"sweep and second, for other programs' pictures")
	})
	return cmd
}
