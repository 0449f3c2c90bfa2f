package mapreduce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"taxon/internal/fs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// folder is the path of a state folder. Its methods return paths within it.
type folder string

func (d folder) join(names ...string) string { return fs.Join(string(d), names...) }
func (d folder) job() string                 { return d.join("job") }
func (d folder) state() string               { return d.join("state") }
func (d folder) steps() string               { return d.join("steps") }
func (d folder) step(n uint32) string        { return d.join("steps", fmt.Sprintf("%010d", n)) }
func (d folder) index(n uint32) string       { return fs.Join(d.step(n), indexFile) }
func (d folder) runs() string                { return d.join("runs") }
func (d folder) run(id string) string        { return d.join("runs", id) }

// These are the names of files within the folders of steps and runs.
const (
	indexFile = "index"
	linesFile = "lines" // input of the map tasks
	runFile   = "run"   // MapReduceRun
	idFile    = "hadoop-job"
)

// stepNumbers lists the steps that have a folder, ascending.
func (d folder) stepNumbers() ([]uint32, error) {
	names, err := fs.ReadDirNames(d.steps())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fs.Explain(d.steps(), err)
	}
	var out []uint32
	for _, n := range names {
		if s, err := strconv.ParseUint(n, 10, 32); err == nil {
			out = append(out, uint32(s))
		}
	}
	slices.Sort(out)
	return out, nil
}

// writeMessage writes a line with the message's kind, checksum and length, then the message.
func writeMessage(path, kind string, m proto.Message) error {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return fs.WriteFile(path, append(fmt.Appendf(nil, "taxon %s 1 %08x %d\n", kind, store.Checksum(b), len(b)), b...))
}

// readMessage reads what writeMessage wrote. If it is damaged, the error names the file.
func readMessage(ctx context.Context, path, kind string, m proto.Message) error {
	b, err := fs.ReadFile(ctx, path)
	if err != nil {
		return fs.Explain(path, err)
	}
	if err := parseMessage(b, kind, m); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func parseMessage(b []byte, kind string, m proto.Message) error {
	head, body, ok := bytes.Cut(b, []byte("\n"))
	var sum uint32
	var size int
	rest, known := strings.CutPrefix(string(head), "taxon "+kind+" 1 ")
	if n, err := fmt.Sscanf(rest, "%08x %d", &sum, &size); !ok || !known || err != nil || n != 2 || size != len(body) ||
		store.Checksum(body) != sum {
		return fmt.Errorf("is not a complete %s file", kind)
	}
	if err := proto.Unmarshal(body, m); err != nil {
		return fmt.Errorf("is no %s file: %w", kind, err)
	}
	return nil
}

// readIndex reads a step's index. A step without an index has no committed segments.
func (d folder) readIndex(ctx context.Context, step uint32) (*taxonv1.StepIndex, error) {
	x := &taxonv1.StepIndex{}
	err := readMessage(ctx, d.index(step), "index", x)
	if errors.Is(err, os.ErrNotExist) {
		return x, nil
	}
	return x, err
}

// addSegments adds segments to a step's index. Only one process may do so at a time.
func (d folder) addSegments(ctx context.Context, step uint32, more []*taxonv1.StepSegment) error {
	x, err := d.readIndex(ctx, step)
	if err != nil {
		return err
	}
	for _, s := range more {
		if !slices.ContainsFunc(x.Segments, func(o *taxonv1.StepSegment) bool { return o.GetFile() == s.GetFile() }) {
			x.Segments = append(x.Segments, s)
		}
	}
	return writeMessage(d.index(step), "index", x)
}
