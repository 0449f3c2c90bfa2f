package main

import (
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"taxon/internal/data/textio"
	"taxon/internal/fs"
)

// goods is a table of texts with names that lines would part: two levels, blanks, commas, quotes.
func goods(rows, seed int) (text string, labels []string) {
	classes := []string{"Food, fresh > Fruit: \"red\"", "Food, fresh > #Veg", "Tools > Saws, hand", "Tools > Drills"}
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	b.WriteString("\ufeff")
	_ = w.Write([]string{"sku", "category", "title", "body, long"})
	for i := range rows {
		k := (i + seed) % len(classes)
		label := classes[k]
		_ = w.Write([]string{fmt.Sprintf("id %d", i), label, fmt.Sprintf("Word%d thing%d,\n\"quoted\" common", 10*k+i/4%4,
			k/2), fmt.Sprintf("other%d", i%7)})
		labels = append(labels, label)
	}
	w.Flush()
	return b.String(), labels
}

// The way of a table: trained on, predicted as a table, measured, exported, read back.
func TestTableJourney(t *testing.T) {
	train, _ := goods(80, 0)
	test, truth := goods(20, 3)
	dir := t.TempDir()
	vars := map[string]string{"TRAIN": writeText(t, "train.csv", train), "TEST": writeText(t, "test.csv", test),
		"M":   filepath.Join(dir, "m"),
		"OUT": filepath.Join(dir, "out.csv"), "P": filepath.Join(dir, "p.txt"), "X": filepath.Join(dir, "export.txt"),
		"COL": "body, long", "SEP": " > ", "I": filepath.Join(dir, "set"), "N": filepath.Join(dir, "n")}
	must := func(line string) string {
		t.Helper()
		code, stdout, stderr := runTaxon(t, "", line, vars)
		if code != 0 || strings.Contains(stderr, "warning") {
			t.Fatalf("%s: exit %d, %s", line, code, stderr)
		}
		return stdout
	}
	columns := "--text-column title --text-column ${COL} --label-column category --path-separator ${SEP} --id-column sku"
	var report struct {
		Nodes, Terminals int
		WeightsSHA256    string `json:"weights_sha256"`
		Test             struct {
			MicroF1 float64 `json:"micro_f1"`
		}
	}
	parse := func(text string) {
		t.Helper()
		report.WeightsSHA256 = ""
		if err := json.Unmarshal([]byte(text), &report); err != nil {
			t.Fatal(err)
		}
	}
	parse(must("train --data $TRAIN --test $TEST --out $M --json " + columns))
	if report.Terminals != 4 || report.Nodes != 7 || report.Test.MicroF1 != 1 {
		t.Fatalf("%+v: want 4 classes below 2 nodes and a virtual root, all right", report)
	}
	sum := report.WeightsSHA256
	must("ingest --data $TRAIN --out $I " + columns)
	if parse(must("train --data $I --out $N --json")); report.WeightsSHA256 != sum || report.Nodes != 7 {
		t.Errorf("ingested: %+v", report)
	}

	must("predict --model $M --data $TEST --format csv --top 3 --out $OUT")
	rows, err := csv.NewReader(strings.NewReader(readText(t, vars["OUT"]))).ReadAll()
	if err != nil || len(rows) != 21 || len(rows[0]) != 11 {
		t.Fatalf("%v, %d rows", err, len(rows))
	}
	for i, r := range rows[1:] {
		if r[0] != fmt.Sprint(i+1) || r[1] != fmt.Sprintf("id %d", i) || r[2] != truth[i] || r[4] != truth[i] {
			t.Errorf("row %q, want %s", r, truth[i])
		}
	}

	must("predict --model $M --data $TEST --top 2 --scores --out $P")
	for i, line := range strings.Split(strings.TrimSuffix(readText(t, vars["P"]), "\n"), "\n") {
		if !strings.HasPrefix(line, string(textio.AppendName(nil, truth[i]))+":") {
			t.Errorf("line %q, want %q", line, truth[i])
		}
	}
	for _, line := range []string{"eval --model $M --data $TEST --json", "eval --pred $P --data $TEST --label-column " +
		"category --path-separator ${SEP} --json",
		"eval --pred $P --data $TEST --label-column category --path-separator ${SEP} --hierarchy from-labels --json",
		"eval --model $M --compare $P --data $TEST --json"} {
		if out := must(line); !strings.Contains(out, `"hier_recall": 1`) {
			t.Errorf("%s: %s", line, out)
		}
	}

	must("export --model $M --format text --out $X")
	var names []string
	for line := range strings.Lines(readText(t, vars["X"])) {
		_, rest, _ := strings.Cut(line, " ")
		name, _, err := textio.CutName([]byte(rest))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, string(name))
	}
	slices.Sort(names)
	if want := []string{"-", "Food, fresh", "Food, fresh > #Veg", "Food, fresh > Fruit: \"red\"", "Tools",
		"Tools > Drills", "Tools > Saws, hand"}; !slices.Equal(names, want) {
		t.Errorf("exported %q", names)
	}

	// The same texts and names as lines give the same weights.
	var text, tree strings.Builder
	r, err := csv.NewReader(strings.NewReader(train[3:])).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r[1:] {
		fmt.Fprintf(&text, "%s\t%s %s\n", textio.AppendName(nil, row[1]), strings.ReplaceAll(row[2], "\n", " "), row[3])
		parent, _, _ := strings.Cut(row[1], " > ")
		fmt.Fprintf(&tree, "%s %s\n", textio.AppendName(nil, parent), textio.AppendName(nil, row[1]))
	}
	vars["TEXT"], vars["TREE"], vars["L"] = writeText(t, "train.txt", text.String()), writeText(t, "tree.txt",
		tree.String()), filepath.Join(dir, "l")
	code, stdout, stderr := runTaxon(t, "", "train --text --data $TEXT --hierarchy $TREE --out $L --json", vars)
	if code != 0 {
		t.Fatal(stderr)
	}
	if parse(stdout); report.WeightsSHA256 != sum {
		t.Errorf("as lines: %s, as a table: %s", report.WeightsSHA256, sum)
	}
}

