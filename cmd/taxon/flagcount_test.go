package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster/secure"
)

// mostFlags is how many flags a verb may have, hidden ones and those of all verbs among them. The numbers only
// ever fall: an option that few users need is given by --x (optionGroup, and methods' options that are not
// Common), settings that are the same for each call by a file.
var mostFlags = map[string]int{
	"train": 45, "submit": 43, "tune": 41, "eval": 28, "info": 24, "predict": 22, "worker": 21, "serve": 22,
	"coordinator": 27, "store": 20, "ingest": 20, "export": 19, "vectors": 16, "generate": 19, "check": 15, "yarn up": 31,
	"cluster up": 15, "tree": 13, "explain": 12,
}

// mostFlagsElsewhere bounds the flags of verbs that have no number of their own.
const mostFlagsElsewhere = 11

// TestFlagsOfVerbs: no verb gets more flags than it has.
func TestFlagsOfVerbs(t *testing.T) {
	seen := map[string]bool{}
	eachVerb(t, func(name string, cmd *cobra.Command) {
		n := 0
		cmd.LocalFlags().VisitAll(func(*pflag.Flag) { n++ })
		cmd.InheritedFlags().VisitAll(func(*pflag.Flag) { n++ })
		most, own := mostFlags[name]
		if seen[name] = own; !own {
			most = mostFlagsElsewhere
		}
		if n > most {
			t.Errorf("%s has %d flags, at most %d: give what few users need by --x, or in a file; the number only falls",
				name, n, most)
		} else if own && n < most {
			t.Errorf("%s has %d flags: lower its number in flagcount_test.go from %d", name, n, most)
		}
	})
	for name := range mostFlags {
		if !seen[name] {
			t.Errorf("there is no verb %s: take its number out", name)
		}
	}
}

// TestOptionsByName: what has no flag has none in any verb whose texts may name it, so that a text can say how to
// give it, and no verb has a flag and an option of one name. generate has flags of its own by two of the names.
func TestOptionsByName(t *testing.T) {
	profile := pflag.NewFlagSet("profile", pflag.ContinueOnError)
	new(secure.Options).AddFlags(profile)
	eachVerb(t, func(name string, cmd *cobra.Command) {
		hasOptionsByName(cmd).VisitAll(func(f *pflag.Flag) {
			if cmd.Flags().Lookup(f.Name) != nil {
				t.Errorf("%s has both --%s and --x %s", name, f.Name, f.Name)
			}
			if !hasNoFlag(f.Name) {
				t.Errorf("%s: texts would name %s as a flag: it is missing from declaredByName", name, f.Name)
			}
		})
		if slices.Contains([]string{"train", "submit", "tune", "ingest", "predict", "eval", "tree", "check", "report",
			"export", "explain", "vectors", "info"}, name) {
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if hasNoFlag(f.Name) && f.Name != "stores" {
					t.Errorf("%s has a flag --%s, which others take by --x", name, f.Name)
				}
			})
		}
		if cmd.Flags().Lookup(profileFlag) != nil && strings.Contains(cmd.UsageString(), "tls-ca FILE") {
			t.Errorf("%s has flags of its profile", name)
		}
	})
}

// eachVerb calls do with each verb that runs.
func eachVerb(t *testing.T, do func(name string, cmd *cobra.Command)) {
	t.Helper()
	root := newRootCmd(&app{}, verbs())
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			sub.InitDefaultHelpFlag()
			if sub.HasSubCommands() {
				visit(sub)
			} else {
				do(verbPath(sub), sub)
			}
		}
	}
	visit(root)
}

// TestOptionsByTheirNames checks that --NAME VALUE stands for --x NAME=VALUE.
func TestOptionsByTheirNames(t *testing.T) {
	eachVerb(t, func(name string, cmd *cobra.Command) {
		if name != "train" {
			return
		}
		for given, want := range map[string]string{
			"--schedule parity --gap 1":       "--x schedule=parity --gap 1",
			"--out m --anchor=0.5 --dag":      "--out m --x anchor=0.5 --x dag",
			"--x dag=graph -- --schedule two": "--x dag=graph -- --schedule two",
		} {
			if got := strings.Join(byTheirNames(cmd, strings.Fields(given)), " "); got != want {
				t.Errorf("%s is %s, want %s", given, got, want)
			}
		}
	})
}
