package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// strangeRows are seven rows in eleven lines: vectors without label, without features, without
// either, with features that no model here knows.
const strangeRows = "dog 2:1\n \n\n\t\n# none\n999:1\ncat\n\r\n  # none\n 1:0 # x\ncar 7:1\n"

// textModel trains on a few lines of text.
func textModel(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "text")
	vars := map[string]string{"OUT": out, "DATA": writeText(t, "train.txt", "games\tchess game\ngames\tgame of "+
		"chess\nnet\tirc client\nnet\tclient for irc\nnet\tchat\n#b\tchess client\n"),
		"TREE": writeText(t, "tree.txt", "top games\ntop net\nnet \"#b\"\n")}
	if code, _, stderr := runTaxon(t, "", "train --data $DATA --text --hierarchy $TREE --out $OUT --gap 0.1",
		vars); code != exitDone || strings.Contains(stderr, "not in the structure") {
		t.Fatalf("exit %d, %q", code, stderr)
	}
	return out
}

// A line out for every row in, in order: a row without features gets what the model says to
// nothing, and the count of what is no row is told, quiet or not.
func TestPredictLosesNoRow(t *testing.T) {
	vectors, text := animals(t, 10), textModel(t)
	xmc := "4 8 3\n0 1:2\n\n1 6:1\n\n"
	for _, c := range []struct {
		flags, in, same string // rows that are answered alike, by their features alone
		empty           string
	}{
		{"--model " + vectors, strangeRows, "2:1|4:0|4:0|4:0|4:0|4:0|7:1", "2 empty lines skipped"},
		{"--model " + vectors, xmc, "2:2|4:0|7:1|4:0", ""},
		{"--text --model " + text, "\tchess game\n\t\n\n \n\tunheard of\n\tirc client\n#b\tchess client\n",
			"\tchess game|\t!|\t!|\t!|\tirc client|\tchess client", "1 empty line skipped"},
	} {
		var want []string
		for row := range strings.SplitSeq(c.same, "|") {
			_, line, _ := runTaxon(t, row+"\n", "predict --data - --scores --quiet "+c.flags, nil)
			want = append(want, line)
		}
		file := map[string]string{"IN": writeText(t, "in", c.in)}
		for _, from := range []string{"-", "$IN", "$IN --threads 3 --out -"} {
			code, stdout, stderr := runTaxon(t, c.in, "predict --scores --quiet "+c.flags+" --data "+from, file)
			if got := slices.Collect(strings.Lines(stdout)); code != exitDone || !slices.Equal(got, want) {
				t.Errorf("%q from %s: exit %d, %q, want %q", c.in, from, code, got, want)
			}
			if strings.Contains(stderr, "skipped") != (c.empty != "") || !strings.Contains(stderr, c.empty) {
				t.Errorf("%q from %s: %q, want %q", c.in, from, stderr, c.empty)
			}
		}
	}
}

// All verbs mean the same by a row: predictions stand beside the data that they are of, and an
// ingested set has as many instances.
func TestVerbsCountTheSameRows(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"S": animals(t, 10), "IN": writeText(t, "in.svm", strangeRows), "P": filepath.Join(dir, "p"),
		"SET": filepath.Join(dir, "set"), "Q": filepath.Join(dir, "q")}
	type figures struct {
		Instances   int     `json:"instances"`
		MicroF1     float64 `json:"micro_f1"`
		ZeroOneLoss float64 `json:"zero_one_loss"`
	}
	run := func(line string) (f figures) {
		code, stdout, stderr := runTaxon(t, "", line, vars)
		if code != exitDone {
			t.Fatalf("%s: %s", line, stderr)
		}
		if strings.HasPrefix(line, "eval") {
			if err := json.Unmarshal([]byte(stdout), &f); err != nil {
				t.Fatal(err)
			}
		}
		return f
	}
	run("predict --model $S --data $IN --out $P")
	run("ingest --data $IN --out $SET")
	run("predict --model $S --data $SET --out $Q")
	want := run("eval --model $S --data $IN --json")
	if want.Instances != 7 || want.MicroF1 == 0 {
		t.Errorf("%+v", want)
	}
	for _, line := range []string{"eval --pred $P --data $IN", "eval --pred $Q --rank $P --data $IN",
		"eval --pred $P --data $SET", "eval --model $S --data $SET"} {
		if got := run(line + " --json"); got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
	for line, wants := range map[string]string{
		"info $IN --json": `"instances": 7`, "info $SET --json": `"instances": 7`,
		"explain --model $S --data $IN --row 7 --json": `"known_features": 1`,
		"explain --model $S --data $IN --row 6 --json": `"known_features": 0`,
	} {
		if code, stdout, stderr := runTaxon(t, "", line, vars); code != exitDone || !strings.Contains(stdout, wants) {
			t.Errorf("%s: exit %d, %q, %q", line, code, stdout, stderr)
		}
	}
}

