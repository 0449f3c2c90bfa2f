package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/fs"
	"taxon/internal/model/predict"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

func newVectorsCmd(a *app) *cobra.Command {
	var o predict.VectorsOptions
	cmd := &cobra.Command{
		Use:     "vectors --model DIR --data FILE --out FILE",
		GroupID: groupModel,
		Short:   "write texts and tables as the vectors that a model sees",
		Long: "Writes a line an instance, in input order: the labels that the input has, and index:value of each feature " +
			"that the model knows, indices from 1: words weighed by the model's vocabulary, numbers of tables in its scale. " +
			"The lines are instances as train and other programs read them; --words says which index is " +
			"which word, and its idf.",
		Example: "taxon vectors --model model --data new.csv --out new.svm\n" +
			"taxon vectors --model wordnet --text --data new.txt --words words.txt --out new.svm",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Input.ZeroGiven, o.Input.Files, o.Stdout = cmd.Flags().Changed("zero-based"), fs.Local{In: a.stdin}, a.stdout
			if o.Out == fs.Stdin && a.json {
				return option.Errorf("vectors: --json prints to standard output: name a file for the vectors with --out")
			}
			r, err := predict.Vectors(cmd.Context(), o, a.ui)
			if err != nil {
				return err
			}
			return a.printNote(r, "%s of %s written in %s", format.Counted(r.Instances, "vector", "vectors"),
				format.Counted(int64(r.Features), "feature", "features"), format.Seconds(r.Seconds))
		},
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringVar(&o.Model, "model", "", "the `DIR` of a model")
		inputFlags(f, &o.Input)
	})
	tableFlags(cmd, &o.Input.Table)
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.StringVar(&o.Out, "out", fs.Stdin, "write to `FILE`, or - for standard output")
		f.StringVar(&o.Words, "words", "", "write the model's words to a `FILE`, a line IDF<TAB>WORD an "+
			"index, in their order")
	})
	require(cmd, "model", "data")
	return cmd
}
