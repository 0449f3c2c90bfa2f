package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method/registry"
	"taxon/internal/ui/console"
	"taxon/internal/ui/option"
)

// usual lists the flags that the help of verbs with many flags shows, in addition to the flags that
// all verbs have. For train it shows twenty in all. --all shows the others too.
var usual = map[string][]string{"train": usualOfTraining, "submit": slices.Concat(usualOfTraining,
	[]string{"coordinator", "wait", "job", "name"}),
	"info": {"text", "zero-based", "instance-weights", "hierarchy", "method", "threads", "plan", "data", "like", "scale",
		"workers", "slots", "stores", "cores", "memory", byNameFlag}}

var usualOfTraining = []string{"data", "text", "test", "hierarchy", "text-column", "feature-columns", "label-column",
	"path-separator", "out", "force",
	"method", "C", "gap", "max-sweeps", "max-time", "threads", "memory", byNameFlag}

func newHelpCmd(a *app, root *cobra.Command) *cobra.Command {
	all, method := false, ""
	cmd := &cobra.Command{
		Use:     "help [VERB]",
		GroupID: groupOther,
		Short:   "what a verb does, its flags by group, two examples",
		Long:    "Shows what a verb does, its flags by group and two examples. Without a verb it lists them all.",
		Example: "taxon help ingest\ntaxon help train --method hblr-m1",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, c := range root.Commands() {
				if len(args) == 0 && c.IsAvailableCommand() {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			switch {
			case err != nil || len(rest) == 0 || cmd == root:
			case cmd.HasSubCommands():
				return option.Errorf("help: %s has no verb %q: see `taxon help %s`", verbPath(cmd), rest[0], verbPath(cmd))
			default:
				return option.Errorf("help: shows one verb at a time: `taxon help %s`", verbPath(cmd))
			}
			if len(args) > 0 && (err != nil || cmd == root || len(rest) > 0) {
				return unknownVerb(root, args[len(args)-max(1, len(rest))])
			}
			cmd.InitDefaultHelpFlag()
			if all {
				writeHelpOf(a.stdout, a.style, cmd, func(*pflag.Flag) bool { return true })
				return nil
			}
			if method != "" {
				if _, err := registry.Lookup(method); err != nil {
					return option.Errorf("help: %w", err)
				}
				if cmd.Flags().Lookup(methodFlag) == nil {
					return option.Errorf("help: --method: `taxon %s` has none: leave it out", verbPath(cmd))
				}
				writeHelpOf(a.stdout, a.style, cmd, func(f *pflag.Flag) bool {
					if registry.Option(f.Name) != nil {
						return registry.Has(method, f.Name)
					}
					return !grouped(f) || slices.Contains(usual[cmd.Name()], f.Name)
				})
				return nil
			}
			return cmd.Help()
		},
	}
	flagGroup(cmd, "What is shown", func(f *pflag.FlagSet) {
		f.BoolVar(&all, "all", false, "all flags of a verb, where it has more than most people use")
		f.StringVar(&method, "method", "", "the options of a `METHOD`, and what most people use beside them")
	})
	return cmd
}

// writeHelp prints the help of one command, or the list of verbs for the root.
func writeHelp(w io.Writer, s console.Style, cmd *cobra.Command) {
	few, trimmed := usual[cmd.Name()]
	writeHelpOf(w, s, cmd, func(f *pflag.Flag) bool { return !trimmed || slices.Contains(few, f.Name) || !grouped(f) })
	if trimmed {
		n := 0
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if grouped(f) && !f.Hidden && !slices.Contains(few, f.Name) {
				n++
			}
		})
		fmt.Fprintf(w, "\n`taxon help %s --all` shows %d more flags, and %d options for --x; `taxon help %[1]s --method "+
			"NAME` those of a method.\n", cmd.Name(), n, len(optionNames(cmd)))
	}
}

// writeHelpOf is writeHelp with the flags for which show returns true.
func writeHelpOf(w io.Writer, s console.Style, cmd *cobra.Command, show func(*pflag.Flag) bool) {
	if !cmd.HasParent() {
		writeRootHelp(w, s, cmd)
		return
	}
	about := cmp.Or(cmd.Long, cmd.Short)
	if !strings.Contains(about, "\n") {
		about = console.Fold(about, console.Width, 0)
	}
	fmt.Fprintf(w, "%s\n\n", strings.TrimSpace(about))
	fmt.Fprintf(w, "%s\n  %s\n", s.Bold("Usage"), cmd.UseLine())
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n%s\n", s.Bold("Verbs"))
		writeVerbs(w, cmd.Commands(), func(*cobra.Command) bool { return true })
	}
	if cmd.Flags().Lookup("method") != nil {
		fmt.Fprintf(w, "\n%s\n", s.Bold("Methods"))
		for _, m := range registry.All() {
			fmt.Fprintf(w, "  %-13s%s\n", m.Name(), console.Fold(m.About(), console.Width, 15))
		}
	}
	for _, title := range flagGroups(cmd) {
		var b bytes.Buffer
		if writeFlags(&b, cmd, title, show); b.Len() > 0 {
			fmt.Fprintf(w, "\n%s\n%s", s.Bold(title), b.Bytes())
		}
	}
	if cmd.Example != "" {
		fmt.Fprintf(w, "\n%s\n", s.Bold("Examples"))
		for _, line := range strings.Split(strings.TrimSpace(cmd.Example), "\n") {
			fmt.Fprintf(w, "  %s\n", strings.TrimSpace(line))
		}
	}
}

