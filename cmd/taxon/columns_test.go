package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// The same rows, in each way that tables are written, give the same weights, and predictions and
// measures by what the model remembers.
func TestWaysOfTables(t *testing.T) {
	rows := [][]string{}
	for i := range 48 {
		k := i % 4
		top, leaf := []string{"Food", "Food", "Tools", "Tools"}[k], []string{"Fruit", "Veg", "Saws", "Drills"}[k]
		rows = append(rows, []string{top, leaf, fmt.Sprintf("word%d thing%d more%d", k, i%3+4*k, i%5)})
	}
	table := func(head []string, separator string, cells func(r []string) []string) string {
		var b strings.Builder
		if head != nil {
			b.WriteString(strings.Join(head, separator) + "\r\n")
		}
		for _, r := range rows {
			b.WriteString(strings.Join(cells(r), separator) + "\r\n")
		}
		return b.String()
	}
	plain := func(r []string) []string { return []string{r[0] + " > " + r[1], r[2]} }
	levels := func(r []string) []string { return r }
	zero := func(r []string) []string {
		cells := []string{r[2]}
		for _, name := range []string{"Fruit", "Veg", "Saws", "Drills"} {
			cells = append(cells, map[bool]string{true: "1", false: "0"}[name == r[1]])
		}
		return cells
	}
	quoted := func(r []string) []string { return []string{`"` + r[0] + " > " + r[1] + `"`, `"` + r[2] + `"`} }
	vars := map[string]string{"SEP": " > ", "M": filepath.Join(t.TempDir(), "m"), "BAR": "|", "SEMI": ";"}
	const text = " --path-separator ${SEP} "
	paths := ""
	for _, c := range []struct{ name, content, flags string }{
		{"a.csv", table([]string{"l", "t"}, ",", plain), "--label-column l --text-column t" + text},
		{"a.tsv", table([]string{"l", "t"}, "\t", quoted), "--label-column l --text-column t" + text},
		{"b.csv", table([]string{"l", "t"}, ";", plain), "--label-column l --text-column t --x delimiter=${SEMI}" + text},
		{"c.csv", table(nil, "|", plain), "--label-column 1 --text-column 2 --x delimiter=${BAR} --x header=no" + text},
		{"c.tsv", table(nil, "\t", plain), "--label-column 1 --text-column 2 --x header=no" + text},
		{"d.csv", table([]string{"top", "leaf", "t"}, ",", levels), "--x level-columns=top,leaf --text-column t" + text},
		{"e.csv", table([]string{"t", "Fruit", "Veg", "Saws", "Drills"}, ",", zero),
			"--x label-columns=Fruit,Veg,Saws,Drills --text-column t"},
	} {
		vars["D"] = writeText(t, c.name, c.content)
		code, stdout, stderr := runTaxon(t, "", "train --data $D "+c.flags+" --out $M --force --quiet --json", vars)
		if code != 0 {
			t.Fatalf("%s: exit %d, %s", c.name, code, stderr)
		}
		sum := between(stdout, `"weights_sha256": "`, `"`)
		switch {
		case paths == "":
			paths = sum
		case c.name != "e.csv" && sum != paths:
			t.Errorf("%s: weights %s, want %s", c.name, sum, paths)
		}
		code, stdout, stderr = runTaxon(t, "", "eval --model $M --data $D --json --quiet", vars)
		if code != 0 || !strings.Contains(stdout, `"micro_f1": 1,`) {
			t.Errorf("%s: eval: exit %d, %s %s", c.name, code, stdout, stderr)
		}
		code, stdout, stderr = runTaxon(t, "", "predict --model $M --data $D --quiet --top 1", vars)
		if code != 0 || strings.Count(stdout, "\n") != len(rows) {
			t.Errorf("%s: predict: exit %d, %d lines, %s", c.name, code, strings.Count(stdout, "\n"), stderr)
		}
	}
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}

