package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/fs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// parseJobFile reads the part of YAML that a job file needs: a mapping of flags to plain or
// quoted values, lists of values for flags that may be repeated ("- value" lines or [a, b]), and
// comments. It reports all mistakes together. validate adds those of the flags' values.
func parseJobFile(cmd *cobra.Command, path string, data []byte, validate func() error) error {
	typed := map[string]bool{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { typed[f.Name] = f.Changed })
	key, given, errs, seen := "", map[string]int64{}, []error(nil), true
	bad := map[int]error{} // by index in errs: what flags said of values
	wrong := func(at int64, format string, args ...any) { errs = append(errs, fs.Inputf(path, at, format, args...)) }
	for number, line := range strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n") {
		at := int64(number) + 1
		if line = strings.TrimRight(line, " \t\r"); !utf8.ValidString(line) || strings.IndexByte(line, 0) >= 0 {
			return fs.Inputf(path, at, "is no UTF-8 text: is this a job file?")
		}
		body := strings.TrimLeft(line, " ")
		if body == "" || body[0] == '#' || number == 0 && line == "---" {
			continue
		}
		var values []string
		if item, ok := strings.CutPrefix(body, "- "); ok && key != "" {
			v, err := yamlScalar(item)
			if err != "" {
				return fs.Inputf(path, at, "%s", err)
			}
			values = []string{v}
		} else {
			name, rest, ok := strings.Cut(line, ":")
			if !ok || line != body || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
				return fs.Inputf(path, at, "lines must be `flag: value`, or `- value` below a flag")
			}
			key = strings.TrimSpace(name)
			var err string
			if values, err = yamlValues(strings.TrimSpace(rest)); err != "" {
				return fs.Inputf(path, at, "%s", err)
			}
			if first, twice := given[key]; twice {
				wrong(at, "%s stands in line %d already: leave one out", key, first)
			}
			given[key] = at
		}
		f := cmd.Flags().Lookup(key)
		switch {
		case (f == nil || key == "job" || !grouped(f)) && given[key] != at: // reported already
			continue
		case key == "job":
			wrong(at, "a job file can't name another: leave out job")
			continue
		case f == nil:
			meant := fmt.Sprintf("they are those of `taxon help %s`", cmd.Name())
			if s := format.Nearest(key, flagNames(cmd)); s != "" {
				meant = "did you mean " + s + "?"
			}
			wrong(at, "unknown flag %q: %s", key, meant)
			seen = false
			continue
		case !grouped(f):
			wrong(at, "%s is no option of a training: give it on the command line", key)
			continue
		case typed[key]:
			continue
		}
		for _, v := range values {
			if err := cmd.Flags().Set(key, v); err != nil {
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

// yamlValues reads what follows a key: nothing, a scalar, or a list in brackets.
func yamlValues(s string) (values []string, problem string) {
	if s == "" || s[0] == '#' {
		return nil, ""
	}
	if s[0] != '[' {
		v, problem := yamlScalar(s)
		return []string{v}, problem
	}
	inner, tail, ok := strings.Cut(s[1:], "]")
	if tail = strings.TrimSpace(tail); !ok || tail != "" && tail[0] != '#' {
		return nil, "a list must end with ]"
	}
	for _, item := range strings.Split(inner, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		v, problem := yamlScalar(item)
		if problem != "" {
			return nil, problem
		}
		values = append(values, v)
	}
	return values, ""
}

// yamlScalar reads a plain or quoted value and drops a comment after it.
func yamlScalar(s string) (value, problem string) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return "", ""
	case s[0] == '"':
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "a value in \" must end with \""
		}
		if tail := strings.TrimSpace(s[len(quoted):]); tail != "" && tail[0] != '#' {
			return "", "nothing may follow a quoted value"
		}
		value, err = strconv.Unquote(quoted)
		if err != nil {
			return "", "malformed value in \""
		}
		if !utf8.ValidString(value) {
			return "", "a value in \" must be Unicode text"
		}
		return value, ""
	case s[0] == '\'':
		var b strings.Builder
		for i := 1; i < len(s); i++ {
			if s[i] != '\'' {
				b.WriteByte(s[i])
				continue
			}
			if i+1 < len(s) && s[i+1] == '\'' {
				b.WriteByte('\'')
				i++
				continue
			}
			if tail := strings.TrimSpace(s[i+1:]); tail != "" && tail[0] != '#' {
				return "", "nothing may follow a quoted value"
			}
			return b.String(), ""
		}
		return "", "a value in ' must end with '"
	case strings.ContainsRune("{&*!|>%@`", rune(s[0])):
		return "", "only plain values, quoted values and lists are read: quote it"
	}
	if i := strings.Index(s, " #"); i >= 0 {
		s = strings.TrimSpace(s[:i])
	}
	return s, ""
}
