package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"taxon/internal/app/demo"
	"taxon/internal/model"
	"taxon/test/dear"
)

// TestWarmStart: a training that begins at a model of other C, documents, classes and
// structure reaches the optimum that one from nothing reaches, within the gaps.
func TestWarmStart(t *testing.T) {
	dir := noisyFiles(t)
	t.Chdir(dir)
	data, err := os.ReadFile("train.svm")
	if err != nil {
		t.Fatal(err)
	}
	more := string(data) + "new 3:1 40:0.5\nnew 4:1 40:1\nc1 41:1 2:0.3\n"
	moved := "r a\nr b\nb c\nc c0\na c1\nb c2\nb c3\na c4\nb c5\na new\n" // c0, c2, c4 hang elsewhere, c and new are new
	for name, text := range map[string]string{"more.svm": more, "moved.txt": moved} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run := func(flags string) *model.Report {
		t.Helper()
		var stdout, stderr bytes.Buffer
		args := append(strings.Fields("train --json --quiet --gap 1e-4 "+flags), "--out", t.TempDir()+"/m")
		if code := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != exitDone {
			t.Fatalf("taxon %v: exit status %d: %s", args, code, stderr.String())
		}
		var r model.Report
		if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		return &r
	}
	for _, method := range dear.Some([]string{"rr-svm", "rr-svm --loss squared-hinge", "rr-svm --x bias-pull=zero " +
		"--x edge-weights=size", "bsvm", "bsvm --loss squared-hinge", "rr-lr", "blr"}, 3) {
		base := t.TempDir() + "/base"
		args := strings.Fields("train --json --quiet --gap 1e-4 --data train.svm --hierarchy tree.txt --method " + method +
			" --out " + base)
		if code := execute(t.Context(), args, strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}); code != exitDone {
			t.Fatalf("exit status %d", code)
		}
		for _, flags := range []string{
			"--data train.svm --hierarchy tree.txt", "--data train.svm --hierarchy tree.txt --C 7 --bias 0",
			"--data more.svm --hierarchy moved.txt", "--data more.svm",
		} {
			flags += " --method " + method
			cold, warm := run(flags), run(flags+" --warm-start "+base)
			if warm.Objective < *cold.Dual || cold.Objective < *warm.Dual {
				t.Errorf("%s: objective %v, dual %v; from nothing %v, %v", flags, warm.Objective, *warm.Dual, cold.Objective,
					*cold.Dual)
			}
			if same := strings.HasPrefix(flags, "--data train.svm --hierarchy tree.txt --method"); same &&
				warm.Sweeps > cold.Sweeps/2+1 {
				t.Errorf("%s: %d sweeps from its own optimum", flags, warm.Sweeps)
			}
		}
	}
}

// Classes of the model that the data have no instance of are lost: it is said, --quiet or not.
func TestWarmStartTellsOfLostClasses(t *testing.T) {
	dir := noisyFiles(t)
	t.Chdir(dir)
	data, err := os.ReadFile("train.svm")
	if err != nil {
		t.Fatal(err)
	}
	some := ""
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "c0 ") || strings.HasPrefix(line, "c1 ") {
			some += line
		}
	}
	if err := os.WriteFile("some.svm", []byte(some), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ flags, want string }{
		{"--data train.svm --out m", ""},
		{"--data train.svm --warm-start m --out same", ""},
		{"--data some.svm --warm-start m --out some", "4 classes of m"},
	} {
		var stderr bytes.Buffer
		if code := execute(t.Context(), strings.Fields("train --quiet "+step.flags), strings.NewReader(""), &bytes.Buffer{},
			&stderr); code != exitDone {
			t.Fatalf("%s: exit status %d: %s", step.flags, code, stderr.String())
		}
		if told := strings.Contains(stderr.String(), "new model will not know them"); told != (step.want != "") ||
			!strings.Contains(stderr.String(), step.want) {
			t.Errorf("%s: %s", step.flags, stderr.String())
		}
	}
}

