package demo

import (
	"bytes"
	"strings"
	"testing"
)

// The figures that the package comment and the README rely on.
func TestFiles(t *testing.T) {
	train, test, hierarchy, notice, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	parent := readHierarchy(t, hierarchy)
	if len(parent) != 655 {
		t.Errorf("%d nodes below the root, want 655", len(parent))
	}
	if d := depth(t, parent); d < 6 {
		t.Errorf("depth %d, want a deep hierarchy", d)
	}
	inTrain, seen := readDocuments(t, train, parent, map[string]bool{})
	inTest, _ := readDocuments(t, test, parent, seen)
	if docs := len(lines(train)); docs != 6602 {
		t.Errorf("%d training documents, want 6602", docs)
	}
	if docs := len(lines(test)); docs != 1690 {
		t.Errorf("%d test documents, want 1690", docs)
	}
	if len(inTrain) != 502 {
		t.Errorf("%d classes, want 502", len(inTrain))
	}
	small := 0
	for class, n := range inTrain {
		if n+inTest[class] < 8 {
			t.Errorf("class %s has %d documents, want 8 or more", class, n+inTest[class])
		}
		if n < 10 {
			small++
		}
	}
	if 3*small < len(inTrain) {
		t.Errorf("%d of %d classes have fewer than 10 training documents: no long tail", small, len(inTrain))
	}
	for class := range inTest {
		if inTrain[class] == 0 {
			t.Errorf("class %s is tested but never trained", class)
		}
	}
	if !strings.Contains(notice, "Permission to use, copy, modify and distribute") {
		t.Error("Princeton's notice is not complete")
	}
	if got, want := Credit(notice), "WordNet 3.0 Copyright 2006 by Princeton University.  "+
		"All rights reserved."; got != want {
		t.Errorf("Credit = %q, want %q", got, want)
	}
}

func TestSmallEnoughForABinary(t *testing.T) {
	total := 0
	for _, name := range []string{"train.txt.gz", "test.txt.gz", "hierarchy.txt.gz"} {
		b, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		total += len(b)
	}
	if total > 1<<20 {
		t.Errorf("%d bytes, want at most 1 MiB", total)
	}
}

func lines(text []byte) []string {
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// readHierarchy checks the form of a tree and returns node -> parent.
func readHierarchy(t *testing.T, text []byte) map[string]string {
	t.Helper()
	parent := map[string]string{}
	for i, line := range lines(text) {
		f := strings.Split(line, " ")
		if len(f) != 2 || f[0] == "" || f[1] == "" {
			t.Fatalf("hierarchy line %d: %q", i+1, line)
		}
		if parent[f[1]] != "" {
			t.Fatalf("hierarchy line %d: %s has a second parent", i+1, f[1])
		}
		if f[0] != "entity" && parent[f[0]] == "" {
			t.Fatalf("hierarchy line %d: %s comes before its own line", i+1, f[0])
		}
		parent[f[1]] = f[0]
	}
	return parent
}

func depth(t *testing.T, parent map[string]string) (deepest int) {
	t.Helper()
	for node := range parent {
		d := 0
		for ; node != ""; node = parent[node] {
			d++
		}
		deepest = max(deepest, d)
	}
	return deepest
}

// readDocuments checks each line and counts the documents of each class. No document
// may be in seen, nor twice in text.
func readDocuments(t *testing.T, text []byte, parent map[string]string,
	seen map[string]bool) (map[string]int, map[string]bool) {
	t.Helper()
	if !bytes.HasSuffix(text, []byte("\n")) {
		t.Error("the last line is cut")
	}
	count, here := map[string]int{}, map[string]bool{}
	for i, line := range lines(text) {
		labels, words, ok := strings.Cut(line, "\t")
		if !ok || words == "" || strings.Contains(words, "\t") || strings.Contains(labels, " ") {
			t.Fatalf("line %d: %q", i+1, line)
		}
		if seen[line] || here[line] {
			t.Errorf("line %d is there twice: %q", i+1, line)
		}
		here[line] = true
		for _, l := range strings.Split(labels, ",") {
			if parent[l] == "" {
				t.Errorf("line %d: label %q is not in the hierarchy", i+1, l)
			}
			count[l]++
		}
	}
	return count, here
}