// What is wrong with a table is one line and exit status 2.
func TestTableMistakes(t *testing.T) {
	train, _ := goods(12, 0)
	vars := map[string]string{"TRAIN": writeText(t, "train.csv", train), "BAD": writeText(t, "bad.csv",
		"t,l\na,b\nc,d\ne\n"), "M": filepath.Join(t.TempDir(), "m"), "S": animals(t, 10), "D": t.TempDir(),
		"ENDS": writeText(t, "ends.csv", "t,l\na,A > \nb,B > C\n"), "BEGINS": writeText(t, "begins.csv",
			"t,l\na,B > C\nb, > C\n"), "SEP": " > ", "NONE": writeText(t, "none.jsonl", "{}\n")}
	for line, want := range map[string]string{
		"train --data $TRAIN --out $M":                     "train.csv:1: say what to learn from",
		"train --data $TRAIN --text-column title --out $M": "train.csv:1: say which column holds the labels",
		"train --data $TRAIN --text-column titel " +
			"--label-column category --out $M": `no column "titel": did you mean "title"?`,
		"train --data $TRAIN --text-column title --label-column category --hierarchy " +
			"from-labels --out $M": "needs --path-separator",
		"train --data $TRAIN --text-column title --label-column category " +
			"--path-separator / --out $M": "no label is a path",
		"train --data $TRAIN --text-column title --feature-columns sku " +
			"--label-column category --out $M": "\"id 0\" is not a finite number",
		"train --data $TRAIN --text-column title --label-column category " +
			"--x weight-column=sku --out $M": `train.csv:2: "id 0" is not a number`,
		"train --data $BAD --text-column t " +
			"--label-column l --out $M": "bad.csv:4: 1 columns where line 1 has 2",
		"train --data $ENDS --text-column t --label-column l " +
			"--path-separator ${SEP} --out $M": `ends.csv:2: the path "A >" has an empty part`,
		"train --data $BEGINS --text-column t --label-column l " +
			"--path-separator ${SEP} --out $M": `begins.csv:3: the path "> C" has an empty part`,
		"train --data $NONE --text-column t " +
			"--label-column l --out $M": `none.jsonl: no column "t": the rows have no columns`,
		"train --data $D --text-column t " +
			"--label-column l --out $M": "is a directory without files part-*: give a " +
			"file, or a pattern like DIR/*",
		"train --data $D --x data-format=csv --text-column t " +
			"--label-column l --out $M": "is a directory without files part-*: give a file, or " +
			"a pattern like DIR/*",
		"info $TRAIN": "train.csv: is a table or a matrix (csv), which info does not read",
		"ingest --data - --text-column t --label-column l --out $M": "stdin: is not a table by its name",
		"predict --model $S --data $TRAIN":                          "say what to learn from",
		"predict --model $S --data $TRAIN --text-column title": "was trained on numbers: name such columns " +
			"with --feature-columns",
		"eval --model $S --data $TRAIN --feature-columns sku": "which column holds the labels",
	} {
		code, stdout, stderr := runTaxon(t, "", line+" --quiet", vars)
		if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q; want %s", line, code, stderr, want)
		}
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// eval by class, what was taken for what, and several others to compare with.
func TestEvalClasses(t *testing.T) {
	vars := map[string]string{"S": animals(t, 10), "DATA": writeText(t, "test.svm", "car 7:1\ncat 2:2 7:4\ndog 7:2\n"),
		"P": writeText(t, "p.txt", "car\ncat\n\n"),
		"Q": writeText(t, "q.txt", "dog\ndog\ndog\n"), "C": filepath.Join(t.TempDir(), "confusion.csv")}
	code, stdout, stderr := runTaxon(t, "", "eval --model $S --data $DATA --compare $P --compare $Q --confusion $C --json",
		vars)
	var r struct {
		PerClass []struct {
			Label                string
			Instances, Predicted int
			F1                   float64
		} `json:"per_class"`
		Others []struct {
			Compare string
			Other   struct {
				MicroF1 float64 `json:"micro_f1"`
			}
			SignTest, Wilcoxon struct{ P float64 } `json:"-"`
		}
		Other struct {
			MicroF1 float64 `json:"micro_f1"`
		}
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 {
		t.Fatalf("exit %d, %v, %s", code, err, stderr)
	}
	if len(r.PerClass) != 4 || r.PerClass[2].Label != "dog" || r.PerClass[2].Instances != 1 ||
		r.PerClass[2].Predicted != 2 {
		t.Errorf("%+v", r.PerClass)
	}
	if len(r.Others) != 2 || r.Others[0].Other.MicroF1 != r.Other.MicroF1 || r.Others[1].Compare != vars["Q"] ||
		r.Others[1].Other.MicroF1 != 1./3 {
		t.Errorf("%+v", r.Others)
	}
	if got := readText(t, vars["C"]); got != "true,predicted,instances\ncar,car,1\ncat,dog,1\ndog,dog,1\n" {
		t.Errorf("%s", got)
	}
	code, stdout, stderr = runTaxon(t, "", "eval --model $S --data $DATA --per-class --compare $P --compare $Q", vars)
	if code != 0 || !strings.Contains(stdout, "66.67  dog") || strings.Count(stdout, "\nagainst ") != 2 {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
}

// A matrix with labels of its own is trained on, measured and predicted.
func TestMatrixJourney(t *testing.T) {
	array := func(columns int) string {
		var out strings.Builder
		head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (6, %d), }", columns)
		out.WriteString("\x93NUMPY\x01\x00" + string(rune(len(head)+1)) + "\x00" + head + "\n")
		for i := range 6 {
			for _, x := range []float32{float32(i%2) + 1, 2 - float32(i%2), 0}[:columns] {
				_ = binary.Write(&out, binary.LittleEndian, x)
			}
		}
		return out.String()
	}
	vars := map[string]string{"X": writeText(t, "x.npy", array(2)), "N": writeText(t, "n.npy", array(1)),
		"W": writeText(t, "w.npy", array(3)), "R": filepath.Join(t.TempDir(), "r.html"),
		"L": writeText(t, "l.jsonl", `{"v":[1,2,3],"l":"small"}`+"\n"), "E": writeText(t, "e.txt", strings.Repeat("\n", 6)),
		"Y": writeText(t, "y.txt", strings.Repeat("\"big, red\"\nsmall\n", 3)), "M": filepath.Join(t.TempDir(), "m")}
	for line, want := range map[string]string{
		"train --data $X --x labels=$Y --test $X --x test-labels=$Y --out $M --json": `"micro_f1": 1`,
		"eval --model $M --data $X --x labels=$Y --json":                             `"micro_f1": 1`,
		"predict --model $M --data $X --format csv":                                  "1,,\"big, red\",",
	} {
		if !strings.HasPrefix(line, "train") && !fs.Exists(vars["M"]) {
			if code, _, stderr := runTaxon(t, "", "train --data $X --x labels=$Y --out $M --json", vars); code != 0 {
				t.Fatal(stderr)
			}
		}
		if code, stdout, stderr := runTaxon(t, "", line, vars); code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("%s: exit %d, %s%s", line, code, stdout, stderr)
		}
	}
	if code, _, stderr := runTaxon(t, "", "report $M --data $X --x labels=$Y --out $R", vars); code != 0 ||
		!strings.Contains(readText(t, vars["R"]), "--x labels="+vars["Y"]) {
		t.Errorf("report: exit %d, %s", code, stderr)
	}
	if code, _, stderr := runTaxon(t, "", "eval --model $M --data $X --x labels=$E", vars); code != 0 ||
		!strings.Contains(stderr, "no instance has a label") {
		t.Errorf("no labels: exit %d, %s", code, stderr)
	}
	for line, want := range map[string]string{
		"predict --model $M --data -": "was trained on a matrix",
		"predict --model $M --data $N": "n.npy: a matrix of 1 columns, and the model's " +
			"training data have 2",
		"eval --model $M --data $W --x labels=$Y": "w.npy: a matrix of 3 columns, and the model's " +
			"training data have 2",
		"report $M --data $W --x labels=$Y --out $R": "w.npy: a matrix of 3 columns, and the model's " +
			"training data have 2",
		"predict --model $M --data $L --feature-columns v": "l.jsonl:1: 3 numbers, and the model's training data are " +
			"a matrix of 2 columns",
		"train --data $X --data $W --x labels=$Y --out ${M}other": "w.npy: a matrix of 3 columns, and files before have 2",
		"info $X": "x.npy: is a table or a matrix (npy), which info does not read",
	} {
		if code, stdout, stderr := runTaxon(t, "", line+" --quiet", vars); code != 2 || stdout != "" ||
			strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %s%s", line, code, stdout, stderr)
		}
	}
}
