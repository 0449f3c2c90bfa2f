package main

import (
	"github.com/spf13/cobra"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/ui/option"
)

// methodDocument is a method in `taxon methods --json`.
type methodDocument struct {
	Name    string           `json:"name"`
	About   string           `json:"about"`
	Options []optionDocument `json:"options"`
}

// optionDocument is an option as its method declares it.
type optionDocument struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"` // float, int, choice, bool
	Default string   `json:"default"`
	Choices []string `json:"choices,omitempty"`
	Group   string   `json:"group"`
	Help    string   `json:"help"`
}

func newMethodsCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "methods",
		GroupID: groupModel,
		Short:   "list the methods, and with --json their options",
		Long: "Lists what can be trained by --method. With --json each method has its options: name, kind, default, " +
			"choices, help. Other programs build on it: the Python package takes its parameters from it.",
		Example: "taxon methods\ntaxon methods --json",
		RunE: func(*cobra.Command, []string) error {
			var out []methodDocument
			rows := [][]string{{"METHOD", "WHAT IS TRAINED"}}
			for _, m := range registry.All() {
				d := methodDocument{Name: m.Name(), About: m.About()}
				for _, p := range registry.Of(m.Name()) {
					if p.Name != method.WarmStart.Name { // train defines its flag: it names a model
						d.Options = append(d.Options, documentOption(&p))
					}
				}
				out, rows = append(out, d), append(rows, []string{m.Name(), m.About()})
			}
			return a.printTable(out, rows, "")
		},
	}
}

func documentOption(p *method.Option) optionDocument {
	return optionDocument{
		Name: p.Name, Kind: p.Kind.String(), Default: p.Default, Choices: p.Choices, Group: p.Group,
		Help: option.Flags(registry.Usage(p)),
	}
}