// Tables that are written otherwise than the flags say are refused with the flag that reads them.
func TestWaysOfTablesSaid(t *testing.T) {
	vars := map[string]string{"M": filepath.Join(t.TempDir(), "m"), "SEP": " > ", "X": "ab",
		"SEMI": writeText(t, "semi.csv", "t;l\na b;x\n"), "BAR": writeText(t, "bar.csv", "t|l\na b|x\n"),
		"TAB": writeText(t, "tab.csv", "t\tl\na b\tx\n"), "BARE": writeText(t, "bare.csv", "5.1,3.5,x\n4.9,3.0,y\n"),
		"GAP": writeText(t, "gap.csv", "t,a,b,c\nw,x,,z\n"), "TWO": writeText(t, "two.csv", "t,a,b\nw,1,2\n"),
		"IN": writeText(t, "in.csv", "t,a,b\nw,x > y,z\n"), "J": writeText(t, "j.jsonl", "{\"t\":\"a\"}\n"),
		"DEEP": writeText(t, "deep.csv", "t,l\nw,"+strings.Repeat("a > ", 256)+"b\n")}
	for line, want := range map[string]string{
		"train --data $SEMI --text-column t --label-column " +
			"l": `are its cells separated by ';'? then say --x delimiter=';'`,
		"train --data $BAR --text-column t --label-column l":                   `then say --x delimiter='|'`,
		"train --data $TAB --text-column t --label-column l":                   "say --x data-format=tsv",
		"train --data $BARE --feature-columns a --label-column l":              "say --x header=no",
		"train --data $SEMI --x delimiter=$X --text-column t --label-column l": "must be one character",
		"train --data $J --x delimiter=$SEP --text-column t --label-column l":  "must be one character",
		"train --data $J --x header=no --text-column t --label-column l":       "--x header for CSV and TSV",
		"train --data $GAP --text-column t --x level-columns=a,b,c " +
			"--path-separator ${SEP}": `gap.csv:2: column "c" holds "z" below column "b", which is empty`,
		"train --data $GAP --text-column t " +
			"--x level-columns=a,b,c": "--x level-columns needs --path-separator",
		"train --data $IN --text-column t --x level-columns=a,b " +
			"--path-separator ${SEP}": `in.csv:2: column "a": "x > y" holds the separator`,
		"train --data $TWO --text-column t " +
			"--x label-columns=a,b": `two.csv:2: column "b": want 1 in rows with this label`,
		"train --data $TWO --text-column t --x label-columns=a,b --label-column a": "use one",
		"train --data $TWO --text-column a " +
			"--x label-columns=a,b": "can't be what the label is predicted from",
		"train --data $TWO --text-column t": "where each label has a column " +
			"of 0 and 1, --x label-columns",
		"train --data $DEEP --text-column t --label-column l --path-separator ${SEP}": "deep.csv:2: a path of " +
			"257 parts: at most 256",
	} {
		code, _, stderr := runTaxon(t, "", line+" --out $M --quiet", vars)
		if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q; want %s", line, code, stderr, want)
		}
	}
}

// A model of numeric columns takes no lines for its table, in any verb: they would be other
// features, or none.
func TestTableModelRefusesLines(t *testing.T) {
	var b strings.Builder
	b.WriteString("price,size,label\n")
	for i := range 30 {
		fmt.Fprintf(&b, "%d,%d,%c\n", i%3*10+i%7, i%5, 'a'+i%3)
	}
	dir := t.TempDir()
	vars := map[string]string{"D": writeText(t, "num.csv", b.String()), "L": writeText(t, "new.dat", b.String()),
		"M": filepath.Join(dir, "m"), "N": filepath.Join(dir, "n"), "OUT": filepath.Join(dir, "out")}
	const train = "train --data $D --feature-columns price,size --label-column label --quiet "
	if code, _, stderr := runTaxon(t, "", train+"--out $M", vars); code != 0 {
		t.Fatal(stderr)
	}
	for line, stdin := range map[string]string{
		"predict --model $M --data -":                                            b.String(),
		"predict --model $M --data $L":                                           "",
		"eval --model $M --data $L":                                              "",
		"eval --model $M --data -":                                               b.String(),
		"vectors --model $M --data $L --out $OUT":                                "",
		"explain --model $M --data $L --row 1":                                   "",
		"report $M --data $L --out $OUT":                                         "",
		"export --model $M --format model --threshold auto --data $L --out $OUT": "",
		train + "--test $L --out $N":                                             "",
	} {
		code, stdout, stderr := runTaxon(t, stdin, line, vars)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "none by its name") && !strings.Contains(stderr,
			"is not a table by its name") {
			t.Errorf("%s: exit %d, %q, %q", line, code, stdout, stderr)
		}
	}
	code, said, stderr := runTaxon(t, "", "predict --model $M --data $L --x data-format=csv --quiet", vars)
	_, named, _ := runTaxon(t, "", "predict --model $M --data $D --quiet", vars)
	if code != 0 || said != named || strings.Count(said, "\n") != 30 {
		t.Errorf("exit %d, %s; %d lines", code, stderr, strings.Count(said, "\n"))
	}
	// Lines of the model's own features, as vectors writes them, are taken if that is said.
	code, lines, stderr := runTaxon(t, "", "vectors --model $M --data $D --quiet", vars)
	if code != 0 {
		t.Fatal(stderr)
	}
	if code, got, stderr := runTaxon(t, lines, "predict --model $M --data - --x data-format=lines --quiet",
		vars); code != 0 || got != named {
		t.Errorf("exit %d, %s; other labels than of the table", code, stderr)
	}
}
