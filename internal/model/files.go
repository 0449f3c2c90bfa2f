package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"taxon/internal/data/taxonomy"
	textlines "taxon/internal/data/textio"
	"taxon/internal/fs"
)

// These are the names of a model's files besides its weight shards.
const (
	fileManifest   = "manifest.json"
	fileStructure  = "structure"
	fileLabels     = "labels"
	fileFeatures   = "features"
	fileVocabulary = "vocabulary"
	fileTrace      = "trace.jsonl"
	fileCutoffs    = "cutoffs.json" // multi-label models only

	fileCalibration = "calibration.json" // calibrated models only
)

const (
	structureMagic  = "taxon structure 1"
	labelsMagic     = "taxon labels 1"
	vocabularyMagic = "taxon vocabulary 1"
	noHierarchy     = "names\tnone\n"
	featuresMagic   = "TXFEATS\x01"
)

// encodeStructure encodes the tree and the user's hierarchy.
func encodeStructure(m *Meta) []byte {
	var b bytes.Buffer
	t := m.Tree
	fmt.Fprintf(&b, "%s\nnodes\t%d\n", structureMagic, t.Len())
	for n := range t.Len() {
		kind, _ := kindName(t.Kind[n])
		role := "internal"
		if t.Leaf[n] {
			role = "terminal"
		}
		name := textlines.Field(t.Name[n])
		if t.Kind[n] == taxonomy.Virtual {
			name = "-"
		}
		fmt.Fprintf(&b, "%d\t%s\t%s\t%d\t%s\n", t.Parent[n], kind, role, t.Label[n], name)
	}
	encodeHierarchy(&b, m.Structure)
	return b.Bytes()
}

// encodeHierarchy encodes the user's hierarchy: all names, then the edges as indices of names.
func encodeHierarchy(b *bytes.Buffer, s *taxonomy.Structure) {
	if s == nil {
		b.WriteString(noHierarchy)
		return
	}
	fmt.Fprintf(b, "names\t%d\n", len(s.Names))
	for _, name := range s.Names {
		b.WriteString(textlines.Field(name) + "\n")
	}
	fmt.Fprintf(b, "edges\t%d\n", len(s.Parents))
	for i, p := range s.Parents {
		fmt.Fprintf(b, "%d\t%d\n", p, s.Children[i])
	}
}

// lines splits a small text file into tab-separated fields, and adds the place to errors.
type lines struct {
	path string
	rest string
	line int64
}

// next returns the fields of the next line.
func (l *lines) next(fields int) ([]string, error) {
	if l.rest == "" {
		return nil, l.fail("the file ends early")
	}
	text, rest, ok := strings.Cut(l.rest, "\n")
	l.line++
	if !ok {
		return nil, l.fail("the last line is cut off")
	}
	l.rest = rest
	f := strings.Split(text, "\t")
	if len(f) != fields {
		return nil, l.fail(fmt.Sprintf("%d fields, want %d", len(f), fields))
	}
	return f, nil
}

// fail returns an error at the current line.
func (l *lines) fail(msg string) error { return &fs.InputError{Path: l.path, Line: l.line, Msg: msg} }

// header reads the line that identifies the kind of file.
func (l *lines) header(want string) error {
	f, err := l.next(1)
	if err == nil && f[0] != want {
		err = l.fail(fmt.Sprintf("begins with %q, want %q", clip(f[0]), want))
	}
	return err
}

// count reads a line "key<TAB>n". n is at most the number of remaining bytes, so that a damaged
// number cannot make the reader allocate more than the file justifies.
func (l *lines) count(key string) (int, error) {
	f, err := l.next(2)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(f[1])
	if f[0] != key || err != nil || n < 0 || n > len(l.rest) {
		return 0, l.fail(fmt.Sprintf("want %q and a number of lines", key))
	}
	return n, nil
}

// end returns an error unless the file ends here.
func (l *lines) end() error {
	if l.rest != "" {
		l.line++
		return l.fail("text after the end")
	}
	return nil
}

// clip shortens a text for an error.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40]
	}
	return s
}

// parseStructure is the inverse of encodeStructure. It also computes the depths of the nodes.
// checkTree verifies the tree.
func parseStructure(path string, b []byte) (*taxonomy.Tree, *taxonomy.Structure, error) {
	l := &lines{path: path, rest: string(b)}
	if err := l.header(structureMagic); err != nil {
		return nil, nil, err
	}
	n, err := l.count("nodes")
	if err != nil {
		return nil, nil, err
	}
	t := &taxonomy.Tree{
		Parent: make([]int32, n), Kind: make([]taxonomy.Kind, n), Name: make([]string, n),
		Label: make([]int32, n), Depth: make([]int32, n), Leaf: make([]bool, n),
	}
	for i := range n {
		f, err := l.next(5)
		if err != nil {
			return nil, nil, err
		}
		parent, err1 := strconv.ParseInt(f[0], 10, 32)
		label, err2 := strconv.ParseInt(f[3], 10, 32)
		kind, ok := kindOf(f[1])
		if err1 != nil || err2 != nil || !ok || f[2] != "terminal" && f[2] != "internal" {
			return nil, nil, l.fail("not a node (parent, kind, role, label, name)")
		}
		if parent < -1 || parent >= int64(i) {
			return nil, nil, l.fail("a parent must precede its children")
		}
		t.Parent[i], t.Kind[i], t.Leaf[i], t.Label[i], t.Name[i] = int32(parent), kind, f[2] == "terminal", int32(label),
			textlines.FromField(f[4])
		if kind == taxonomy.Virtual {
			t.Name[i] = ""
		}
		if parent >= 0 {
			t.Depth[i] = t.Depth[parent] + 1
		}
	}
	s, err := parseHierarchy(l)
	return t, s, err
}

