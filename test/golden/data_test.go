package golden

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// generated are data that `taxon generate` makes: NAME.svm and NAME.txt.
var generated = map[string]string{
	"tree": "--like wordnet --instances 1000 --classes 120 --internals 50 --features 2000 --test-instances 1 --seed 1",
	"dag":  "--like lwiki --dag --instances 500 --classes 120 --internals 40 --features 2500 --test-instances 1 --seed 2",
	"flat": "--like flat --instances 1000 --classes 60 --features 2000 --test-instances 1 --seed 3",
	"web":  "--like flat --instances 400 --classes 30 --features 300 --test-instances 1 --seed 5",
	"rows": "--like wordnet --instances 17000 --classes 24 --internals 6 --features 500 --nonzeros 4 --labels 1 " +
		"--test-instances 1 --seed 4",
}

// dataFiles are the data whose hashes are in the table.
var dataFiles = []string{
	"tree.svm", "tree.txt", "forest.txt", "inner.svm", "half.svm", "few.svm", "zero.svm", "dag.svm", "dag.txt", "flat.svm",
	"rows.svm", "rows.txt", "fewrows.svm",
	"web.svm", "web.txt", "dense.svm", "dense.txt", "text.txt", "demo/train.txt", "demo/hierarchy.txt",
}

// makeData writes all data into dir.
func makeData(t *testing.T, dir string) {
	t.Helper()
	for name, shape := range generated {
		out := filepath.Join(dir, name)
		must(t, append([]string{"generate", "--out", out, "--quiet"}, strings.Fields(shape)...)...)
		rename(t, filepath.Join(out, "train.svm"), out+".svm")
		if !strings.Contains(shape, "--like flat") {
			rename(t, filepath.Join(out, "hierarchy.txt"), out+".txt")
		}
	}
	must(t, "demo", "--keep", filepath.Join(dir, "demo"), "--gap", "1", "--quiet")

	tree, edges := lines(t, dir, "tree.svm"), lines(t, dir, "tree.txt")
	parent := map[string]string{}
	var forest []string // without the edges of the root
	for _, e := range edges {
		p, c, _ := strings.Cut(e, " ")
		parent[c] = p
		if p != "n0" {
			forest = append(forest, e)
		}
	}
	var inner, zero, text []string
	for i, line := range tree {
		labels, rest, _ := strings.Cut(line, " ")
		switch {
		case i%10 == 3:
			zero = append(zero, labels)
		case i%17 == 5:
			zero = append(zero, " "+rest)
		default:
			zero = append(zero, line)
		}
		if first, _, _ := strings.Cut(labels, ","); i%4 == 0 {
			line = parent[first] + " " + rest
		}
		inner = append(inner, line)
	}
	for i, line := range lines(t, dir, "demo/train.txt") {
		if i%5 == 0 {
			text = append(text, line)
		}
	}
	dense, denseTree := denseRows()
	for name, all := range map[string][]string{
		"forest.txt": forest, "inner.svm": inner, "zero.svm": zero, "half.svm": inner[:400], "few.svm": tree[:200],
		"fewrows.svm": lines(t, dir, "rows.svm")[:2000],
		"text.txt":    text, "dense.svm": dense, "dense.txt": denseTree, "web.txt": web(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(all, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, hard := range []string{"circles", "chain", "brush", "own"} {
		for _, ext := range []string{".svm", ".txt"} {
			data, err := os.ReadFile(filepath.Join("../exact/testdata", hard+ext))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, hard+ext), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	must(t, "ingest", "--data", filepath.Join(dir, "tree.svm"), "--out", filepath.Join(dir, "ingested"), "--quiet")
}

// denseRows draws rows without zeros: 20 classes around centres of 24 whole numbers.
func denseRows() (rows, tree []string) {
	r := rand.New(rand.NewPCG(9, 9))
	var centre [20][24]int
	for c := range centre {
		for f := range centre[c] {
			centre[c][f] = r.IntN(41) - 20
		}
		tree = append(tree, fmt.Sprintf("n%d c%d", c%4, c))
	}
	for n := range 4 {
		tree = append(tree, fmt.Sprintf("root n%d", n))
	}
	for range 1100 {
		c := r.IntN(len(centre))
		var b strings.Builder
		fmt.Fprintf(&b, "c%d", c)
		for f, x := range centre[c] {
			fmt.Fprintf(&b, " %d:%de-2", f+1, x+r.IntN(31)-15)
		}
		rows = append(rows, b.String())
	}
	return rows, tree
}

// web is a random graph of 240 nodes, six neighbours each, with two of them at each class.
func web() (edges []string) {
	r := rand.New(rand.NewPCG(8, 8))
	for range 720 {
		edges = append(edges, fmt.Sprintf("n%d n%d", r.IntN(240), r.IntN(240)))
	}
	for c := range 30 {
		edges = append(edges, fmt.Sprintf("n%d c%d", r.IntN(240), c), fmt.Sprintf("c%d n%d", c, r.IntN(240)))
	}
	return edges
}

func must(t *testing.T, args ...string) {
	t.Helper()
	if _, err := succeed(args...); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func lines(t *testing.T, dir, name string) (all []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		all = append(all, s.Text())
	}
	return all
}
