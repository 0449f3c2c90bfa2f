package taxonomy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"taxon/internal/data/textio"
	"taxon/internal/fs"
)

// askGraph is added to errors that do not occur in undirected graphs.
const askGraph = " (is this an undirected graph? then use ‹graph›)"

// maxNodes leaves room in int32 for as many spawned leaves and a virtual root.
const maxNodes = math.MaxInt32/2 - 1

// Read reads a hierarchy with one edge per line: "parent child", separated by blanks or tabs. '#'
// begins a comment at the start of a line or after a blank. A name may be a JSON string; it must be
// one if it begins with '#' or a quote. Empty lines are skipped. source is the input's name in
// errors and warnings. Errors are *fs.InputError with the line at fault, except for errors of r
// itself. Repeated edges are dropped and counted in a warning.
func Read(r io.Reader, source string) (*Structure, []string, error) {
	return newBuilder(false).hierarchy(r, source)
}

// hierarchy reads and checks a directed structure.
func (b *builder) hierarchy(r io.Reader, source string) (*Structure, []string, error) {
	if err := b.read(r, source); err != nil {
		return nil, nil, err
	}
	if len(b.s.Parents) == 0 {
		return nil, nil, &fs.InputError{Path: source, Msg: "empty structure: expected lines of two names, `parent child` " +
			"(leave out ‹hierarchy› to train without one)"}
	}
	if cycle := b.s.cycle(); cycle != nil {
		last := 0 // the line that closed the cycle
		for _, e := range cycle {
			last = max(last, b.lineOf[e])
		}
		msg := b.s.describeCycle(cycle) + askGraph
		return nil, nil, &fs.InputError{Path: source, Line: int64(last), Msg: msg}
	}
	var warnings []string
	if b.repeats > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: repeated edges dropped: %d (the first in line %d)", source, b.repeats,
			b.firstRepeat))
	}
	return b.s, warnings, nil
}

// ReadTree is like Read, but returns an error if a node has several parents.
func ReadTree(r io.Reader, source string) (*Structure, []string, error) {
	b := newBuilder(false)
	s, warnings, err := b.hierarchy(r, source)
	if err != nil {
		return nil, nil, err
	}
	first := make([]int, len(s.Names)) // index of the edge to the parent, plus one
	for e, c := range s.Children {
		if first[c] == 0 {
			first[c] = e + 1
			continue
		}
		was := first[c] - 1
		return nil, nil, fs.Inputf(source, int64(b.lineOf[e]), "%s has a second parent, %s, after %s in line %d: make this "+
			"a tree, or use ‹dag=first-parent› or graph",
			shorten([]byte(s.Names[c])), shorten([]byte(s.Names[s.Parents[e]])), shorten([]byte(s.Names[s.Parents[was]])),
			b.lineOf[was])
	}
	return s, warnings, nil
}

// ReadGraph reads an undirected graph with one edge per line: "a b", otherwise as Read does.
// Self-loops and edges that are given twice, in either direction, are dropped and counted in one
// warning.
func ReadGraph(r io.Reader, source string) (*Structure, []string, error) {
	b := newBuilder(true)
	if err := b.read(r, source); err != nil {
		return nil, nil, err
	}
	if len(b.s.Parents) == 0 {
		return nil, nil, &fs.InputError{Path: source, Msg: "empty graph: expected lines of two names, `a b`, for the edge " +
			"between them (leave out ‹graph› to train without one)"}
	}
	var warnings []string
	if b.repeats+b.loops > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: edges dropped: %s and %s (the first in line %d)",
			source, plural(b.repeats, "repeated edge"), plural(b.loops, "self-loop"), b.firstRepeat))
	}
	return b.s, warnings, nil
}

func newBuilder(graph bool) *builder {
	return &builder{s: &Structure{}, graph: graph, node: map[string]uint32{}, edge: map[uint64]struct{}{}}
}

// read reads all lines.
func (b *builder) read(r io.Reader, source string) error {
	in := textio.NewReader(r, source)
	for {
		text, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := b.line(in, text); err != nil {
			return err
		}
	}
}

// builder collects the edges of a file.
type builder struct {
	graph       bool
	loops       int
	s           *Structure
	node        map[string]uint32
	edge        map[uint64]struct{}
	lineOf      []int // line of each edge
	repeats     int
	firstRepeat int
}

