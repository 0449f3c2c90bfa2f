package main

import (
	"github.com/spf13/cobra"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

// methodDocument describes a method in the JSON output of `taxon methods`.
type methodDocument struct {
	Name  string `json:"name"`
	About string `json:"about"`
	// Probabilities reports whether the scores are probabilities if all options have their
	// defaults.
	Probabilities bool             `json:"probabilities"`
	Options       []optionDocument `json:"options"`
}

// optionDocument describes an option, as its method declares it.
type optionDocument struct {
	Name string `json:"name"`
	// Kind is float, int, choice or bool.
	Kind    string   `json:"kind"`
	Default string   `json:"default"`
	Choices []string `json:"choices,omitempty"`
	Group   string   `json:"group"`
	Help    string   `json:"help"`
}

// newMethodsCmd returns the verb methods, which lists the methods with their options.
func newMethodsCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "methods",
		GroupID: groupModel,
		Short:   "list the methods, and with --json their options",
		Long: "Lists what can be trained by --method. With --json each method says whether its scores are " +
			"probabilities, and has its options: name, kind, default, choices, help. Other programs build on it: the " +
			"Python package takes its parameters from it.",
		Example: "taxon methods\ntaxon methods --json",
		RunE: func(*cobra.Command, []string) error {
			var out []methodDocument
			rows := [][]string{{"METHOD", "WHAT IS TRAINED"}}
			for _, m := range registry.All() {
				d := methodDocument{Name: m.Name(), About: m.About(),
					Probabilities: registry.Form(&taxonv1.Options{Method: m.Name()}).Probable()}
				for _, p := range registry.Of(m.Name()) {
					if p.Name != method.WarmStart.Name { // train defines its flag, because it names a model
						d.Options = append(d.Options, documentOption(&p))
					}
				}
				out, rows = append(out, d), append(rows, []string{m.Name(), m.About()})
			}
			return a.printTable(out, rows, "")
		},
	}
}

// documentOption describes an option.
func documentOption(p *method.Option) optionDocument {
	return optionDocument{
		Name: p.Name, Kind: p.Kind.String(), Default: p.Default, Choices: p.Choices, Group: p.Group,
		Help: option.Flags(registry.Usage(p)),
	}
}
