package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"taxon/internal/fs"
)

// perNode trains the SVM of [JMLR] section 5: a machine for each node on all rows, and a pass from
// the roots that drops nodes whose parent is not predicted. The machines are those of h-svm without
// a hierarchy, on rows that are labelled with their labels and all ancestors of these.
func (r *runner) perNode(ctx context.Context, t *table) (*trained, error) {
	train, test, tree := r.set(t.data)
	edges, err := os.ReadFile(tree)
	if err != nil {
		return nil, err
	}
	above := map[string]string{}
	for line := range strings.Lines(string(edges)) {
		if f := strings.Fields(line); len(f) == 2 {
			above[f[1]] = f[0]
		}
	}
	folder := r.folder(t.data, "svm")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	wide := filepath.Join(folder, "train.svm")
	if err := widen(ctx, train, wide, above); err != nil {
		return nil, err
	}
	inner := *t
	inner.goal = "micro_f1"
	m, err := r.fit(ctx, &inner, folder, wide, []string{"--method", "h-svm"})
	if err != nil {
		return nil, err
	}
	said, err := r.output(ctx, []string{"predict", "--model", m.model, "--data", test, "--quiet"})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for line := range strings.Lines(string(said)) {
		out.WriteString(strings.Join(consistent(strings.FieldsFunc(line, func(c rune) bool {
			return c == ',' || c == '\n' ||
				c == ' '
		}), above), ",") + "\n")
	}
	file := filepath.Join(folder, "predicted")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		return nil, err
	}
	return m, r.call(ctx, []string{"eval", "--pred", file, "--data", test, "--hierarchy", tree, "--json", "--quiet"},
		&m.test)
}

// consistent returns the lowest of the labels all of whose ancestors are also predicted. The root,
// which every row has, always is.
func consistent(labels []string, above map[string]string) []string {
	given, inner := map[string]bool{}, map[string]bool{}
	for _, l := range labels {
		given[l] = true
	}
	var kept []string
	for _, l := range labels {
		whole := true
		for p, ok := above[l]; ok; p, ok = above[p] {
			_, below := above[p]
			whole = whole && (given[p] || !below)
		}
		if whole {
			kept = append(kept, l)
			inner[above[l]] = true
		}
	}
	return slices.DeleteFunc(kept, func(l string) bool { return inner[l] })
}

// widen writes the rows with all ancestors of their labels, except the root.
func widen(ctx context.Context, from, to string, above map[string]string) error {
	lines, err := readLines(ctx, from)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, line := range lines {
		labels, rest, _ := strings.Cut(line, " ")
		var all []string
		for l := range strings.SplitSeq(labels, ",") {
			for p, ok := l, true; ok; {
				q, below := above[p]
				if below && !slices.Contains(all, p) {
					all = append(all, p)
				}
				p, ok = q, below
			}
		}
		fmt.Fprintf(&out, "%s %s\n", strings.Join(all, ","), rest)
	}
	return os.WriteFile(to, out.Bytes(), 0o600)
}

// readLines reads the rows of a file, compressed or not.
func readLines(ctx context.Context, file string) ([]string, error) {
	f, err := fs.Open(ctx, fs.Local{}, file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := io.ReadAll(f)
	return strings.Split(strings.TrimSuffix(string(rows), "\n"), "\n"), err
}
