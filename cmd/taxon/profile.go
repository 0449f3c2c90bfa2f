package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster/secure"
	"taxon/internal/fs"
	"taxon/internal/ui/option"
)

// envProfile is the environment variable that replaces --profile of the verbs that call a cluster.
const envProfile = "TAXON_PROFILE"

// profileFlag names the flag.
const profileFlag = "profile"

// readProfile applies the settings of a profile, which is a file of lines `name: value`. They say
// how to reach a cluster, and with which certificates and tokens. Paths in the file are relative to
// its folder. An empty path means that there is no profile. A coordinator that is already set is
// not changed, and a nil coordinator is ignored.
func readProfile(ctx context.Context, path string, coordinator *string, o *secure.Options) error {
	if path == "" {
		return nil
	}
	data, err := fs.ReadBounded(ctx, path, maxJobFile)
	if err != nil {
		return err
	}
	lines, err := parseSettings(path, data)
	if err != nil {
		return err
	}
	f := pflag.NewFlagSet(profileFlag, pflag.ContinueOnError)
	address := f.String("coordinator", "", "")
	o.AddFlags(f)
	var names []string
	f.VisitAll(func(s *pflag.Flag) { names = append(names, s.Name) })
	for _, l := range lines {
		s := f.Lookup(l.name)
		if s == nil || len(l.values) == 0 || l.values[0] == "" {
			return fs.Inputf(path, l.line, "want lines `name: value`, with %s", strings.Join(names, ", "))
		}
		what, _ := pflag.UnquoteUsage(s)
		for _, value := range l.values {
			if pathNames[what] != "" {
				if value, err = fs.Canonical(besideFile(path, value)); err != nil {
					return fs.Inputf(path, l.line, "%s: %w", l.name, err)
				}
			}
			if err := s.Value.Set(value); err != nil {
				return fs.Inputf(path, l.line, "%s: %s: must be true or false", l.name, value)
			}
		}
	}
	if coordinator != nil && *coordinator == "" {
		*coordinator = *address
	}
	return nil
}

// besideFile resolves a path that a file names. A relative path is relative to the file's folder,
// unless the folder is in HDFS.
func besideFile(file, path string) string {
	if fs.IsAbs(path) || fs.Shared(file) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// isSetting reports whether a name is the name of a security setting. A profile may contain these
// settings.
func isSetting(name string) bool {
	f := pflag.NewFlagSet(profileFlag, pflag.ContinueOnError)
	new(secure.Options).AddFlags(f)
	return f.Lookup(name) != nil
}

// speakFor makes messages name options as the user gives them to cmd.
func (a *app) speakFor(cmd *cobra.Command) {
	if a.marked {
		return
	}
	profile := cmd.Flags().Lookup(profileFlag) != nil
	a.ui.Options = func(text string) string {
		return option.Flags(option.Replace(text, func(name, value string) (string, bool) {
			switch {
			case cmd.Flags().Lookup(name) != nil:
				return strings.TrimSuffix("--"+name+" "+value, " "), true
			case profile && isSetting(name) && value != "":
				return name + ": " + value + " in --" + profileFlag, true
			case profile && isSetting(name):
				return name + " in --" + profileFlag, true
			}
			return "", false
		}))
	}
}

// profileUsage is the help on --profile of the verbs that call a cluster.
const profileUsage = "certificates and tokens of the cluster: a `FILE` of lines `name: value` (default " + envProfile +
	")"

// clusterProfile defines --profile of the verbs that call a cluster.
func clusterProfile(f *pflag.FlagSet, p *string) {
	f.StringVar(p, profileFlag, os.Getenv(envProfile), profileUsage)
	f.Lookup(profileFlag).DefValue = "" // the environment's value belongs in no help text
}
