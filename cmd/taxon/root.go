package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method/registry"
	"taxon/internal/ui/console"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	"taxon/mapper"
	"taxon/worker/program"
)

// app is what every verb receives: the three streams, the global flags, progress.
//
// A verb is a function `newXxxCmd(a *app) *cobra.Command` in a file of its own, and a line in
// verbs(). It
//
//   - sets Use, GroupID (below), Short, Long (one paragraph), Example (two lines that run) and RunE;
//   - defines its flags by flagGroup, which sorts them in the help; marks required ones
//     with MarkFlagRequired; checks ranges by the flag types of flags.go;
//   - takes its context from cmd.Context(): cancelled by the first Ctrl-C;
//   - writes results to a.stdout (one document by a.printJSON when a.json), everything
//     else through a.ui;
//   - returns errors; exitf chooses an exit status, see describe.
//
// Positional arguments are refused unless the verb sets Args.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	ui     *console.UI
	// style is the style of stdout.
	style console.Style
	json  bool
	quiet bool
	// terminal reports that stdin and stderr are a terminal, so that the user can be asked.
	terminal bool
	// args is the command line without the program's name.
	args []string
	// log is the log of a process that writes lines of JSON and nothing else. It is nil otherwise.
	log *slog.Logger
	// marked: texts keep options as ‹cutoff=0.5›, for the program that reads them
	marked bool
}

// commandLine returns the command that the user entered, quoted for a shell, for hints on how to
// continue.
func (a *app) commandLine() string {
	words := []string{"taxon"}
	for _, w := range a.args {
		if w == "--force" || w == "--force=true" {
			continue // it would delete what could be continued
		}
		words = append(words, format.ShellWord(w))
	}
	return strings.Join(words, " ")
}

// printJSON writes v as the one JSON document of the verb.
func (a *app) printJSON(v any) error {
	var doc bytes.Buffer
	e := json.NewEncoder(&doc)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := a.stdout.Write(format.SafeJSON(doc.Bytes()))
	return err
}

// print prints a verb's result: a document with --json, and otherwise the text that text prints.
func (a *app) print(document any, text func()) error {
	if a.json {
		return a.printJSON(document)
	}
	text()
	return nil
}

// printNote prints a result whose text is one line, as print does.
func (a *app) printNote(document any, format string, args ...any) error {
	return a.print(document, func() { a.ui.Note(format, args...) })
}

// printTable prints a result whose text is a table with a head, as print does. Without rows it
// prints no head.
func (a *app) printTable(document any, rows [][]string, none string) error {
	return a.print(document, func() {
		if len(rows) == 1 {
			a.ui.Note("%s", none)
			return
		}
		a.table(rows)
	})
}

// These are the groups of verbs, as `taxon help` shows them.
const (
	groupStart   = "start"
	groupModel   = "model"
	groupData    = "data"
	groupCluster = "cluster"
	groupOther   = "other"
)

// newRootCmd builds the tree of commands for a. All state is in a, so tests build one tree per
// command line.
func newRootCmd(a *app, verbs []named) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:           "taxon",
		Short:         "linear classifiers for large class hierarchies, trained jointly and with a certificate",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return unknownVerb(cmd, args[0])
			case version:
				return printVersion(a)
			}
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.ui.Quiet = a.quiet
			if err := checkRequired(cmd); err != nil {
				return err
			}
			if err := canonicalPaths(cmd); err != nil {
				return err
			}
			for _, name := range repeated(cmd, a.args) {
				a.ui.Warn("flag %s is given more than once: the last one counts", name)
			}
			return nil
		},
	}
	root.AddGroup(
		&cobra.Group{ID: groupStart, Title: "Start here"},
		&cobra.Group{ID: groupModel, Title: "Train and use models"},
		&cobra.Group{ID: groupData, Title: "Data"},
		&cobra.Group{ID: groupCluster, Title: "Cluster"},
		&cobra.Group{ID: groupOther, Title: "Other"},
	)
	global := root.PersistentFlags()
	global.BoolVar(&a.json, "json", false, "print the result as one JSON document")
	global.BoolVar(&a.quiet, "quiet", false, "no progress and no notes; warnings and errors stay")
	root.Flags().BoolVar(&version, "version", false, "same as `taxon version`")
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(a.flagErrors(func() error { return nil }))
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { writeHelp(a.stdout, a.style, cmd) })
	root.SetHelpCommand(newHelpCmd(a, root))
	for i, v := range verbs {
		cmd := v.build(a)
		cmd.Annotations = map[string]string{orderAnnotation: fmt.Sprintf("%03d", i)}
		finish(cmd)
		root.AddCommand(cmd)
	}
	addCompletion(root)
	return root
}

// finish sets the defaults of a verb and of its sub-verbs.
func finish(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	subs := cmd.Commands()
	if len(subs) > 0 && !cmd.Runnable() {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(_ *cobra.Command, args []string) error { return needsSubVerb(cmd, args) }
	}
	if cmd.Args == nil {
		cmd.Args = noArgs
	}
	for _, sub := range subs {
		finish(sub)
	}
}

