package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"taxon/internal/fs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// parseJobFile sets the flags that a job file contains. The file is a YAML mapping of flags to
// values. A flag that may be repeated can have a list of values. parseJobFile returns one error for
// all mistakes, to which validate adds the mistakes in the flags' values.
func parseJobFile(cmd *cobra.Command, path string, data []byte, validate func() error) error {
	settings, err := parseSettings(path, data)
	if err != nil {
		return err
	}
	typed := map[string]bool{}
	visitAll(cmd, func(f *pflag.Flag) { typed[f.Name] = f.Changed })
	given, errs, seen := map[string]int64{}, []error(nil), true
	bad := map[int]error{} // by index in errs: errors about values
	wrong := func(at int64, format string, args ...any) { errs = append(errs, fs.Inputf(path, at, format, args...)) }
	for _, s := range settings {
		key, at := s.name, s.line
		if first, twice := given[key]; twice {
			wrong(at, "%s stands in line %d already: leave one out", key, first)
		}
		given[key] = at
		f := lookup(cmd, key)
		switch {
		case key == "job":
			wrong(at, "a job file can't name another: leave out job")
			continue
		case f == nil || key == byNameFlag:
			meant := fmt.Sprintf("they are those of `taxon help %s`", cmd.Name())
			if s := format.Nearest(key, append(flagNames(cmd), optionNames(cmd)...)); s != "" {
				meant = "did you mean " + s + "?"
			}
			wrong(at, "unknown flag %q: %s", key, meant)
			seen = false
			continue
		case !grouped(f):
			wrong(at, "%s is not an option of a training: give it on the command line", key)
			continue
		case typed[key]:
			continue
		}
		for _, v := range s.values {
			if err := set(cmd, key, v); err != nil {
				bad[len(errs)] = err
				wrong(at, "%w", flagError(cmd, err))
				seen = seen && key != methodFlag
			}
		}
	}
	if errs != nil && seen {
		for i, err := range bad {
			if leaveUnfit(cmd, err) {
				errs[i] = nil
			}
		}
		errs = append(errs, validate())
	}
	if errs != nil {
		return option.Join(errs...)
	}
	return canonicalPaths(cmd)
}

// setting is an entry of a YAML mapping from names to a value or a list of values.
type setting struct {
	name string
	line int64
	// values are in the order of the file. They are empty without a value and for an empty list.
	values []string
}

// parseSettings parses a mapping of names to plain or quoted values, or to lists of them.
func parseSettings(path string, data []byte) ([]setting, error) {
	var documents []yaml.Node
	if err := yaml.Load(data, &documents, yaml.WithAllDocuments()); err != nil {
		var load *yaml.LoadError
		if errors.As(err, &load) {
			return nil, fs.Inputf(path, int64(load.Mark.Line), "no YAML: %s", load.Message)
		}
		return nil, fs.Inputf(path, 0, "no YAML: %w", err)
	}
	if len(documents) == 0 {
		return nil, nil
	}
	root := documents[0].Content[0]
	if root.Kind != yaml.MappingNode || len(documents) > 1 {
		return nil, fs.Inputf(path, int64(root.Line), "lines must be `flag: value`, or `- value` below a flag")
	}
	var out []setting
	for i := 0; i < len(root.Content); i += 2 {
		name, value := root.Content[i], root.Content[i+1]
		s := setting{name: name.Value, line: int64(name.Line)}
		items := []*yaml.Node{value}
		switch {
		case value.Kind == yaml.SequenceNode:
			items = value.Content
		case value.Tag == "!!null" && value.Value == "":
			items = nil
		}
		for _, item := range items {
			if item.Kind != yaml.ScalarNode || name.Kind != yaml.ScalarNode {
				return nil, fs.Inputf(path, int64(item.Line),
					"only plain values, quoted values and lists of them are read: quote it")
			}
			s.values = append(s.values, item.Value)
		}
		out = append(out, s)
	}
	return out, nil
}
