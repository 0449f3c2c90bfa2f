package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"taxon/internal/fs"
)

// files are the inputs of one case, in plain text, which both sides share.
type files struct {
	train, test, tree string
}

// files unpacks a set and keeps its rows with exactly one label, because LIBLINEAR accepts no
// others. A synthetic set is generated.
func (b *bench) files(ctx context.Context, set string) (*files, error) {
	if flags, ok := made[set]; ok {
		return b.make(ctx, set, flags)
	}
	f := &files{train: filepath.Join(b.dir, set+".train.svm"), test: filepath.Join(b.dir, set+".test.svm"),
		tree: filepath.Join(b.data, set, trees[set])}
	for from, to := range map[string]string{"train.svm.xz": f.train, "test.svm.xz": f.test} {
		if _, err := os.Stat(to); err == nil {
			continue
		}
		if err := singleLabel(filepath.Join(b.data, set, from), to); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// make generates a set by test/bench/dense.
func (b *bench) make(ctx context.Context, set string, flags []string) (*files, error) {
	dir := filepath.Join(b.dir, set)
	f := &files{train: filepath.Join(dir, "train.svm"), test: filepath.Join(dir, "test.svm"), tree: filepath.Join(dir,
		trees[set])}
	if _, err := os.Stat(dir); err == nil {
		return f, nil
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", "./test/bench/dense", "--out", dir}, flags...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("test/bench/dense: %w: %s", err, out)
	}
	return f, nil
}

func singleLabel(from, to string) error {
	in, err := fs.Open(context.Background(), fs.Local{}, from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		label, _, _ := bytes.Cut(lines.Bytes(), []byte(" "))
		if len(label) > 0 && !bytes.ContainsRune(label, ',') {
			w.Write(lines.Bytes())
			w.WriteByte('\n')
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return out.Close()
}

// repeatFile writes concatenated copies of a file. It returns the number of lines of one copy.
func repeatFile(from, to string, copies int) (lines int, err error) {
	b, err := os.ReadFile(from)
	if err != nil {
		return 0, err
	}
	return bytes.Count(b, []byte("\n")), os.WriteFile(to, bytes.Repeat(b, copies), 0o600)
}
