package main

import (
	"strings"
	"testing"
)

// TestIngestStrings: sequences become features that a training reads and a prediction maps; flags
// that mean nothing without them are refused.
func TestIngestStrings(t *testing.T) {
	var b strings.Builder
	for range 12 {
		b.WriteString("a1\tMKVLLAGMKV\na2\tMKVWWAGWWV\nb\tGGHHGGHHPP\n")
	}
	vars := map[string]string{"D": writeText(t, "seq", b.String()), "T": writeText(t, "tree", "r a\na a1\na a2\nr b\n"),
		"O": t.TempDir()}
	for _, flags := range []string{"--x length=3", "--x kernel=gappy --x length=2 --x gaps=2 --x decay=0.4 --x " +
		"alphabet=letters"} {
		for _, line := range []string{"ingest --data $D --strings " + flags + " --out $O/set --force --quiet",
			"train --data $O/set --hierarchy $T --method h-svm --out $O/m --force --quiet"} {
			if code, _, stderr := runTaxon(t, "", line, vars); code != exitDone {
				t.Fatalf("%s: exit status %d: %s", line, code, stderr)
			}
		}
		if _, stdout, stderr := runTaxon(t, "", "predict --model $O/m --data $O/set --out - --quiet",
			vars); stdout != strings.Repeat("a1\na2\nb\n", 12) {
			t.Errorf("%s: predicted %s%s", flags, stdout, stderr)
		}
	}
	// not the data of the training, which are known by their contents
	other := strings.ReplaceAll(b.String(), "MKV", "MKL")
	vars["N"] = writeText(t, "new", other)
	for _, line := range []string{"ingest --strings --data $N --x length=3 --out $O/other --quiet",
		"ingest --strings --data $N --x kernel=gappy --x length=2 --x gaps=2 --x decay=0.4 --x alphabet=letters " +
			"--out $O/same --quiet",
		"predict --model $O/m --data $O/same --out $O/labels"} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != exitDone {
			t.Fatalf("%s: exit status %d: %s", line, code, stderr)
		}
	}
	for line, want := range map[string]string{
		"predict --model $O/m --data $O/other": "has other features than",
		"predict --model $O/m --data $D": "was trained on sequences: give them as " +
			"`taxon ingest --strings --x kernel=gappy --x length=2 --x gaps=2 --x decay=0.4 --x alphabet=letters` makes them",
		"ingest --strings --data $D --x gaps=2 --out $O/x":                             "--x gaps is for --x kernel=gappy",
		"ingest --data $D --x length=2 --out $O/x":                                     "--x length is for --strings",
		"ingest --data $D --strings --x length=9 --out $O/x":                           "--x length=9: must be from 1 to 4",
		"ingest --data $D --strings --text --out $O/x":                                 "exclude each other",
		"ingest --data $T --strings --out $O/x":                                        "no tab in the line",
		"ingest --data $D --strings --x kernel=gappy --x decay=3 --out $O/x":           "--x decay=3",
		"ingest --data $D --strings --x kernel=gappy --x length=4 --x gaps=60 --out x": "--x gaps=60",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d: %s, want %q", line, code, stderr, want)
		}
	}
}
