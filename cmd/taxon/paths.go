package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/fs"
	"taxon/internal/ui/option"
)

// pathNames maps each name that help texts use for a path, such as DIR, to a word for the kind of
// path.
var pathNames = map[string]string{"DIR": "folder", "FILE": "file", "FOLDER": "folder", "PATH": "path", "MODEL": "model",
	"CACHE": "folder"}

// localOnly reports whether a flag's folder must be on this machine: processes work in it, or its
// files are for programs that do not support HDFS.
func localOnly(verb, flag string) bool {
	switch flag {
	case "dir":
		return !strings.HasPrefix(verb, "yarn")
	case "keep", "temp":
		return true
	}
	return false
}

// canonicalPaths replaces the paths among a verb's flags by their canonical forms (fs.Canonical).
// It returns an error for unknown file systems and for empty paths. Without this error, an unset
// variable in a script would silently omit a file.
func canonicalPaths(cmd *cobra.Command) error {
	var errs []error
	visitAll(cmd, func(f *pflag.Flag) {
		name, _ := pflag.UnquoteUsage(f)
		what := pathNames[name]
		if what == "" && f.Name != "coordinator" {
			return
		}
		list, many := f.Value.(pflag.SliceValue)
		values := []string{f.Value.String()}
		if many {
			values = list.GetSlice()
		} else if f.Value.Type() != "string" {
			return
		}
		changed := false
		for i, v := range values {
			path, e := fs.Canonical(v)
			switch {
			case v == "" && f.Changed && what != "":
				errs = append(errs, option.Errorf("%s: %s: name a %s", verbPath(cmd), option.Value(f.Name, `""`), what))
				return
			case e != nil:
				errs = append(errs, option.Errorf("%s: ‹%s› %w", verbPath(cmd), f.Name, e))
				return
			case fs.Shared(path) && localOnly(verbPath(cmd), f.Name):
				errs = append(errs, option.Errorf("%s: --%s %s: must be a folder of this machine", verbPath(cmd), f.Name, path))
				return
			}
			changed = changed || path != v
			values[i] = path
		}
		switch {
		case !changed:
		case many:
			errs = append(errs, list.Replace(values))
		default:
			errs = append(errs, f.Value.Set(values[0]))
		}
	})
	return option.Join(errs...)
}

// oneStdin returns an error for a command line that names standard input twice. flags lists the
// flags of the verb that may name it.
func oneStdin(verb, flags string, paths ...string) error {
	n := 0
	for _, p := range paths {
		if p == fs.Stdin {
			n++
		}
	}
	if n > 1 {
		return option.Errorf("%s: standard input can be read but once: name files for all but one of %s", verb, flags)
	}
	return nil
}