// TestWarmStartDropsBiases: a training whose internal nodes have no bias reaches its optimum from
// a model whose nodes have one.
func TestWarmStartDropsBiases(t *testing.T) {
	t.Chdir(noisyFiles(t))
	run := func(out, flags string) (r model.Report) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		args := strings.Fields("train --json --quiet --gap 1e-4 --bias 3 --data train.svm --hierarchy tree.txt --out " + out +
			" " + flags)
		if code := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != exitDone {
			t.Fatalf("taxon %v: exit status %d: %s", args, code, stderr.String())
		}
		if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, method := range []string{"rr-svm", "rr-lr"} {
		run(method, "--method "+method)
		cold := run(method+"-cold", "--x bias-pull=zero --method "+method)
		warm := run(method+"-warm", "--x bias-pull=zero --warm-start "+method+" --method "+method)
		if warm.Objective < *cold.Dual || cold.Objective < *warm.Dual {
			t.Errorf("%s: objective %v, dual %v; from nothing %v, %v", method, warm.Objective, *warm.Dual, cold.Objective,
				*cold.Dual)
		}
	}
}

// TestWarmStartGrown: a training on a grown hierarchy, begun at a model that lacks every third
// class, takes at most one sweep more than one from nothing, reaches its optimum, and gives the
// same bytes for any number of workers.
func TestWarmStartGrown(t *testing.T) {
	t.Chdir(t.TempDir())
	rows, _, tree, _, err := demo.Files()
	if err != nil {
		t.Fatal(err)
	}
	var now, before bytes.Buffer
	number, n := map[string]int{}, 0
	for line := range bytes.Lines(rows) {
		if n++; n%3 != 0 { // a third of them will do
			continue
		}
		now.Write(line)
		label, _, _ := strings.Cut(string(line), "\t")
		if _, ok := number[label]; !ok {
			number[label] = len(number) + 1
		}
		if number[label]%3 != 0 {
			before.Write(line)
		}
	}
	for name, text := range map[string][]byte{"now.txt": now.Bytes(), "before.txt": before.Bytes(), "tree.txt": tree} {
		if err := os.WriteFile(name, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run := func(out, flags string) *model.Report {
		t.Helper()
		code, stdout, stderr := runWith(t, "", append(strings.Fields("train --json --quiet --text --hierarchy tree.txt "+
			flags), "--out", out)...)
		if code != exitDone {
			t.Fatalf("%s: exit status %d: %s", flags, code, stderr)
		}
		var r model.Report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatal(err)
		}
		return &r
	}
	for _, loss := range dear.Some([]string{"hinge", "squared-hinge"}, 1) {
		flags := " --loss " + loss
		run("base-"+loss, "--data before.txt"+flags)
		cold := run("cold-"+loss, "--data now.txt"+flags)
		flags += " --warm-start base-" + loss
		warm, other := run("warm-"+loss, "--data now.txt --threads 1"+flags), run("other-"+loss, "--data now.txt --threads 3"+
			flags)
		t.Logf("%s: %d sweeps, from nothing %d", loss, warm.Sweeps, cold.Sweeps)
		if warm.Sweeps > cold.Sweeps+1 {
			t.Errorf("%s: %d sweeps, from nothing %d", loss, warm.Sweeps, cold.Sweeps)
		}
		if warm.Objective < *cold.Dual || cold.Objective < *warm.Dual {
			t.Errorf("%s: objective %v, dual %v; from nothing %v, %v", loss, warm.Objective, *warm.Dual, cold.Objective,
				*cold.Dual)
		}
		if warm.WeightsSHA256 != other.WeightsSHA256 {
			t.Errorf("%s: other weights by three workers than by one", loss)
		}
	}
}

func TestWarmStartMistakes(t *testing.T) {
	dir := noisyFiles(t)
	t.Chdir(dir)
	base := t.TempDir() + "/base"
	args := strings.Fields("train --quiet --data train.svm --hierarchy tree.txt --gap 1 --out " + base)
	if code := execute(t.Context(), args, strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}); code != exitDone {
		t.Fatalf("exit status %d", code)
	}
	if err := os.WriteFile("other.svm", []byte("x 1:1\ny 2:1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("text.txt", []byte("c0\tone two\nc1\ttwo one\nc1\tnone\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[string]string{
		"--data train.svm --warm-start tree.txt":      "is not a model",
		"--data other.svm --warm-start " + base:       "no class in common",
		"--data text.txt --text --warm-start " + base: "a model of text",
	} {
		var stderr bytes.Buffer
		args := append(strings.Fields("train "+flags), "--out", t.TempDir()+"/m")
		if code := execute(t.Context(), args, strings.NewReader(""), &bytes.Buffer{}, &stderr); code != exitUsage ||
			!strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit status %d, %q, want %q", flags, code, stderr.String(), want)
		}
	}
}
