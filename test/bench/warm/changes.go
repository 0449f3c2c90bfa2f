package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"taxon/internal/fs"
	"taxon/test/bench/drive"
)

// every is the inverse of the share of documents, classes or nodes that have changed. manyOf is the
// same for a hierarchy that has grown: nearly one class or internal node in three is new.
const (
	every  = 10
	manyOf = 3
)

// change describes what has changed since the initial model was trained.
type change struct {
	name   string
	before drive.Files // files on which the initial model is trained
	flags  []string    // flags of the new training
}

// changes writes the files of the initial trainings.
func (b *bench) changes(ctx context.Context, now drive.Files) ([]change, error) {
	data, err := text(ctx, now.Train)
	if err != nil {
		return nil, err
	}
	tree, err := text(ctx, now.Tree)
	if err != nil {
		return nil, err
	}
	fewer, without, moved, grown, flatter := now, now, now, now, now
	for _, f := range []struct {
		path *string
		text []byte
	}{{&fewer.Train, fewerRows(data)}, {&without.Train, fewerClasses(data, every)}, {&moved.Tree, hungElsewhere(tree)},
		{&grown.Train, fewerClasses(data, manyOf)}, {&flatter.Tree, fewerLevels(tree, labels(data))}} {
		file, err := os.CreateTemp(b.dir, "before-*.txt")
		if err != nil {
			return nil, err
		}
		*f.path = file.Name()
		if err := file.Close(); err != nil {
			return nil, err
		}
		if err := os.WriteFile(*f.path, f.text, 0o666); err != nil {
			return nil, err
		}
	}
	return []change{
		{"nothing", now, nil},
		{"C = 2, not 1", now, []string{"--C", "2"}},
		{"C = 0.5, not 1", now, []string{"--C", "0.5"}},
		{fmt.Sprintf("1 document in %d is new", every), fewer, nil},
		{fmt.Sprintf("1 class in %d is new", every), without, nil},
		{fmt.Sprintf("1 node in %d hangs elsewhere", every), moved, nil},
		{fmt.Sprintf("1 class in %d is new, and branches of them", manyOf), grown, nil},
		{fmt.Sprintf("1 inner node in %d is new: a deeper tree", manyOf), flatter, nil},
	}, nil
}

// text returns the content of a file, which may be compressed.
func text(ctx context.Context, path string) (data []byte, err error) {
	f, err := fs.Open(ctx, fs.Local{}, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(f)
}

// fewerRows leaves out every tenth line.
func fewerRows(data []byte) []byte {
	var out bytes.Buffer
	n := 0
	for line := range bytes.Lines(data) {
		if n++; n%every != 0 {
			out.Write(line)
		}
	}
	return out.Bytes()
}

// fewerClasses leaves out the documents of every n-th label, in order of first appearance. Training
// then prunes their nodes, and whole branches without documents.
func fewerClasses(data []byte, n int) []byte {
	var out bytes.Buffer
	number := labels(data)
	for line := range bytes.Lines(data) {
		drop := false
		for label := range labelsOf(line) {
			drop = drop || number[label]%n == 0
		}
		if !drop {
			out.Write(line)
		}
	}
	return out.Bytes()
}

// labels numbers the labels from 1, in order of first appearance.
func labels(data []byte) map[string]int {
	number := map[string]int{}
	for line := range bytes.Lines(data) {
		for label := range labelsOf(line) {
			if _, ok := number[label]; !ok {
				number[label] = len(number) + 1
			}
		}
	}
	return number
}

// labelsOf yields the labels of a line, which are its first word, separated by commas.
func labelsOf(line []byte) iter.Seq[string] {
	first, _, _ := bytes.Cut(line, []byte(" "))
	return strings.SplitSeq(string(bytes.TrimSpace(first)), ",")
}

// hungElsewhere moves every tenth node that has a grandparent below that grandparent. Grandparents
// are those of the file, regardless of other moves.
func hungElsewhere(tree []byte) []byte {
	parent, order := edges(tree)
	var out bytes.Buffer
	n := 0
	for _, child := range order {
		at := parent[child]
		if up, ok := parent[at]; ok {
			if n++; n%every == 0 {
				at = up
			}
		}
		fmt.Fprintln(&out, at, child)
	}
	return out.Bytes()
}

// fewerLevels removes every third internal node that is neither a label nor a root, and moves its
// children to its parent.
func fewerLevels(tree []byte, label map[string]int) []byte {
	parent, order := edges(tree)
	gone, seen := map[string]bool{}, map[string]bool{}
	for _, child := range order {
		at := parent[child]
		if _, below := parent[at]; !below || seen[at] || label[at] > 0 {
			continue
		}
		seen[at] = true
		gone[at] = len(seen)%manyOf == 0
	}
	var out bytes.Buffer
	for _, child := range order {
		at := parent[child]
		for gone[at] {
			at = parent[at]
		}
		if !gone[child] {
			fmt.Fprintln(&out, at, child)
		}
	}
	return out.Bytes()
}

// edges reads lines `PARENT CHILD`. It returns each child's parent, and the children in order.
func edges(tree []byte) (parent map[string]string, order []string) {
	parent = map[string]string{}
	for line := range strings.Lines(string(tree)) {
		if f := strings.Fields(line); len(f) == 2 && !strings.HasPrefix(line, "#") {
			parent[f[1]] = f[0]
			order = append(order, f[1])
		}
	}
	return parent, order
}
