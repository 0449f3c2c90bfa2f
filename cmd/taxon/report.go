package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/app/report"
	"taxon/internal/fs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// newReportCmd returns the verb report, which writes a page about a model.
func newReportCmd(a *app) *cobra.Command {
	var o report.Options
	cmd := &cobra.Command{
		Use:     "report MODEL --out FILE",
		GroupID: groupModel,
		Short:   "write a model's report as one HTML file, or its model card",
		Long: "Writes one HTML file that needs no network: the certificate and how it was reached; with --data measures " +
			"and what each means, by level, by class size and by class, " +
			"where in the hierarchy mistakes happen, the worst ones with the features that led there, calibration; with " +
			"--compare how sure the differences to other models are; data, options, and the commands to do it again. " +
			"Instances are read as the training data were. A FILE that ends in .md is a model card, as model hubs read them: " +
			"certificate, use, data, and with --data measures.",
		Example: "taxon report model --data test.svm.xz --compare flat --out report.html\n" +
			"taxon report model --data test.svm.xz --out README.md",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return option.Errorf("report: name the folder of one model; others go to --compare")
			}
			if len(o.Compare) > 0 && o.Data.Path == "" {
				return option.Errorf("report: --compare needs --data to compare on")
			}
			o.Model, o.Data.Files = args[0], fs.Local{In: a.stdin}
			s, err := report.Write(cmd.Context(), o, a.ui)
			if err != nil {
				return err
			}
			return a.printNote(s, "%s written: %s", s.Out, format.Bytes(s.Bytes))
		},
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringVar(&o.Data.Path, "data", "", "labelled test instances: a `FILE`, or a folder made by ingest")
		f.StringArrayVar(&o.Compare, "compare", nil, "another `MODEL` to compare with; repeated: several")
	})
	optionGroup(cmd, "Input", func(f *pflag.FlagSet) {
		labelsOption(f, &o.Data.Table)
		formatOption(f, &o.Data.Table)
	})
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVar(&o.Out, "out", "", "write to `FILE`")
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) { threadsFlag(f, &o.Data.Threads) })
	require(cmd, "out")
	return cmd
}
