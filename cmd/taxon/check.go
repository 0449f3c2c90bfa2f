package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/data/lint"
	"taxon/internal/fs"
	"taxon/internal/ui/console"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

func newCheckCmd(a *app) *cobra.Command {
	var o lint.Options
	cmd := &cobra.Command{
		Use:     "check --data FILE",
		GroupID: groupData,
		Short:   "find likely mistakes in data before training",
		Long: "Reads labelled data, and test data and a hierarchy if given, and lists likely mistakes: rows that are in " +
			"both, rows that occur twice, also with other labels, " +
			"labels that differ by a letter or case, classes of one row or with the same rows, features and labels that only " +
			"the test data have, a hierarchy that does not match the labels.",
		Example: "taxon check --data train.csv --test test.csv --text-column text --label-column category\n" +
			"taxon check --data train.svm --hierarchy tree.txt --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneStdin("check", "--data, --test and --hierarchy", o.Data, o.Test, o.Hierarchy); err != nil {
				return err
			}
			o.Files = fs.Local{In: a.stdin}
			r, err := lint.Run(cmd.Context(), o, a.ui)
			if err != nil {
				return err
			}
			for i := range r.Findings {
				r.Findings[i].About = option.Flags(r.Findings[i].About)
			}
			return a.print(r, func() { printCheck(a, &o, r) })
		},
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringVar(&o.Data, "data", "", "instances: a `FILE`, or - for standard input")
		f.StringVar(&o.Test, "test", "", "instances that are to measure the model: a `FILE`")
		f.StringVar(&o.Hierarchy, "hierarchy", "", "class structure: a `FILE` with a line PARENT CHILD an edge, or "+
			"from-labels with --path-separator")
		f.BoolVar(&o.Text, "text", false, "lines are LABEL[,LABEL...]<TAB>text")
		f.BoolVar(&o.ZeroBased, "zero-based", false, "feature indices count from 0")
	})
	optionGroup(cmd, "Input", func(f *pflag.FlagSet) { testLabelsOption(f, &o.TestLabels) })
	tableFlags(cmd, &o.Table)
	require(cmd, "data")
	return cmd
}

func printCheck(a *app, o *lint.Options, r *lint.Report) {
	fmt.Fprintf(a.stdout, "%s: %s, %s", a.style.Bold(o.Data), format.Counted(r.Instances, "instance", "instances"),
		format.Counted(int64(r.Classes), "class", "classes"))
	if o.Test != "" {
		fmt.Fprintf(a.stdout, "; %s: %s", o.Test, format.Counted(r.TestInstances, "instance", "instances"))
	}
	fmt.Fprintln(a.stdout)
	if len(r.Findings) == 0 {
		fmt.Fprintln(a.stdout, "\nnothing found")
	}
	for _, f := range r.Findings {
		more := ""
		if f.Count > int64(len(f.Examples)) {
			more = ", ..."
		}
		fmt.Fprintf(a.stdout, "\n%10s  %s\n%12s%s%s\n", format.Count(f.Count), console.Fold(f.About, console.Width, 12), "",
			strings.Join(f.Examples, ", "), more)
	}
}