// needsSubVerb returns the error for `taxon cluster` alone and for `taxon cluster wrong`.
func needsSubVerb(cmd *cobra.Command, args []string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	verb := verbPath(cmd)
	if len(args) == 0 {
		return option.Errorf("%s: say which: %s", verb, strings.Join(names, ", "))
	}
	if s := format.Nearest(args[0], names); s != "" {
		return option.Errorf("%s: unknown verb %q: did you mean `taxon %s %s`?", verb, args[0], verb, s)
	}
	return option.Errorf("%s: unknown verb %q: there are %s", verb, args[0], strings.Join(names, ", "))
}

// verbPath returns the command as the user enters it, without "taxon". It is "" for the root.
func verbPath(cmd *cobra.Command) string {
	_, verb, _ := strings.Cut(cmd.CommandPath(), " ")
	return verb
}

// addCompletion adds cobra's completion command with texts and errors in taxon's style.
func addCompletion(root *cobra.Command) {
	root.SetCompletionCommandGroupID(groupOther)
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Use = "completion SHELL"
		cmd.Short = "a script that teaches bash, zsh, fish or powershell to complete"
		cmd.Long = "Prints a script that teaches a shell to complete verbs and flags. `taxon completion SHELL --help` " +
			"says where to put it."
		cmd.Example = "source <(taxon completion bash)\ntaxon completion fish | source"
		cmd.Args = nil
		cmd.RunE = func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return option.Errorf("completion: name a shell: bash, zsh, fish or powershell")
			}
			return option.Errorf("completion: unknown shell %q: bash, zsh, fish and powershell are known", args[0])
		}
	}
}

// runRoot parses args and runs the verb that they name.
func runRoot(ctx context.Context, a *app, verbs []named, args []string) error {
	if _, err := mapper.ParseKernel(os.Getenv(program.KernelVariable)); err != nil {
		return option.Errorf("%s: %v", program.KernelVariable, err)
	}
	if args == nil {
		args = []string{} // nil would make cobra read os.Args
	}
	if at := slices.Index(args, "--"+tuneFlag); at > 0 && args[0] == "submit" { // a search, with the flags of one
		args = append([]string{"tune", "--submit"}, slices.Delete(slices.Clone(args), at, at+1)[1:]...)
	}
	// Only the verb that is run is built: building the flags of all verbs takes as long as the rest
	// of the start.
	if at := slices.IndexFunc(verbs, func(v named) bool { return len(args) > 0 && v.name == args[0] }); at >= 0 {
		verbs = verbs[at : at+1]
	}
	root := newRootCmd(a, verbs)
	root.SetArgs(args)
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		// Asked before the flags are parsed: a mistyped verb must not be reported
		// as an unknown flag of the root.
		cmd, _, err := root.Find(args)
		if err == nil && cmd == root && !builtIn(args[0]) {
			return unknownVerb(root, args[0])
		}
		if err == nil {
			a.speakFor(cmd)
			a.args = byTheirNames(cmd, args)
			root.SetArgs(a.args)
		}
	}
	return root.ExecuteContext(ctx)
}

// repeated lists the flags of cmd that take one value and occur several times in args. The last
// occurrence counts.
func repeated(cmd *cobra.Command, args []string) (names []string) {
	seen := map[string]int{}
	_ = eachFlag(cmd, args, func(flag *pflag.Flag, value string) { // cobra has parsed them already
		name := "--" + flag.Name
		if flag.Name == byNameFlag {
			option, _, _ := strings.Cut(value, "=")
			name, flag = "--"+byNameFlag+" "+option, lookup(cmd, option)
		}
		_, list := flag.Value.(pflag.SliceValue)
		if seen[flag.Name]++; seen[flag.Name] == 2 && !list && flag.Value.Type() != "bool" {
			names = append(names, name)
		}
	})
	return names
}

// eachFlag calls do with each flag of cmd and its value, in the order of args.
func eachFlag(cmd *cobra.Command, args []string, do func(flag *pflag.Flag, value string)) error {
	_, rest, err := cmd.Root().Find(args)
	if err != nil {
		return err
	}
	f := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	f.AddFlagSet(cmd.InheritedFlags())
	f.AddFlagSet(cmd.Flags())
	return f.ParseAll(rest, func(flag *pflag.Flag, value string) error {
		do(flag, value)
		return nil
	})
}

// builtIn reports whether verb is a command that cobra adds when it executes.
func builtIn(verb string) bool {
	return verb == "help" || verb == "completion" || strings.HasPrefix(verb, cobra.ShellCompRequestCmd)
}

// noArgs refuses positional arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	verb := verbPath(cmd)
	return option.Errorf("%s: unexpected argument %q: files are named by flags, see `taxon help %s`", verb, args[0], verb)
}

