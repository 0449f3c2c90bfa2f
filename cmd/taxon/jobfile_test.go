package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// jobFlags is a command with flags of each kind.
func jobFlags() (*cobra.Command, *[]string, *float64, *bool) {
	cmd := &cobra.Command{Use: "submit"}
	data, c, text := &[]string{}, new(float64), new(bool)
	flagGroup(cmd, "All", func(f *pflag.FlagSet) {
		f.StringArrayVar(data, "data", nil, "")
		floatFlag(f, c, "C", 1, "", above0)
		f.BoolVar(text, "text", false, "")
		f.String("job", "", "")
	})
	cmd.Flags().Bool("quiet", false, "") // of all verbs
	cmd.InitDefaultHelpFlag()
	return cmd, data, c, text
}

func noMore() error { return nil }

func TestJobFile(t *testing.T) {
	for file, want := range map[string]string{
		"data: a.svm\nC: 0.3\ntext: true\n":                       "a.svm|0.3|true",
		"---\n# all\ndata: [a.svm, 'b c', \"d\\t\"]  # three\r\n": "a.svm,b c,d\t|1|false",
		"data:\n  - a.svm\n  - b.svm # two\n\nC: \"0.5\"":         "a.svm,b.svm|0.5|false",
		"\ufeffC:   2":      "|2|false",
		"data: it''s":       "it''s|1|false",
		"data: 'it''s'":     "it's|1|false",
		"datas: x":          "did you mean data?",
		"job: x":            "can't name another",
		"help: true":        "job.yaml:1: help is not an option of a training: give it on the command line",
		"quiet:\n- x\n":     "job.yaml:1: quiet is not an option",
		"C: 1\nC: 2":        "job.yaml:2: C stands in line 1 already",
		"C: -1":             "must be above 0",
		"C: {a: b}":         "quote it",
		"data: [a":          "no YAML",
		"C: 1\ndata: \"a":   "job.yaml:2: no YAML",
		"C: 1\n---\nC: 2":   "lines must be",
		"data: \xff":        "no YAML",
		"data: &x a\nC: *x": "job.yaml:2: only plain values",
		"data: >\n  a\n  b": "a b|1|false",
		"text:\nC: 3":       "|3|false",
		"":                  "|1|false",
		"# nothing\n":       "|1|false",
		"just text":         "lines must be",
		"  nested: 1":       "unknown flag",
		"C:1":               "lines must be",
	} {
		cmd, data, c, text := jobFlags()
		err := parseJobFile(cmd, "job.yaml", []byte(file), noMore)
		got := strings.Join(*data, ",") + "|" + (&floatValue{p: c}).String() + "|" + map[bool]string{true: "true",
			false: "false"}[*text]
		if err != nil {
			got = err.Error()
			if !strings.HasPrefix(got, "job.yaml:") {
				t.Errorf("%q: %s: names no line", file, got)
			}
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
	cmd, _, _, _ := jobFlags()
	err := parseJobFile(cmd, "job.yaml", []byte("datas: x\nC: -1\nfoo:\n- a\ntext: maybe\n"), noMore)
	var all *option.Error
	if !errors.As(err, &all) || len(all.Lines) != 4 || !strings.HasPrefix(all.Lines[1], "job.yaml:2: ‹C=-1›") {
		t.Errorf("all that is wrong: %v", err)
	}
	cmd, data, c, _ := jobFlags()
	if err := cmd.ParseFlags([]string{"--C", "7", "--data", "mine"}); err != nil {
		t.Fatal(err)
	}
	if err := parseJobFile(cmd, "job.yaml", []byte("C: 3\ndata: theirs\n"), noMore); err != nil || *c != 7 ||
		!slices.Equal(*data, []string{"mine"}) {
		t.Errorf("the command line counts more: C %v, data %v, %v", *c, *data, err)
	}
}

func FuzzJobFile(f *testing.F) {
	f.Add([]byte("data: [a, 'b', \"c\"]\nC: 1 # x\n- y\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cmd, _, _, _ := jobFlags()
		if err := parseJobFile(cmd, "job.yaml", data, noMore); err != nil && strings.Contains(format.OneLine(err.Error()),
			"\n") {
			t.Errorf("an error of several lines: %q", err)
		}
	})
}
