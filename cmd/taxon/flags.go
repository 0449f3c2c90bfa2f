package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/data/table"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

const groupAnnotation = "taxon_group"

// flagGroup defines the flags that define adds as one group of cmd's help.
func flagGroup(cmd *cobra.Command, title string, define func(f *pflag.FlagSet)) {
	f := pflag.NewFlagSet(title, pflag.ContinueOnError)
	f.SortFlags = false
	define(f)
	inGroup(f, title)
	cmd.Flags().SortFlags = false
	cmd.Flags().AddFlagSet(f)
	f.VisitAll(func(flag *pflag.Flag) {
		if names := choicesOf(flag); names != nil {
			// It fails only for a flag that the command lacks, or for a second call.
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
		}
	})
}

// inGroup puts flags into a group of the help.
func inGroup(f *pflag.FlagSet, title string) {
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[groupAnnotation] = []string{title}
	})
}

// grouped reports whether a flag is the verb's own, unlike --json and --help, which all verbs have.
func grouped(f *pflag.Flag) bool { return f.Annotations[groupAnnotation] != nil }

// methodOptions adds either the common options of the methods or the other options to the flags. It
// stores their values in said.
func methodOptions(f *pflag.FlagSet, said *registry.Values, group string, common bool) {
	for _, p := range registry.Options() {
		if p.Group == group && p.Common == common {
			optionFlag(f, said, p, usageOf(&p))
		}
	}
}

// mostNamed is the largest number of methods that the help on an option names.
const mostNamed = 3

// usageOf returns the help on an option. If only a few methods have the option, or only a few lack
// it, the help names them.
func usageOf(p *method.Option) string {
	help, by := option.Flags(p.Help), registry.Taking(p.Name)
	without := slices.DeleteFunc(registry.Names(), func(name string) bool { return slices.Contains(by, name) })
	switch {
	case len(by) == 0 || len(without) == 0:
		return help
	case len(by) <= mostNamed:
		return help + " (" + strings.Join(by, ", ") + ")"
	case len(without) <= mostNamed:
		return help + " (not " + strings.Join(without, ", ") + ")"
	}
	return fmt.Sprintf("%s (%d methods)", help, len(by))
}

func optionFlag(f *pflag.FlagSet, said *registry.Values, p method.Option, usage string) {
	if *said == nil {
		*said = registry.Values{}
	}
	flag := f.VarPF(&optionValue{p, *said}, p.Name, "", usage)
	if p.Kind == method.Bool {
		flag.NoOptDefVal = "true"
	}
}

// optionValue is the value of a method's option as a flag.
type optionValue struct {
	option method.Option
	said   registry.Values
}

func (v *optionValue) String() string {
	if s, ok := v.said[v.option.Name]; ok {
		return s
	}
	return v.option.Default
}
func (v *optionValue) Type() string { return [...]string{"number", "n", "name", "bool"}[v.option.Kind] }
func (v *optionValue) Set(s string) error {
	var see pflag.Value // whose errors say more
	switch p := v.option; {
	case p.Kind == method.Choice:
		see = &choiceValue{new(string), p.Choices}
	case p.Kind == method.Float && len(p.Choices) == 0:
		see = &floatValue{new(float64), p.Range.Must}
	}
	if see != nil {
		if err := see.Set(s); err != nil {
			return err
		}
	}
	text, err := v.option.Parse(s)
	if err != nil {
		return valuef("%w", err)
	}
	v.said[v.option.Name] = text
	return nil
}

// choicesOf returns the names that a flag may have as its value. It is nil if there is no such
// list.
func choicesOf(f *pflag.Flag) []string {
	switch v := f.Value.(type) {
	case *choiceValue:
		return v.choices
	case *optionValue:
		if v.option.Kind == method.Choice {
			return v.option.Choices
		}
	}
	return nil
}

// valueError is a flag type's message about an invalid value, such as "must be above 0".
type valueError struct{ msg string }

func (e *valueError) Error() string { return e.msg }