// checkRequired returns one error for all required flags that are not set.
func checkRequired(cmd *cobra.Command) error {
	var missing []string
	file := cmd.Flags().Changed("job")
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		_, required := f.Annotations[cobra.BashCompOneRequiredFlag]
		_, unlessFile := f.Annotations[fromJobFile]
		if !f.Changed && (required || unlessFile && !file) {
			missing = append(missing, "--"+f.Name)
		}
	})
	verb := verbPath(cmd)
	switch n := len(missing); n {
	case 0:
		return nil
	case 1:
		return option.Errorf("%s: flag %s is required: see `taxon help %s`", verb, missing[0], verb)
	default:
		return option.Errorf("%s: flags %s and %s are required: see `taxon help %s`", verb,
			strings.Join(missing[:n-1], ", "), missing[n-1], verb)
	}
}

// unknownVerb returns the error for a first word that names no verb.
func unknownVerb(root *cobra.Command, verb string) error {
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	if s := format.Nearest(verb, names); s != "" {
		return option.Errorf("unknown verb %q: did you mean `taxon %s`?", verb, s)
	}
	return option.Errorf("unknown verb %q: see `taxon help`", verb)
}

// flagError turns an error of pflag into one that names the verb and the flag, and says what to do.
func flagError(cmd *cobra.Command, err error) error {
	verb := verbPath(cmd)
	at, help := verb+": ", "taxon help "+verb
	if verb == "" {
		at, help = "", "taxon help"
	}
	var unknown *pflag.NotExistError
	var noValue *pflag.ValueRequiredError
	bad := badValue(err)
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			return option.Errorf("%sunknown flag -%s: flags have two dashes, see `%s`", at, name, help)
		}
		if isSetting(name) && cmd.Flags().Lookup(profileFlag) != nil {
			return option.Errorf("%sunknown flag --%s: it is a setting of --profile, see `%s`", at, name, help)
		}
		if s := format.Nearest(name, slices.Concat(flagNames(cmd), optionNames(cmd))); s != "" {
			return option.Errorf("%sunknown flag --%s: did you mean --%s?", at, name, s)
		}
		return option.Errorf("%sunknown flag --%s: see `%s`", at, name, help)
	case errors.As(err, &noValue):
		return option.Errorf("%sflag --%s needs a value", at, noValue.GetSpecifiedName())
	case bad != nil && bad.GetFlag().Name == byNameFlag:
		return option.Errorf("%s--%s %s: %s", at, byNameFlag, format.QuoteIfNeeded(bad.GetValue()), valueProblem(bad))
	case bad != nil:
		return option.Errorf("%s%s: %s", at, option.Value(bad.GetFlag().Name, format.QuoteIfNeeded(bad.GetValue())),
			valueProblem(bad))
	case errors.As(err, &syntax):
		return option.Errorf("%smalformed flag %s: see `%s`", at, syntax.GetSpecifiedFlag(), help)
	}
	return option.Errorf("%s%v: see `%s`", at, err, help)
}

// flagErrors reports all flags of a command line with invalid values, in the words of flagError,
// and the errors of validate about the others. It skips validate if the method is unknown, or if a
// file will name the method.
func (a *app) flagErrors(validate func() error) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		var first *pflag.InvalidValueError
		if !errors.As(err, &first) {
			return flagError(cmd, err)
		}
		all := []error{err}
		known, reached := first.GetFlag().Name != methodFlag, false
		err = eachFlag(cmd, a.args, func(flag *pflag.Flag, value string) {
			if !reached { // cobra has set those before it
				reached = flag == first.GetFlag() && value == first.GetValue()
			} else if err := cmd.Flags().Set(flag.Name, value); err != nil {
				all, known = append(all, err), known && flag.Name != methodFlag
			}
		})
		known = known && err == nil && !cmd.Flags().Changed("job")
		var errs []error
		for _, e := range append(all, err) {
			if e != nil && !(known && leaveUnfit(cmd, e)) {
				errs = append(errs, flagError(cmd, e))
			}
		}
		if known {
			errs = append(errs, validate())
		}
		return option.Join(errs...)
	}
}

// leaveUnfit reports whether an invalid value belongs to an option that the method lacks. The
// validation reports it, because no other value would be valid either.
func leaveUnfit(cmd *cobra.Command, err error) bool {
	bad := badValue(err)
	if bad == nil || cmd.Flags().Lookup(methodFlag) == nil {
		return false
	}
	v, ok := bad.GetFlag().Value.(*optionValue)
	if !ok || registry.Has(cmd.Flags().Lookup(methodFlag).Value.String(), v.option.Name) {
		return false
	}
	v.said[v.option.Name] = bad.GetValue()
	return true
}

// methodFlag is the flag that names the method, on which other flags depend.
const methodFlag = "method"

// valueProblem describes the error in a flag's value, without strconv's prefixes.
func valueProblem(e *pflag.InvalidValueError) string {
	var own *valueError
	if errors.As(e, &own) {
		return own.msg
	}
	switch t := e.GetFlag().Value.Type(); t {
	case "bool":
		return "must be true or false"
	case "int", "int64", "int32":
		return "must be a whole number"
	case "uint", "uint64", "uint32":
		return "must be a whole number, 0 or more"
	case "float64", "float32":
		return "must be a number"
	case "duration":
		return "must be a duration such as 90s, 10m or 2h"
	}
	return e.Unwrap().Error()
}

// flagNames returns the names of the flags.
func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
