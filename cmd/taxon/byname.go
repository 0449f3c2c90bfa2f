package main

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/data/dataset"
	"taxon/internal/data/table"
	"taxon/internal/model/measure"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// byNameFlag is the flag that sets any option of a verb by its name. Options that few users need
// have no flag of their own: the ones that methods do not declare Common, and the ones that
// optionGroup defines.
const byNameFlag = "x"

// byName is the value of --x. It holds the options of a verb that have no flag of their own.
type byName struct {
	cmd     *cobra.Command
	options *pflag.FlagSet
	given   []string
}

var _ pflag.SliceValue = (*byName)(nil)

// String implements [pflag.Value].
func (v *byName) String() string { return strings.Join(v.given, " ") }

// Type implements [pflag.Value].
func (v *byName) Type() string { return "option" }

// Set implements [pflag.Value].
func (v *byName) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	f := lookup(v.cmd, name)
	switch {
	case f == nil || !grouped(f) || name == byNameFlag || name == "job":
		names := slices.Concat(optionNames(v.cmd), flagNames(v.cmd))
		if near := format.Nearest(name, names); near != "" && near != name {
			return valuef("there is no option %q: did you mean %s?", name, near)
		}
		return valuef("there is no option %q: see `taxon help %s --all`", name, verbPath(v.cmd))
	case !ok && f.NoOptDefVal != "":
		value = f.NoOptDefVal
	case !ok:
		return valuef("give NAME=VALUE")
	}
	if err := set(v.cmd, name, value); err != nil {
		return err
	}
	v.given = append(v.given, s)
	return nil
}

// Append implements [pflag.SliceValue].
func (v *byName) Append(s string) error { return v.Set(s) }

// Replace implements [pflag.SliceValue].
func (v *byName) Replace(all []string) error {
	v.given = nil
	for _, s := range all {
		if err := v.Set(s); err != nil {
			return err
		}
	}
	return nil
}

// GetSlice implements [pflag.SliceValue].
func (v *byName) GetSlice() []string { return v.given }

// optionsByName returns the options of cmd that have no flag. It defines --x if cmd has none yet.
func optionsByName(cmd *cobra.Command) *pflag.FlagSet {
	if f := cmd.Flags().Lookup(byNameFlag); f != nil {
		return f.Value.(*byName).options
	}
	v := &byName{cmd: cmd, options: pflag.NewFlagSet(byNameFlag, pflag.ContinueOnError)}
	v.options.SortFlags = false
	flagGroup(cmd, groupByName, func(f *pflag.FlagSet) {
		f.Var(v, byNameFlag, "set an option of `taxon help "+cmd.Name()+" --all`: `NAME=VALUE`, the same as --NAME VALUE; repeated: "+
			"several")
	})
	// It fails only for a flag that the command lacks or a second call.
	_ = cmd.RegisterFlagCompletionFunc(byNameFlag, func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		var names []string
		v.options.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name+"=") })
		return names, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	})
	return v.options
}

// byTheirNames returns the arguments of cmd with --x NAME=VALUE in place of --NAME VALUE, for each option without a
// flag: users may give such an option under its own name, as the methods' pages write it.
func byTheirNames(cmd *cobra.Command, args []string) []string {
	options := hasOptionsByName(cmd)
	var out []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(out, args[i:]...)
		}
		name, value, given := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		f := options.Lookup(name)
		if f == nil || !strings.HasPrefix(args[i], "--") {
			out = append(out, args[i])
			continue
		}
		switch {
		case given:
			name += "=" + value
		case f.NoOptDefVal == "" && i+1 < len(args):
			i++
			name += "=" + args[i]
		}
		out = append(out, "--"+byNameFlag, name)
	}
	return out
}

// groupByName is the title of the group of --x. It is the last group of a verb's own flags.
const groupByName = "Other options"

// optionGroup defines options without a flag of their own, as flagGroup defines flags.
func optionGroup(cmd *cobra.Command, title string, define func(f *pflag.FlagSet)) {
	f := pflag.NewFlagSet(title, pflag.ContinueOnError)
	f.SortFlags = false
	define(f)
	inGroup(f, title)
	optionsByName(cmd).AddFlagSet(f)
}

// hasOptionsByName returns the options of cmd without a flag, or an empty set.
func hasOptionsByName(cmd *cobra.Command) *pflag.FlagSet {
	if f := cmd.Flags().Lookup(byNameFlag); f != nil {
		return f.Value.(*byName).options
	}
	return pflag.NewFlagSet(byNameFlag, pflag.ContinueOnError)
}

// lookup returns the flag or the option of a name, or nil.
func lookup(cmd *cobra.Command, name string) *pflag.Flag {
	if f := cmd.Flags().Lookup(name); f != nil {
		return f
	}
	return hasOptionsByName(cmd).Lookup(name)
}

// set sets the value of a flag or an option. The flag or the option must exist.
func set(cmd *cobra.Command, name, value string) error {
	if cmd.Flags().Lookup(name) != nil {
		return cmd.Flags().Set(name, value)
	}
	return hasOptionsByName(cmd).Set(name, value)
}

// visitAll calls do with all flags and options of cmd.
func visitAll(cmd *cobra.Command, do func(f *pflag.Flag)) {
	cmd.Flags().VisitAll(do)
	hasOptionsByName(cmd).VisitAll(do)
}

// optionNames lists the options of cmd without a flag.
func optionNames(cmd *cobra.Command) (names []string) {
	hasOptionsByName(cmd).VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// badValue returns the error of the flag or option whose value is invalid. It returns nil if all
// values are valid. For an option given by --x it is the error of the option's value.
func badValue(err error) *pflag.InvalidValueError {
	var bad, inner *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return nil
	}
	if bad.GetFlag().Name == byNameFlag && errors.As(bad.Unwrap(), &inner) {
		return inner
	}
	return bad
}

// declaredByName are the names of the options without a flag that verbs define, in addition to the methods' own.
var declaredByName = sync.OnceValue(func() map[string]bool {
	f := pflag.NewFlagSet(byNameFlag, pflag.ContinueOnError)
	rareTableOptions(f, new(table.Options))
	wordOptions(f, new(dataset.Words))
	labelTextOptions(f, new(dataset.LabelText))
	stringOptions(f, new(dataset.Strings))
	propensityOption(f, new(measure.Propensity))
	new(trainOptions).rareOptions(f)
	names := map[string]bool{}
	f.VisitAll(func(f *pflag.Flag) { names[f.Name] = true })
	return names
})

// hasNoFlag reports whether users give an option by --x.
func hasNoFlag(name string) bool {
	if p := registry.Option(name); p != nil {
		return !p.Common && name != method.WarmStart.Name
	}
	return declaredByName()[name]
}

func init() { option.HasNoFlag = hasNoFlag }