// valuef returns a valueError.
func valuef(format string, args ...any) error {
	return &valueError{fmt.Errorf(format, args...).Error()}
}

// floatFlag defines a flag whose value is a number. check returns the requirement that the number
// violates, or "" if there is none.
func floatFlag(f *pflag.FlagSet, p *float64, name string, def float64, usage string, check func(float64) string) {
	*p = def
	f.Var(&floatValue{p, check}, name, usage)
}

type floatValue struct {
	p     *float64
	check func(float64) string
}

func (v *floatValue) String() string {
	if v.p == nil {
		return ""
	}
	return strconv.FormatFloat(*v.p, 'g', -1, 64)
}
func (v *floatValue) Type() string { return "number" }
func (v *floatValue) Set(s string) error {
	x, err := strconv.ParseFloat(s, 64)
	if d, bad := time.ParseDuration(s); err != nil && bad == nil {
		return valuef("must be a number without a unit, of seconds where it is a time: %s", strconv.FormatFloat(d.Seconds(),
			'g', -1, 64))
	}
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return valuef("must be a finite number")
	}
	if must := v.check(x); must != "" {
		return valuef("%s", must)
	}
	*v.p = x
	return nil
}

// above0 accepts positive numbers, as a check of floatFlag.
func above0(x float64) string {
	if x > 0 {
		return ""
	}
	return "must be above 0"
}

func atLeast0(x float64) string {
	if x >= 0 {
		return ""
	}
	return "must be 0 or more"
}

func above0to1(x float64) string {
	if x > 0 && x <= 1 {
		return ""
	}
	return "must be above 0 and at most 1"
}

// groupTables is the title of the flags on tables.
const groupTables = "Tables (.csv, .tsv, .jsonl, .parquet, .arrow), matrices (.npy, .npz)"

// tableFlags are the flags and options of verbs that read data that may be tables.
func tableFlags(cmd *cobra.Command, o *table.Options) {
	flagGroup(cmd, groupTables, func(f *pflag.FlagSet) {
		f.StringArrayVar(&o.Text, "text-column", nil, "the `COLUMN` of the text; repeated: joined by blanks")
		f.StringSliceVar(&o.Features, "feature-columns", nil,
			"numeric `COLUMNS`, separated by commas, standardised by the training data; columns "+
				"of lists as they are")
		f.StringVar(&o.Label, "label-column", "", "the `COLUMN` of the label, or of a list of labels")
		f.StringVar(&o.PathSeparator, "path-separator", "",
			"labels are paths, `TEXT` between their parts, as in ' > '; they define the hierarchy")
		f.StringVar(&o.LabelSeparator, "label-separator", "", "cells hold several labels, `TEXT` between them, as in ';'")
		f.StringVar(&o.ID, "id-column", "", "the `COLUMN` that names the rows in predictions")
	})
	optionGroup(cmd, groupTables, func(f *pflag.FlagSet) { rareTableOptions(f, o) })
}

// rareTableOptions are the options on tables that have no flags.
func rareTableOptions(f *pflag.FlagSet, o *table.Options) {
	f.StringSliceVar(&o.LabelColumns, "label-columns", nil, "one 0/1 column per label: `COLUMNS`, separated by commas")
	f.StringSliceVar(&o.LevelColumns, "level-columns", nil,
		"one column per level of the label path, from the top: `COLUMNS`, separated by commas")
	f.StringVar(&o.Weight, "weight-column", "", "the `COLUMN` of instance weights in training")
	labelsOption(f, o)
	formatOption(f, o)
	f.StringVar(&o.Delimiter, "delimiter", "", "cell separator of CSV: one `CHARACTER`, as ';' (default: a comma)")
	choiceFlag(f, &o.Header, "header", "", []string{table.WithHeader, table.NoHeader},
		"whether line 1 of CSV or TSV names the columns; no: they are 1, 2, ... (default: "+
			"yes)")
	f.Int64Var(&o.SkipBroken, "skip-broken", 0, "skip up to `N` malformed rows or lines")
}

