// Package lint looks for likely mistakes in labelled data before a training: rows that are in both
// training and test data, labels that differ by one letter, classes that are indistinguishable, a
// hierarchy whose names do not match the labels.
//
// Findings are not errors. Run returns an error only if the data cannot be read.
package lint

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strings"

	"taxon/internal/data/dataset"
	"taxon/internal/data/table"
	"taxon/internal/data/taxonomy"
	"taxon/internal/data/text"
	"taxon/internal/fs"
	"taxon/internal/ui/progress"
)

// Options says which data are checked. Data is required.
type Options struct {
	Data string

	// Test is the path of test data. It may be empty.
	Test string

	// Hierarchy is the path of a hierarchy. It is empty if there is none, or if it is derived from
	// labels that are paths.
	Hierarchy string
	Text      bool
	ZeroBased bool
	Table     table.Options

	// TestLabels is the path of the test data's labels. It is set only if Test is a matrix.
	TestLabels string
	Files      fs.Local
}

// Report is the output of `taxon check --json`.
type Report struct {
	Instances     int64     `json:"instances"`
	Classes       int       `json:"classes"`
	TestInstances int64     `json:"test_instances,omitempty"`
	Findings      []Finding `json:"findings"`
}

// Finding is one kind of likely mistake.
type Finding struct {
	// What is the key of the finding. docs/formats.md has a table of the keys.
	What  string `json:"what"`
	Count int64  `json:"count"`

	// About explains the finding.
	About string `json:"about"`

	// Examples has a few examples.
	Examples []string `json:"examples"`
}

// examples is the largest number of examples of a finding.
const examples = 5

// key is a hash of a row's content.
type key [16]byte

// class holds the statistics of a label.
type class struct {
	rows int64
	// sum of its rows' keys; classes of equal rows have equal sums
	sum [2]uint64
}

// side holds the statistics of one of the two data sets, training or test.
type side struct {
	rows     map[key]int32 // content -> index in sets of the labels of its first row
	sets     []string      // distinct label sets
	setOf    map[string]int32
	classes  map[string]*class
	order    []string // labels in order of first appearance
	features map[string]bool
	n        int64

	broken   int64 // invalid rows that were skipped
	brokenAt []string

	again, contradict int64
	againAt, otherAt  []string
}

// Run reads all data and reports what it found.
func Run(ctx context.Context, o Options, ui progress.Reporter) (*Report, error) {
	train, err := read(ctx, o, o.Data, ui, nil)
	if err != nil {
		return nil, err
	}
	r := &Report{Instances: train.n, Classes: len(train.classes), Findings: []Finding{}}
	add := func(what string, count int64, about string, list []string) {
		if count > 0 {
			r.Findings = append(r.Findings, Finding{what, count, about, list[:min(len(list), examples)]})
		}
	}
	add("broken", train.broken, broken, train.brokenAt)
	add("repeated", train.again, "rows that occur earlier in the data, with the same labels", train.againAt)
	add("contradictory", train.contradict, "rows that occur earlier in the data, with other labels: no model "+
		"can get both right", train.otherAt)
	train.ofClasses(add)
	if lists := o.Table.Lists(train.order); len(lists) > 0 {
		add("lists", int64(len(lists)), table.ListsMean, lists)
	}
	if o.Test != "" {
		if err := ofTest(ctx, o, train, r, ui, add); err != nil {
			return nil, err
		}
	}
	return r, ofHierarchy(ctx, o, train, add)
}

// broken is the explanation of the finding "broken" for both data sets.
const broken = "rows that can't be read: ‹skip-broken› passes over them, without it they are an error"

// ofTest checks the test data against the training data.
func ofTest(ctx context.Context, o Options, train *side, r *Report, ui progress.Reporter, add func(string, int64,
	string, []string)) error {
	o.Table.Labels = o.TestLabels
	leak := int64(0)
	var at []string
	test, err := read(ctx, o, o.Test, ui, func(name string, k key) {
		if _, ok := train.rows[k]; ok {
			leak++
			at = append(at, name)
		}
	})
	if err != nil {
		return err
	}
	r.TestInstances = test.n
	add("test_broken", test.broken, broken, test.brokenAt)
	add("in_both", leak, "rows of the test data that are also in the training data: the measures will be too good", at)
	var unknown []string
	for _, label := range test.order {
		if train.classes[label] == nil {
			unknown = append(unknown, label)
		}
	}
	add("test_labels_only", int64(len(unknown)), "labels that only the test data have: the model never predicts them",
		unknown)
	var only []string
	for f := range test.features {
		if !train.features[f] {
			only = append(only, f)
		}
	}
	slices.Sort(only)
	add("test_features_only", int64(len(only)), "features that only the test data have: the model ignores them", only)
	return nil
}