func writeRootHelp(w io.Writer, s console.Style, root *cobra.Command) {
	fmt.Fprintf(w, "%s\n\n%s\n  taxon VERB [flags]\n", console.Fold("taxon: "+root.Short, console.Width, 0),
		s.Bold("Usage"))
	for _, g := range root.Groups() {
		in := func(c *cobra.Command) bool { return c.GroupID == g.ID }
		if !slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return shown(c) && in(c) }) {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", s.Bold(g.Title))
		writeVerbs(w, root.Commands(), in)
	}
	fmt.Fprintf(w, "\n%s\n", s.Bold(otherFlags))
	writeFlags(w, root, otherFlags, func(*pflag.Flag) bool { return true })
	fmt.Fprintf(w, "\n`taxon help VERB` says more.\n")
}

// shown reports whether the help lists c. cobra hides the help command itself.
func shown(c *cobra.Command) bool { return c.IsAvailableCommand() || c.Name() == "help" }

const orderAnnotation = "taxon_order"

// order returns a key by which the verbs are sorted in the order of verbs(). The verbs of cobra
// follow.
func order(c *cobra.Command) string {
	if o, ok := c.Annotations[orderAnnotation]; ok {
		return o
	}
	return "~"
}

func writeVerbs(w io.Writer, cmds []*cobra.Command, in func(*cobra.Command) bool) {
	cmds = slices.Clone(cmds) // cobra's order is alphabetical
	slices.SortStableFunc(cmds, func(a, b *cobra.Command) int { return strings.Compare(order(a), order(b)) })
	for _, c := range cmds {
		if shown(c) && in(c) {
			fmt.Fprintf(w, "  %-13s%s\n", c.Name(), console.Fold(c.Short, console.Width, 15))
		}
	}
}

const otherFlags = "General"

// flagGroups lists the titles of cmd's flag groups in the order of definition. Flags without a
// group, such as the global ones, come last.
func flagGroups(cmd *cobra.Command) []string {
	var titles []string
	seen := map[string]bool{otherFlags: true}
	add := func(f *pflag.Flag) {
		if t := groupOf(f); !seen[t] {
			seen[t] = true
			titles = append(titles, t)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	hasOptionsByName(cmd).VisitAll(add)
	if at := slices.Index(titles, groupByName); at >= 0 {
		titles = append(slices.Delete(titles, at, at+1), groupByName)
	}
	return append(titles, otherFlags)
}

func groupOf(f *pflag.Flag) string {
	if t := f.Annotations[groupAnnotation]; len(t) == 1 {
		return t[0]
	}
	return otherFlags
}

// writeFlags prints the flags of one group. Each has its name, the name of its value, and its
// usage, which is wrapped.
func writeFlags(w io.Writer, cmd *cobra.Command, title string, show func(*pflag.Flag) bool) {
	const column = 24
	byName := hasOptionsByName(cmd)
	visit := func(f *pflag.Flag) {
		if f.Hidden || groupOf(f) != title || !show(f) {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		if names := strings.Join(choicesOf(f), "|"); strings.Contains(names, "|") &&
			len(names)+len(f.Name)+5 <= console.Width {
			value = names
		}
		head, sign := "  --"+f.Name, " "
		if byName.Lookup(f.Name) != nil {
			head, sign = "  --x "+f.Name, "="
		}
		if value != "" && f.Value.Type() != "bool" {
			head += sign + value
		}
		if _, required := f.Annotations[cobra.BashCompOneRequiredFlag]; required {
			usage += " (required)"
		} else if d := f.DefValue; d != "" && d != "0" && d != "0s" && !strings.Contains(usage, "(default") && d != "false" &&
			d != "[]" {
			usage += " (default " + d + ")"
		}
		if len(head) > column-2 {
			fmt.Fprintf(w, "%s\n%*s%s\n", head, column, "", console.Fold(usage, console.Width, column))
			return
		}
		fmt.Fprintf(w, "%-*s%s\n", column, head, console.Fold(usage, console.Width, column))
	}
	cmd.LocalFlags().VisitAll(visit)
	byName.VisitAll(visit)
	cmd.InheritedFlags().VisitAll(visit)
}