// labelsOption is the option for the labels of a matrix.
func labelsOption(f *pflag.FlagSet, o *table.Options) {
	f.StringVar(&o.Labels, "labels", "",
		"labels of a matrix: a `FILE` with a line LABEL[,LABEL...] per row, or a NumPy array")
}

// formatOption is the option that gives the format of data whose file name does not show it.
func formatOption(f *pflag.FlagSet, o *table.Options) {
	choiceFlag(f, &o.Format, "data-format", "auto", table.Formats, "format of the data; auto: by file name")
}

// intFlag defines a flag whose value is a whole number from lo to hi.
func intFlag(f *pflag.FlagSet, p *int, name string, def, lo, hi int, usage string) {
	*p = def
	f.Var(&intValue{p, lo, hi}, name, usage)
}

type intValue struct {
	p      *int
	lo, hi int
}

func (v *intValue) String() string {
	if v.p == nil {
		return ""
	}
	return strconv.Itoa(*v.p)
}
func (v *intValue) Type() string { return "n" }
func (v *intValue) Set(s string) error {
	x, err := strconv.Atoi(s)
	switch {
	case err != nil:
		return valuef("must be a whole number")
	case x < v.lo && v.hi == math.MaxInt:
		return valuef("must be %d or more", v.lo)
	case x < v.lo || x > v.hi:
		return valuef("must be from %d to %d", v.lo, v.hi)
	}
	*v.p = x
	return nil
}

// choiceFlag defines a flag whose value is a name from a list.
func choiceFlag(f *pflag.FlagSet, p *string, name, def string, choices []string, usage string) {
	*p = def
	f.Var(&choiceValue{p, choices}, name, usage)
}

type choiceValue struct {
	p       *string
	choices []string
}

func (v *choiceValue) String() string {
	if v.p == nil {
		return ""
	}
	return *v.p
}
func (v *choiceValue) Type() string { return "name" }
func (v *choiceValue) Set(s string) error {
	for _, c := range v.choices {
		if s == c {
			*v.p = s
			return nil
		}
	}
	if near := format.Nearest(s, v.choices); near != "" {
		return valuef("did you mean %s?", near)
	}
	return valuef("must be one of %s", strings.Join(v.choices, ", "))
}

// bytesFlag defines a flag whose value is a number of bytes, such as 512MiB, 4GB or 1e9. If the
// default is 0, the verb chooses the value, and the help shows no default.
func bytesFlag(f *pflag.FlagSet, p *int64, name string, def int64, usage string) {
	*p = def
	f.Var(&bytesValue{p}, name, usage)
}

type bytesValue struct{ p *int64 }

func (v *bytesValue) String() string {
	if v.p == nil || *v.p == 0 {
		return ""
	}
	return format.Bytes(*v.p)
}
func (v *bytesValue) Type() string { return "size" }
func (v *bytesValue) Set(s string) error {
	n, ok := parseBytes(s)
	if !ok {
		return valuef("must be a size such as 512MiB or 4GB")
	}
	*v.p = n
	return nil
}

// parseBytes parses a positive size. K, M, G, T and KiB, MiB, ... are powers of 1024; KB, MB, ...
// are powers of 1000.
func parseBytes(s string) (int64, bool) {
	digits := strings.TrimRight(s, "KMGTkmgtiIbB")
	unit := strings.ToUpper(s[len(digits):])
	scale := 1.0
	if unit != "" && unit != "B" {
		power := strings.IndexByte("KMGT", unit[0]) + 1
		base := 1024.0
		switch {
		case power == 0:
			return 0, false
		case unit[1:] == "B":
			base = 1000
		case unit[1:] != "" && unit[1:] != "IB":
			return 0, false
		}
		scale = math.Pow(base, float64(power))
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !(x*scale >= 1) || x*scale >= 1<<62 {
		return 0, false
	}
	return int64(x * scale), true
}

// require marks flags of cmd as required. The root checks them before the verb runs.
func require(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		// An unknown name is an error of the program, which the test of each verb's help finds.
		_ = cmd.MarkFlagRequired(name)
	}
}