// parseHierarchy is the inverse of encodeHierarchy.
func parseHierarchy(l *lines) (*taxonomy.Structure, error) {
	if l.rest == noHierarchy {
		return nil, nil
	}
	n, err := l.count("names")
	if err != nil {
		return nil, err
	}
	s := &taxonomy.Structure{Names: make([]string, n)}
	for i := range s.Names {
		f, err := l.next(1)
		if err != nil {
			return nil, err
		}
		s.Names[i] = textlines.FromField(f[0])
	}
	if n, err = l.count("edges"); err != nil {
		return nil, err
	}
	s.Parents, s.Children = make([]uint32, n), make([]uint32, n)
	for i := range n {
		f, err := l.next(2)
		if err != nil {
			return nil, err
		}
		p, err1 := strconv.ParseUint(f[0], 10, 32)
		c, err2 := strconv.ParseUint(f[1], 10, 32)
		if err1 != nil || err2 != nil {
			return nil, l.fail("not an edge (number of the parent, number of the child)")
		}
		s.Parents[i], s.Children[i] = uint32(p), uint32(c)
	}
	return s, l.end()
}

// encodeLabels encodes the labels with their counts.
func encodeLabels(m *Meta) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nlabels\t%d\n", labelsMagic, len(m.Labels))
	for i, name := range m.Labels {
		fmt.Fprintf(&b, "%d\t%s\n", m.LabelCounts[i], textlines.Field(name))
	}
	return b.Bytes()
}

// parseLabels is the inverse of encodeLabels.
func parseLabels(path string, b []byte) ([]string, []uint32, error) {
	l := &lines{path: path, rest: string(b)}
	if err := l.header(labelsMagic); err != nil {
		return nil, nil, err
	}
	n, err := l.count("labels")
	if err != nil {
		return nil, nil, err
	}
	names, counts := make([]string, n), make([]uint32, n)
	for i := range names {
		f, err := l.next(2)
		if err != nil {
			return nil, nil, err
		}
		c, err := strconv.ParseUint(f[0], 10, 32)
		if err != nil {
			return nil, nil, l.fail("not a label (instances, name)")
		}
		counts[i], names[i] = uint32(c), textlines.FromField(f[1])
	}
	return names, counts, l.end()
}

// encodeVocabulary encodes words with their document frequencies.
func encodeVocabulary(t *Text) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nwords\t%d\n", vocabularyMagic, len(t.Vocabulary))
	for i, word := range t.Vocabulary {
		b.WriteString(strconv.FormatFloat(t.IDF[i], 'g', -1, 64) + "\t" + word + "\n")
	}
	return b.Bytes()
}

// parseVocabulary is the inverse of encodeVocabulary.
func parseVocabulary(path string, b []byte) (*Text, error) {
	l := &lines{path: path, rest: string(b)}
	if err := l.header(vocabularyMagic); err != nil {
		return nil, err
	}
	n, err := l.count("words")
	if err != nil {
		return nil, err
	}
	t := &Text{Vocabulary: make([]string, n), IDF: make([]float64, n)}
	for i := range n {
		f, err := l.next(2)
		if err != nil {
			return nil, err
		}
		v, err := strconv.ParseFloat(f[0], 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || f[1] == "" {
			return nil, l.fail("not a word (idf, word)")
		}
		t.IDF[i], t.Vocabulary[i] = v, f[1]
	}
	return t, l.end()
}

// encodeFeatures encodes the input index of each column: magic, u32 count, count x u32,
// little-endian.
func encodeFeatures(feature []uint32) []byte {
	b := make([]byte, 0, len(featuresMagic)+4+4*len(feature))
	b = append(b, featuresMagic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(feature)))
	for _, f := range feature {
		b = binary.LittleEndian.AppendUint32(b, f)
	}
	return b
}

// parseFeatures is the inverse of encodeFeatures.
func parseFeatures(path string, b []byte) ([]uint32, error) {
	head := len(featuresMagic) + 4
	if len(b) < head || string(b[:len(featuresMagic)]) != featuresMagic {
		return nil, &fs.InputError{Path: path, Msg: "not a feature table"}
	}
	n := int(binary.LittleEndian.Uint32(b[len(featuresMagic):]))
	if len(b) != head+4*n {
		return nil, &fs.InputError{Path: path, Msg: fmt.Sprintf("%d bytes, want %d for %d features", len(b), head+4*n, n)}
	}
	feature := make([]uint32, n)
	for i := range feature {
		feature[i] = binary.LittleEndian.Uint32(b[head+4*i:])
	}
	return feature, nil
}

// encodeTrace encodes the trace as lines of JSON.
func encodeTrace(rows []TraceRow) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, r := range rows {
		if err := enc.Encode(r); err != nil {
			return nil, fmt.Errorf("encode trace: %w", err)
		}
	}
	return b.Bytes(), nil
}

// parseTrace is the inverse of encodeTrace.
func parseTrace(path string, b []byte) ([]TraceRow, error) {
	var rows []TraceRow
	for i, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if line == "" {
			continue
		}
		var r TraceRow
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, &fs.InputError{Path: path, Line: int64(i) + 1, Msg: "broken JSON: " + err.Error()}
		}
		rows = append(rows, r)
	}
	return rows, nil
}
