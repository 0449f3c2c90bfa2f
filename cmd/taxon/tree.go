package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/train"
	"taxon/internal/fs"
	"taxon/internal/ui/format"
)

func newTreeCmd(a *app) *cobra.Command {
	o := train.Options{}
	cmd := &cobra.Command{
		Use:     "tree --data FILE --out FILE",
		GroupID: groupData,
		Short:   "learn a hierarchy of the classes from their instances",
		Long: "Learns a hierarchy for data that have none, and writes it as lines PARENT CHILD, for --hierarchy: classes " +
			"with like instances get a parent, and like parents too. " +
			"`train --hierarchy learned` learns the same. Mostly half of what a hierarchy made by people gains on text, and " +
			"little on other data: compare, or let tune choose. " +
			"The same data, options and seed give the same tree, whatever the threads.",
		Example: "taxon tree --data train.svm.xz --out tree.txt\n" +
			"taxon tree --data train.txt --text --families 100 --out tree.txt --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneStdin("tree", "--data", o.Data...); err != nil {
				return err
			}
			o.Files = fs.Local{In: a.stdin}
			r, err := train.Tree(cmd.Context(), &o, a.ui)
			if err != nil {
				return err
			}
			return a.print(r, func() {
				fmt.Fprintf(a.stdout, "%s\n  %-12s%s\n  %-12s%s, up to %s deep, up to %s each\n", a.style.Bold(o.Out), "classes",
					format.Count(int64(r.Leaves)),
					"inner nodes", format.Count(int64(r.Nodes-r.Leaves)), format.Counted(int64(r.Depth), "edge", "edges"),
					format.Counted(int64(r.MaxChildren), "child", "children"))
			})
		},
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.Data, "data", nil, "instances: a `FILE`, - for standard input, or a folder made by ingest; "+
			"repeated: read one after the other")
		textFlag(f, &o.Text)
		f.BoolVar(&o.ZeroBased, "zero-based", false, "feature indices count from 0")
		instanceWeightsFlag(f, &o.Weights)
	})
	optionGroup(cmd, "Input", func(f *pflag.FlagSet) { wordOptions(f, &o.Words) })
	flagGroup(cmd, "Hierarchy", func(f *pflag.FlagSet) {
		families := method.Families
		families.Default = "auto"
		optionFlag(f, &o.Said, families, "`N` families of classes, or auto: about 16 classes in each")
		optionFlag(f, &o.Said, *registry.Option("seed"), "seed of the classes that splits begin at: a whole number `N`")
	})
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVar(&o.Out, "out", "", "the `FILE` to write")
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		bytesFlag(f, &o.Memory, "memory", 0, "`SIZE` that reading the data may take")
		threadsFlag(f, &o.Threads)
	})
	require(cmd, "data", "out")
	return cmd
}
