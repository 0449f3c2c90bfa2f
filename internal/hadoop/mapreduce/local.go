package mapreduce

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
)

// Local runs jobs as processes of this machine: the tasks that Hadoop would run, with a shuffle
// between them. It is for machines without Hadoop, and for tests.
type Local struct {
	// Command returns the command line of a task. kind is "map" or "reduce".
	Command func(kind string, j *Job) []string
	Threads int
	// Between may change an attempt, for tests. It may be nil.
	Between func(ctx context.Context, kind string, task, attempt int, cmd *exec.Cmd, run func() error) error

	runs atomic.Uint64
}

const (
	localFixed    = 0.02 // seconds to start a process
	localAttempts = 4    // as many as Hadoop's
	errorBytes    = 2000 // shown of the end of a failed task's output
)

// Slots implements Runner.
func (l *Local) Slots() int { return max(l.Threads, 1) }

// Fixed implements Runner.
func (l *Local) Fixed() float64 { return localFixed }

// Run implements Runner.
func (l *Local) Run(ctx context.Context, j *Job) error {
	dir, done, err := fs.TempDir("shuffle")
	if err != nil {
		return err
	}
	defer done()
	run := l.runs.Add(1)
	spills := make([]*spill, len(j.Lines))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(l.Slots())
	for n, line := range j.Lines {
		group.Go(func() error {
			return l.retry(within, "map", run, n, j, func(name string, cmd *exec.Cmd) (end func() error, err error) {
				cmd.Stdin = strings.NewReader(line + "\n")
				s := &spill{path: filepath.Join(dir, name)}
				if end, err = s.capture(cmd); err == nil {
					spills[n] = s
				}
				return end, err
			})
		})
	}
	if err := group.Wait(); err != nil || len(j.Keys) == 0 {
		return err
	}
	group, within = errgroup.WithContext(ctx)
	group.SetLimit(l.Slots())
	for r := range j.Reducers {
		group.Go(func() error {
			return l.retry(within, "reduce", run, r, j, func(_ string, cmd *exec.Cmd) (func() error, error) {
				return feed(within, cmd, spills, r, j.Reducers)
			})
		})
	}
	return group.Wait()
}

// retry runs a task's process until an attempt succeeds or localAttempts have failed. connect attaches
// its input and output, and returns a function that is called when the process has ended.
func (l *Local) retry(ctx context.Context, kind string, run uint64, task int, j *Job, connect func(name string,
	cmd *exec.Cmd) (func() error, error)) error {
	var last error
	for attempt := range localAttempts {
		argv := l.Command(kind, j)
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		name := fmt.Sprintf("local_%d_%d_%s_%06d_%d", os.Getpid(), run, kind[:1], task, attempt)
		cmd.Env = append(os.Environ(), AttemptVariable+"="+name)
		tail := &tailWriter{}
		cmd.Stderr = tail
		once := func() error {
			end, err := connect(name, cmd)
			if err != nil {
				return err
			}
			err = cmd.Start()
			if err == nil {
				err = cmd.Wait()
			}
			return errors.Join(err, end())
		}
		var err error
		if l.Between != nil {
			err = l.Between(ctx, kind, task, attempt, cmd, once)
		} else {
			err = once()
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		last = fmt.Errorf("%s task %d failed: %w%s", kind, task, err, tail.said())
	}
	return last
}

// tailWriter keeps the end of a task's output, without the lines for Hadoop.
type tailWriter struct{ b []byte }

func (t *tailWriter) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > 4*errorBytes {
		t.b = slices.Clone(t.b[len(t.b)-2*errorBytes:])
	}
	return len(p), nil
}

func (t *tailWriter) said() string {
	var lines []string
	for line := range strings.Lines(string(t.b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "reporter:") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	text := lines[len(lines)-1]
	return ": " + text[max(0, len(text)-errorBytes):]
}

// spill is a map task's output. It consists of a file and the position of each record in it.
type spill struct {
	path    string
	records []record
}

type record struct {
	key      string
	at, size int64
}

// capture writes a process's output to the file and indexes its records.
func (s *spill) capture(cmd *exec.Cmd) (func() error, error) {
	f, err := vfs.Output(s.path, os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	cmd.Stdout = f
	return func() error {
		defer f.Close()
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return s.index(bufio.NewReaderSize(f, 1<<20))
	}, nil
}

func (s *spill) index(r io.Reader) error {
	s.records = nil
	at := int64(0)
	for {
		key, value, err := readRecord(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		size := int64(8 + len(key) + len(value))
		s.records = append(s.records, record{string(key), at, size})
		at += size
	}
}

// feed sends a reducer its records, sorted by key.
func feed(ctx context.Context, cmd *exec.Cmd, spills []*spill, reducer, reducers int) (func() error, error) {
	type part struct {
		spill int
		record
	}
	var parts []part
	for n, s := range spills {
		for _, r := range s.records {
			if partition([]byte(r.key), reducers) == reducer {
				parts = append(parts, part{n, r})
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.key, b.key) })
	files := make([]*os.File, len(spills))
	closeAll := func() error {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
		return nil
	}
	for n, s := range spills {
		var err error
		if files[n], err = fs.OpenRegular(s.path); err != nil {
			return nil, errors.Join(err, closeAll())
		}
	}
	next := 0
	cmd.Stdin = readerFunc(func(into *bytes.Buffer) error {
		if next == len(parts) {
			return io.EOF
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		p := parts[next]
		next++
		_, err := io.Copy(into, io.NewSectionReader(files[p.spill], p.at, p.size))
		return err
	})
	return closeAll, nil
}

// readerFunc returns a reader of a function that fills a buffer piece by piece.
func readerFunc(fill func(*bytes.Buffer) error) io.Reader {
	return &filledReader{fill: fill}
}

type filledReader struct {
	buf  bytes.Buffer
	fill func(*bytes.Buffer) error
}

func (r *filledReader) Read(p []byte) (int, error) {
	for r.buf.Len() == 0 {
		if err := r.fill(&r.buf); err != nil {
			return 0, err
		}
	}
	return r.buf.Read(p)
}