// line parses one line of the file.
func (b *builder) line(in *textio.Reader, text []byte) error {
	var name [2][]byte
	count := 0
	rest := bytes.TrimLeft(text, blanks)
	for ; len(rest) > 0 && rest[0] != '#'; rest = bytes.TrimLeft(rest, blanks) {
		n, behind, err := textio.CutName(rest)
		if err != nil {
			return in.Errorf("%v", err)
		}
		if rest[0] != '"' { // a quoted name may be any text
			if bytes.ContainsFunc(n, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
				return in.Errorf("the name %s: one with a blank or control character stands in quotes, as a JSON string",
					shorten(n))
			}
			if bytes.IndexByte(n, ',') >= 0 {
				return in.Errorf("comma in the name %s: such a name stands in quotes, as labels are separated by commas",
					shorten(n))
			}
		} else if len(n) == 0 {
			return in.Errorf("a name is empty")
		}
		if count < 2 {
			name[count] = n
		}
		count, rest = count+1, behind
	}
	if count == 0 {
		return nil
	}
	if count != 2 {
		form, hint := "parent child", ""
		if b.graph {
			form = "a b"
		}
		if count == 1 && len(rest) > 0 {
			hint = ` (a name that begins with # stands in quotes: "#b")`
		}
		return in.Errorf("%s where two are expected: `%s`, separated by a blank%s", plural(count, "name"), form, hint)
	}
	for _, n := range name {
		if bytes.HasPrefix(n, []byte("\ufeff")) { // after a blank; textio refuses it at a line's start
			return in.Errorf("byte order mark (U+FEFF) before the name %s: remove it", shorten(n))
		}
	}
	if bytes.Equal(name[0], name[1]) && !b.graph {
		return in.Errorf("self-loop: %s is given as its own parent%s", shorten(name[0]), askGraph)
	}
	if len(b.s.Names) > maxNodes-2 {
		return in.Errorf("more than %d nodes", maxNodes)
	}
	b.add(in.Line(), b.number(name[0]), b.number(name[1]))
	return nil
}

// number returns the node of a name, and creates it if necessary.
func (b *builder) number(name []byte) uint32 {
	n, ok := b.node[string(name)]
	if !ok {
		n = uint32(len(b.s.Names))
		b.s.Names = append(b.s.Names, string(name))
		b.node[b.s.Names[n]] = n
	}
	return n
}

// add adds an edge unless it exists already.
func (b *builder) add(line int, parent, child uint32) {
	key := uint64(parent)<<32 | uint64(child)
	if b.graph && parent > child {
		key = uint64(child)<<32 | uint64(parent)
	}
	_, known := b.edge[key]
	if b.firstRepeat == 0 && (known || parent == child) {
		b.firstRepeat = line
	}
	switch {
	case parent == child:
		b.loops++
		return
	case known:
		b.repeats++
		return
	}
	b.edge[key] = struct{}{}
	b.s.Parents = append(b.s.Parents, parent)
	b.s.Children = append(b.s.Children, child)
	b.lineOf = append(b.lineOf, line)
}

// blanks are the characters that separate names. Other white space is part of a name.
const blanks = " \t"

// plural returns a count with its noun, as in "1 name" and "3 names".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// shorten shortens and quotes a name for a one-line message.
func shorten(name []byte) string {
	const most = 60
	if len(name) > most {
		return strconv.Quote(string(name[:most]) + "...")
	}
	return strconv.Quote(string(name))
}

// ReadFile reads the structure file at a path with the function read: Read, ReadTree or ReadGraph.
func ReadFile(ctx context.Context, files fs.Local, path string, read func(io.Reader, string) (*Structure, []string,
	error)) (*Structure, []string, error) {
	f, err := fs.Open(ctx, files, path)
	if err != nil {
		return nil, nil, err
	}
	var got struct {
		s        *Structure
		warnings []string
	}
	if err := fs.Compute(ctx, func() (err error) {
		defer f.Close()
		got.s, got.warnings, err = read(f, f.Name())
		return err
	}); err != nil {
		return nil, nil, err
	}
	return got.s, got.warnings, nil
}

// WriteFile writes the edges in the form that Read accepts, one per line.
func (s *Structure) WriteFile(path string) error { return fs.WriteFile(path, s.Text()) }

// Text returns the content of the file that WriteFile writes.
func (s *Structure) Text() (b []byte) {
	for e, p := range s.Parents {
		b = append(textio.AppendName(b, s.Names[p]), ' ')
		b = append(textio.AppendName(b, s.Names[s.Children[e]]), '\n')
	}
	return b
}
