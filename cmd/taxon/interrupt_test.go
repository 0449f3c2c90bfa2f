//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"taxon/internal/cluster/jobs"
)

// silentPipe is a pipe whose writer says nothing until the test ends.
func silentPipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	writer, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Close() })
	return path
}

// Every verb ends with the first signal while it waits for an input, whichever of its inputs that is, and
// leaves nothing behind.
func TestInterruptedWhileAnInputIsSilent(t *testing.T) {
	dir, pipe, model := t.TempDir(), silentPipe(t), animals(t, 10)
	data, text := filepath.Join(dir, "data.svm"), filepath.Join(dir, "data.tsv")
	for path, content := range map[string]string{data: "a 1:1\nb 2:1\na 1:2\nb 2:2\n", text: "a\tthe dog\nb\tthe cat\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{
		"train --data $PIPE --out $OUT", "train --data $DATA --hierarchy $PIPE --out $OUT",
		"train --data $DATA --graph $PIPE --out $OUT", "train --data $DATA --test $PIPE --out $OUT",
		"train --data $DATA --instance-weights $PIPE --out $OUT", "train --data $TEXT --text --x stop-words=$PIPE --out $OUT",
		"ingest --data $PIPE --out $OUT", "ingest --data $PIPE --text --out $OUT",
		"info $PIPE", "info --plan --data $DATA --hierarchy $PIPE", "check --data $PIPE",
		"check --data $DATA --hierarchy $PIPE", "predict --model $MODEL --data $PIPE", "eval --model $MODEL --data $PIPE",
		"explain --model $MODEL --data $PIPE --row 2", "vectors --model $MODEL --data $PIPE", "tree --data $PIPE --out $OUT",
		"tune --data $PIPE --out $OUT", "report $MODEL --data $PIPE --out $OUT",
		"submit --coordinator 127.0.0.1:1 --data $PIPE",
	} {
		vars := map[string]string{"PIPE": pipe, "DATA": data, "TEXT": text, "MODEL": model, "OUT": filepath.Join(dir, "out")}
		args := strings.Fields(line)
		for i, arg := range args {
			args[i] = os.Expand(arg, func(name string) string { return vars[name] })
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		var stderr bytes.Buffer
		ended := make(chan int, 1)
		go func() { ended <- execute(ctx, args, strings.NewReader(""), io.Discard, &stderr) }()
		select {
		case code := <-ended:
			cancel(nil)
			t.Errorf("%s: ends with %d before the signal: %s", line, code, stderr.String())
			continue
		case <-time.After(50 * time.Millisecond): // it may have begun to wait or not: both must end
		}
		cancel(jobs.ErrInterrupted)
		select {
		case code := <-ended:
			if code != exitInterrupted {
				t.Errorf("%s: exit status %d: %s", line, code, stderr.String())
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: goes on after the signal", line)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "out*")); len(left) > 0 {
			t.Errorf("%s: leaves %q", line, left)
		}
	}
}

// A pipe in the place of any file of a model is refused at once, by all that open it.
func TestPipeInAModelsFolder(t *testing.T) {
	files, err := os.ReadDir(animals(t, 10))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		model := animals(t, 10)
		path := filepath.Join(model, f.Name())
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
		for _, line := range []string{"info $MODEL", "predict --model $MODEL --data -",
			"explain --model $MODEL --data - --row 1", "export --model $MODEL --out -", "serve $MODEL --listen 127.0.0.1:0"} {
			if code, _, stderr := runTaxon(t, "1:1\n", line, map[string]string{"MODEL": model}); code != exitUsage ||
				!strings.Contains(stderr, path) && !strings.Contains(stderr, model) {
				t.Errorf("%s with a pipe for %s: exit status %d: %s", line, f.Name(), code, stderr)
			}
		}
	}
}
