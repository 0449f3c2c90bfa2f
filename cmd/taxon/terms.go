package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/data/dataset"
	"taxon/internal/data/text"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/ui/option"
)

// termsOptions are the flags of terms.
type termsOptions struct {
	words dataset.Words
	model string
	data  string
}

func newTermsCmd(a *app) *cobra.Command {
	var o termsOptions
	cmd := &cobra.Command{
		Use:     "terms [--model DIR]",
		GroupID: groupModel,
		Short:   "show the terms that texts consist of",
		Long: "Writes a line for each line of text: its terms, in the order in which they stand in the text, separated by " +
			"tabs. Terms are what becomes features, once they are counted and weighed: docs/formats.md has the steps.",
		Example: "echo 'The cat sat' | taxon terms --features words+chars\n" +
			"taxon terms --model model --data texts.txt",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.model != "" {
				if own := o.words.Flags(); len(own) > 0 {
					return option.Errorf("terms: ‹%s› and ‹model› exclude each other: the model remembers them", own[0][0])
				}
				m, err := model.Open(o.model)
				if err != nil {
					return err
				}
				defer m.Close()
				if m.Text == nil {
					return option.Errorf("terms: %s was trained on vectors, and has no terms", o.model)
				}
				o.words.Options = m.Data.Terms()
			}
			if err := o.words.Options.Check(); err != nil {
				return option.Errorf("terms: %w", err)
			}
			in, err := fs.Open(cmd.Context(), fs.Local{In: a.stdin}, o.data)
			if err != nil {
				return err
			}
			defer in.Close()
			return text.New(o.words.Options, nil).Lines(a.stdout, in)
		},
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringVar(&o.data, "data", fs.Stdin, "texts, one a line: a `FILE`, or - for standard input")
		f.StringVar(&o.model, "model", "", "the `DIR` of a model: cut texts as it does")
		termOptions(f, &o.words)
	})
	return cmd
}
