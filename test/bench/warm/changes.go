package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"taxon/internal/fs"
	"taxon/test/bench/drive"
)

// every: one in so many documents, classes or nodes has changed.
const every = 10

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
	fewer, without := now, now
	moved := now
	for _, f := range []struct {
		path *string
		text []byte
	}{{&fewer.Train, fewerRows(data)}, {&without.Train, fewerClasses(data)}, {&moved.Tree, hungElsewhere(tree)}} {
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

// fewerClasses leaves out the documents of every tenth label, in order of first appearance.
// A line's first word names its labels, commas between them.
func fewerClasses(data []byte) []byte {
	var out bytes.Buffer
	number := map[string]int{}
	for line := range bytes.Lines(data) {
		first, _, _ := bytes.Cut(line, []byte(" "))
		drop := false
		for label := range strings.SplitSeq(string(bytes.TrimSpace(first)), ",") {
			if _, ok := number[label]; !ok {
				number[label] = len(number) + 1
			}
			drop = drop || number[label]%every == 0
		}
		if !drop {
			out.Write(line)
		}
	}
	return out.Bytes()
}

// hungElsewhere hangs every tenth node that has a grandparent below that; lines are `PARENT CHILD`.
// A node that has moved is nobody's reason to move: grandparents are those of the file.
func hungElsewhere(tree []byte) []byte {
	parent := map[string]string{}
	var order []string
	for line := range strings.Lines(string(tree)) {
		if f := strings.Fields(line); len(f) == 2 && !strings.HasPrefix(line, "#") {
			parent[f[1]] = f[0]
			order = append(order, f[1])
		}
	}
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