// Who pipes a row and waits gets its answer, also to a row without features; who pipes an empty
// line learns that there is none.
func TestPredictAnswersEmptyRowsAtOnce(t *testing.T) {
	for _, c := range []struct {
		flags []string
		rows  []string
	}{
		{[]string{"--model", animals(t, 10)}, []string{" \n", "cat\n", "\t\n", "999:1\n", " 1:0\n", "7:1\n"}},
		{[]string{"--text", "--model", textModel(t)}, []string{"\t\n", " \n", "\t...\n", "net\t\n", "\tchess\n"}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of a predict that waits for more
		defer cancel()
		in, feed := io.Pipe()
		out, answers := io.Pipe()
		errs, told := io.Pipe()
		stop := context.AfterFunc(ctx, func() { answers.CloseWithError(ctx.Err()); told.CloseWithError(ctx.Err()) })
		defer stop()
		ended := make(chan int, 1)
		go func() {
			ended <- execute(ctx, append([]string{"predict", "--quiet", "--data", "-"}, c.flags...), in, answers, told)
			answers.Close()
			told.Close()
		}()
		lines, warnings := bufio.NewReader(out), bufio.NewReader(errs)
		for i, row := range c.rows {
			go io.WriteString(feed, row)
			if got, err := lines.ReadString('\n'); err != nil || len(got) < 2 {
				t.Fatalf("after %q: %q, %v", row, got, err)
			}
			if i > 0 {
				continue
			}
			go io.WriteString(feed, "\n")
			if got, err := warnings.ReadString('\n'); err != nil || !strings.Contains(got, "stdin: an empty line is no "+
				"instance and gets no answer") {
				t.Fatalf("after an empty line: %q, %v", got, err)
			}
		}
		go io.Copy(io.Discard, warnings)
		feed.Close()
		if code := <-ended; code != exitDone {
			t.Errorf("exit %d", code)
		}
	}
}

// A class named #b is a child in the structure, and comes back from all that is written of it.
func TestClassNamedLikeAComment(t *testing.T) {
	vars := map[string]string{"M": textModel(t), "P": filepath.Join(t.TempDir(), "p"), "DATA": writeText(t, "test.txt",
		"#b\tchess client\n"),
		"TREE": writeText(t, "tree.txt", "top net\nnet \"#b\"\n")}
	for _, c := range []struct{ line, want string }{
		{"predict --model $M --text --data $DATA --out $P", ""},
		{"predict --model $M --text --data $DATA", "\"#b\"\n"},
		{"eval --pred $P --data $DATA --text --hierarchy $TREE --json", `"micro_f1": 1`},
		{"export --model $M --format text --out -", "node \"#b\" "},
		{"explain --model $M --text chess --label #b --json", `"name": "net"`},
		{"info $M", "0 outside"},
		{"info $TREE", "3 nodes"},
	} {
		code, stdout, stderr := runTaxon(t, "", c.line, vars)
		if _, warnings := splitWarnings(stderr); code != exitDone || !strings.Contains(stdout, c.want) || len(warnings) > 0 {
			t.Errorf("%s: exit %d, %q, %q; want %q", c.line, code, stdout, stderr, c.want)
		}
	}
}

// Warnings about data stay under --quiet, of fresh and of ingested data alike.
func TestTrainingWarnsThoughQuiet(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"DATA": writeText(t, "train.svm", "a 1:1\nb 2:1\n\nx 1:1 2:1\na 1:2\nb "+
		"2:2\nx 1:1 2:2\n 1:1\n"), "TREE": writeText(t, "tree.txt", "r a\nr b\n"), "SET": filepath.Join(dir, "set"),
		"DIR": dir}
	for _, c := range []struct {
		line string
		want []string
	}{
		{"ingest --data $DATA --out $SET", []string{"1 empty line skipped", "1 instance has no label"}},
		{"train --data $DATA --hierarchy $TREE --out $DIR/m", []string{"1 empty line skipped", "1 instance has no label",
			"labels that are not in the structure"}},
		{"train --data $SET --hierarchy $TREE --out $DIR/n", []string{"1 empty line skipped", "1 instance has no label",
			"labels that are not in the structure"}},
		{"tune --data $DATA --hierarchy $TREE --method rr-svm --folds 2 --C 1 --out $DIR/t", []string{"1 empty line skipped",
			"1 instance has no label", "labels that are not in the structure"}},
	} {
		code, _, stderr := runTaxon(t, "", c.line+" --quiet", vars)
		rest, warnings := splitWarnings(stderr)
		if code != exitDone || rest != "" || len(warnings) != len(c.want) {
			t.Errorf("%s: exit %d, %q", c.line, code, stderr)
		}
		for i := range min(len(warnings), len(c.want)) {
			if !strings.Contains(warnings[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", c.line, warnings[i], c.want[i])
			}
		}
	}
}
