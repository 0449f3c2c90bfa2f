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

// every: one in so many documents, classes or nodes has changed. manyOf is for a hierarchy that
// has grown: nearly one class or inner node in three is new.
const (
	every  = 10
	manyOf = 3
)

// change is what has changed since the model was trained.
type change struct {
	name   string
	before drive.Files // that the model is trained on
	flags  []string    // of what is trained now
}

// changes writes the files of before.
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

// text is what a file, perhaps compressed, holds.
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

// fewerClasses leaves out the documents of every n-th label, in order of first appearance;
// training prunes their nodes, and whole branches that are left without documents.
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

// labelsOf gives the labels that a line's first word names, commas between them.
func labelsOf(line []byte) iter.Seq[string] {
	first, _, _ := bytes.Cut(line, []byte(" "))
	return strings.SplitSeq(string(bytes.TrimSpace(first)), ",")
}

// hungElsewhere hangs every tenth node that has a grandparent below that. A node that has
// moved is nobody's reason to move: grandparents are those of the file.
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

// fewerLevels takes every third inner node out that is no label and no root, and hangs its
// children below its parent.
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

// edges reads lines `PARENT CHILD`: each child's parent, and the children in order.
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