// ofHierarchy compares the hierarchy's names with the labels.
func ofHierarchy(ctx context.Context, o Options, train *side, add func(string, int64, string, []string)) error {
	var s *taxonomy.Structure
	var err error
	switch {
	case o.Hierarchy != "" && o.Hierarchy != "from-labels":
		s, _, err = taxonomy.ReadFile(ctx, o.Files, o.Hierarchy, taxonomy.Read)
	case o.Table.PathSeparator != "":
		s, err = taxonomy.OfPaths(train.order, o.Table.PathSeparator)
	}
	if err != nil || s == nil {
		return err
	}
	inside, parent := map[string]bool{}, make([]bool, len(s.Names))
	for _, name := range s.Names {
		inside[name] = true
	}
	for _, p := range s.Parents {
		parent[p] = true
	}
	var outside, empty, inner []string
	for _, label := range train.order {
		if !inside[label] {
			outside = append(outside, label)
		}
	}
	for n, name := range s.Names {
		switch has := train.classes[name] != nil; {
		case !has && !parent[n]:
			empty = append(empty, name)
		case has && parent[n]:
			inner = append(inner, name)
		}
	}
	add("outside_hierarchy", int64(len(outside)), "labels that the hierarchy lacks: they learn from no neighbours",
		outside)
	add("empty_leaves", int64(len(empty)), "leaves of the hierarchy without a row", empty)
	add("inner_labels", int64(len(inner)), "labels of nodes that have children: each gets a leaf of its own", inner)
	return nil
}

// read reads one data set and calls each for every row.
func read(ctx context.Context, o Options, path string, ui progress.Reporter, each func(name string,
	k key)) (*side, error) {
	s := &side{rows: map[key]int32{}, setOf: map[string]int32{}, classes: map[string]*class{}, features: map[string]bool{}}
	text := o.Text || len(o.Table.Text) > 0
	r, err := dataset.OpenReader(ctx, o.Files, path, dataset.ReaderOptions{Text: text, ZeroBased: o.ZeroBased,
		Table: o.Table, Use: table.Use{Labels: true, Features: true, KeepBroken: true}})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	line := ui.StartBytes("check: "+path, max(0, r.Size()))
	defer line.Done()
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			s.broken = r.Counts().Broken
			return s, nil
		}
		if err == nil && s.n%4096 == 0 {
			line.Set(r.BytesRead())
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(fs.Inputf(path, row.Line, "").Error(), ": ")
		if row.Broken {
			s.brokenAt = appendExample(s.brokenAt, name)
			continue
		}
		k := s.add(row, text, name)
		if each != nil {
			each(name, k)
		}
	}
}

func (s *side) add(row *dataset.Row, isText bool, at string) key {
	s.n++
	h := sha256.New()
	if isText {
		for _, word := range text.Words(row.Text) {
			h.Write([]byte(word)) // a hash's Write never fails
			h.Write([]byte{' '})
			if !s.features[word] {
				s.features[word] = true
			}
		}
	}
	var b []byte
	for i, x := range row.Index {
		b = binary.LittleEndian.AppendUint32(b[:0], x)
		if !s.features[string(b)] {
			s.features[string(b)] = true
		}
		h.Write(binary.LittleEndian.AppendUint32(b, math.Float32bits(row.Value[i])))
	}
	k := key(h.Sum(nil)[:16])
	var names []string
	for _, l := range row.Labels {
		label := string(l)
		c := s.classes[label]
		if c == nil {
			c = &class{}
			s.classes[label], s.order = c, append(s.order, label)
		}
		c.rows++
		c.sum[0] += binary.LittleEndian.Uint64(k[:])
		c.sum[1] += binary.LittleEndian.Uint64(k[8:])
		names = append(names, label)
	}
	slices.Sort(names)
	set := strings.Join(names, "\x00")
	id, ok := s.setOf[set]
	if !ok {
		id = int32(len(s.sets))
		s.sets, s.setOf[set] = append(s.sets, set), id
	}
	if before, twice := s.rows[k]; !twice {
		s.rows[k] = id
	} else if before == id {
		s.again++
		s.againAt = appendExample(s.againAt, at)
	} else {
		s.contradict++
		s.otherAt = appendExample(s.otherAt, at)
	}
	return k
}

func appendExample(list []string, one string) []string {
	if len(list) < examples {
		list = append(list, one)
	}
	return list
}

// ofClasses adds the findings about labels and their rows.
func (s *side) ofClasses(add func(string, int64, string, []string)) {
	var single, same, close, twice []string
	names := newSameName()
	twin := map[class]string{}
	near := map[string]string{} // label without one of its letters -> the label
	for _, label := range s.order {
		c := s.classes[label]
		if c.rows == 1 {
			single = append(single, label)
		}
		if other, ok := twin[*c]; ok {
			same = append(same, other+" = "+label)
		} else {
			twin[*c] = label
		}
		alike := nearDuplicate(near, label)
		if other := names.of(label); other != "" {
			twice = append(twice, differ(other, label))
		} else if alike != "" {
			close = append(close, alike+" ~ "+label)
		}
	}
	add("single_row", int64(len(single)), "classes of one row: they are learned from it alone, and never "+
		"measured by a hold-out", single)
	add("same_rows", int64(len(same)), "classes with the same rows as another: no model can distinguish them", same)
	add("same_name", int64(len(twice)), "labels that differ only in case, blanks, invisible characters or Unicode "+
		"composition (the code points that differ follow): the same class twice?", twice)
	add("alike", int64(len(close)), "labels that differ from another by a letter, blanks or marks: the same "+
		"class twice?", close)
}
