package dataset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"taxon/internal/data/table"
	"taxon/internal/data/textio"
	"taxon/internal/fs"
	"taxon/internal/linalg/sparse"
)

// Set is an opened data set. Its slices lie in mapped, read-only memory: callers must not write to
// them, nor use them after Close.
type Set struct {
	// Matrix holds the rows. Its columns are ordered by falling document frequency; there is no
	// bias column.
	Matrix *sparse.Matrix

	// Labels maps a label id to its name. Ids are in the order of first appearance.
	Labels []string
	// LabelBegin has rows+1 entries. The labels of row i are
	// LabelIndex[LabelBegin[i]:LabelBegin[i+1]].
	LabelBegin []uint64

	// LabelIndex holds label ids, strictly ascending within a row.
	LabelIndex []uint32
	// PosBegin has labels+1 entries. The rows of label l are PosRows[PosBegin[l]:PosBegin[l+1]].
	PosBegin []uint64

	// PosRows holds row numbers, strictly ascending within a label.
	PosRows []uint32

	// Weight holds the weight of each row, above 0. A nil Weight gives every row weight 1.
	Weight []float64

	// Feature maps a column to the feature's index in the input, which counts from 1. In text it is
	// column+1.
	Feature []uint32

	// FeatureRows maps a column to the number of rows that have the feature.
	FeatureRows []uint32

	// Vocabulary maps a column to its word. It is nil unless the instances are texts.
	Vocabulary []string

	// IDF maps a column to its inverse document frequency. It is nil unless the instances are
	// texts.
	IDF []float64

	// Terms lists the terms of labels. Term i is row Documents()+i, which has one label. Terms is nil if
	// there are none.
	Terms []Term

	// Table is the schema of the tables that the set was read from. It is nil if the set was read
	// from lines.
	Table *table.Schema

	// Fingerprint is the SHA-256 over the content, in hexadecimal digits.
	Fingerprint string
	Stats       Stats
	Source      Source
	Warnings    []string

	maps [][]byte
}

// Open maps a folder that Ingest wrote. It reads every byte once to verify the checksums and the
// order of the arrays, so that callers need not check anything. A folder that is damaged or no data
// set gives an *fs.InputError that names the file. A folder on a Hadoop file system is copied to a
// temporary folder, which is removed once it is mapped.
func Open(dir string) (*Set, error) {
	local, done, err := fs.Fetch(context.Background(), dir)
	if err != nil {
		return nil, err
	}
	defer done()
	set, err := openLocal(local)
	if err != nil {
		return nil, fs.Renamed(err, local, dir)
	}
	return set, nil
}

func openLocal(dir string) (*Set, error) {
	m, err := loadManifest(dir)
	if err != nil {
		return nil, err
	}
	o := newOpener(dir, m)
	if err := o.open(); err != nil {
		o.set.Close()
		return nil, err
	}
	o.set.Warnings = append(o.set.Warnings, o.set.Table.Warnings(o.set.Labels)...)
	return o.set, nil
}

func newOpener(dir string, m *manifest) *opener {
	return &opener{dir: dir, m: m, files: map[string][]byte{}, set: &Set{
		Matrix:      &sparse.Matrix{Rows: int(m.Stats.Rows), Cols: int(m.Stats.Columns), NNZ: m.Stats.Nonzeros},
		Fingerprint: m.Fingerprint, Stats: m.Stats, Source: m.Source, Warnings: m.Stats.Warnings(),
	}}
}

func loadManifest(dir string) (*manifest, error) {
	if dir == "" {
		return nil, fs.Inputf("", 0, "empty path: give the folder of a data set")
	}
	if info, err := fs.Stat(dir); err != nil {
		return nil, fs.Explain(dir, err)
	} else if !info.IsDir() {
		return nil, fs.Inputf(dir, 0, "is a file: a data set is a folder, made by taxon ingest")
	}
	path := filepath.Join(dir, manifestFile)
	b, err := readManifest(dir)
	if os.IsNotExist(err) {
		return nil, fs.Inputf(dir, 0, "is a folder without %s: not a data set; make one with taxon ingest", manifestFile)
	}
	if err != nil {
		return nil, fs.Explain(path, err)
	}
	m, err := decodeManifest(b)
	if err == nil {
		err = m.Stats.check()
	}
	if err != nil {
		return nil, fs.Inputf(path, 0, "%w", err)
	}
	return m, nil
}

// check bounds the counts before memory is allocated for them.
func (s Stats) check() error {
	for _, n := range []int64{s.Rows, s.Columns, s.Nonzeros, s.Labels, s.LabelEntries, s.Terms} {
		if n < 0 || n >= maxCount {
			return errors.New("damaged (a count is out of range)")
		}
	}
	if s.Rows > maxRows || s.Terms > s.Rows || s.Columns > maxIndex+1 {
		return errors.New("damaged (a count is out of range)")
	}
	return nil
}

// LabelsOf returns the ids of a row's labels, ascending.
func (s *Set) LabelsOf(row uint32) []uint32 {
	return s.LabelIndex[s.LabelBegin[row]:s.LabelBegin[row+1]]
}

// Close unmaps the set. Its slices are invalid afterwards.
func (s *Set) Close() error {
	var first error
	for _, m := range s.maps {
		if err := sparse.Unmap(m); err != nil && first == nil {
			first = err
		}
	}
	s.maps = nil
	return first
}

// opener maps and checks the files of one set.
type opener struct {
	dir   string
	m     *manifest
	files map[string][]byte
	set   *Set
}

func (o *opener) open() error {
	if err := o.mapFiles(); err != nil {
		return err
	}
	for _, part := range []func() error{o.readLabels, o.readPostings, o.readFeatures, o.readNames, o.readTerms,
		o.checkTerms, o.readTable, o.readWeights, o.readShards} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// mapFiles maps the manifest's files and verifies their checksums.
func (o *opener) mapFiles() error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, item := range o.m.Files {
		b, err := o.mapFile(item)
		if err != nil {
			g.Wait()
			return err
		}
		g.Go(fs.Guarded(func() error {
			sum := sha256.Sum256(b)
			if hex.EncodeToString(sum[:]) != item.SHA256 {
				return o.damaged(item.Name, errors.New("its checksum does not match"))
			}
			return nil
		}))
	}
	return g.Wait()
}

func (o *opener) damaged(name string, err error) error {
	return fs.Inputf(filepath.Join(o.dir, name), 0, "the file is damaged: %w; ingest the data again", err)
}

func (o *opener) mapFile(item manifestItem) ([]byte, error) {
	path := filepath.Join(o.dir, item.Name)
	if filepath.Base(item.Name) != item.Name || o.files[item.Name] != nil {
		return nil, fs.Inputf(filepath.Join(o.dir, manifestFile), 0, "damaged (file name %q)", item.Name)
	}
	f, err := fs.OpenRegular(path)
	if err != nil {
		return nil, fs.Explain(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fs.Explain(path, err)
	}
	if info.Size() != item.Bytes || !info.Mode().IsRegular() {
		return nil, o.damaged(item.Name, fmt.Errorf("%d bytes instead of %d", info.Size(), item.Bytes))
	}
	b, err := sparse.Map(f, int(item.Bytes))
	if err != nil {
		return nil, fs.Explain(path, err)
	}
	if b == nil {
		b = []byte{}
	}
	o.files[item.Name] = b
	o.set.maps = append(o.set.maps, b)
	return b, nil
}

// section decodes a file and compares its counts with a, b and c. It returns the bytes of the three
// arrays.
func (o *opener) section(name string, kind uint32, a, b, c int64) (part [3][]byte, err error) {
	data, ok := o.files[name]
	if !ok {
		return part, o.damaged(manifestFile, fmt.Errorf("it does not list %s", name))
	}
	h, part, err := decode(data, kind)
	if err == nil && (h.a != uint64(a) || b >= 0 && h.b != uint64(b) || h.c != uint64(c)) {
		err = errors.New("its counts are not those of the manifest")
	}
	if err != nil {
		return part, o.damaged(name, err)
	}
	return part, nil
}

func (o *opener) readLabels() error {
	st := o.m.Stats
	part, err := o.section(rowLabelsFile, kindLabels, st.Rows, st.LabelEntries, st.Labels)
	if err != nil {
		return err
	}
	o.set.LabelBegin, o.set.LabelIndex = sparse.View[uint64](part[0]), sparse.View[uint32](part[1])
	if err := checkRuns(o.set.LabelBegin, o.set.LabelIndex, st.Labels); err != nil {
		return o.damaged(rowLabelsFile, err)
	}
	return nil
}

func (o *opener) readPostings() error {
	st := o.m.Stats
	part, err := o.section(postingsFile, kindPostings, st.Labels, st.LabelEntries, st.Rows)
	if err != nil {
		return err
	}
	o.set.PosBegin, o.set.PosRows = sparse.View[uint64](part[0]), sparse.View[uint32](part[1])
	if err := checkRuns(o.set.PosBegin, o.set.PosRows, st.Rows); err != nil {
		return o.damaged(postingsFile, err)
	}
	return nil
}

func (o *opener) readFeatures() error {
	st := o.m.Stats
	part, err := o.section(featuresFile, kindFeatures, st.Columns, 0, 0)
	if err != nil {
		return err
	}
	o.set.Feature, o.set.FeatureRows = sparse.View[uint32](part[0]), sparse.View[uint32](part[1])
	for c, index := range o.set.Feature {
		if index == 0 || index > maxIndex+1 || o.set.FeatureRows[c] == 0 || int64(o.set.FeatureRows[c]) > st.Rows {
			return o.damaged(featuresFile, errors.New("an entry is out of range"))
		}
	}
	if !st.Text {
		return nil
	}
	if part, err = o.section(idfFile, kindIDF, st.Columns, 0, 0); err != nil {
		return err
	}
	o.set.IDF = sparse.View[float64](part[0])
	for _, v := range o.set.IDF {
		if !(v > 0) || math.IsInf(v, 0) {
			return o.damaged(idfFile, errors.New("an entry is out of range"))
		}
	}
	return nil
}

func (o *opener) readNames() (err error) {
	if o.set.Labels, err = o.names(labelsFile, o.m.Stats.Labels); err != nil {
		return err
	}
	for i, name := range o.set.Labels {
		o.set.Labels[i] = textio.FromField(name)
	}
	if !o.m.Stats.Text {
		return nil
	}
	o.set.Vocabulary, err = o.names(vocabularyFile, o.m.Stats.Columns)
	return err
}

// names reads a list of n names, one per line. The names are copied out of the mapping, because
// strings often outlive the set.
func (o *opener) names(name string, n int64) ([]string, error) {
	data, ok := o.files[name]
	if !ok {
		return nil, o.damaged(manifestFile, fmt.Errorf("it does not list %s", name))
	}
	whole := len(data) == 0 || data[len(data)-1] == '\n'
	if !whole || int64(bytes.Count(data, []byte{'\n'})) != n || !utf8.Valid(data) {
		return nil, o.damaged(name, fmt.Errorf("it does not hold %d names", n))
	}
	if n == 0 {
		return []string{}, nil
	}
	return strings.Split(string(data[:len(data)-1]), "\n"), nil
}

func (o *opener) readShards() error {
	st := o.m.Stats
	shards := int((st.Rows + 1<<sparse.RowShift - 1) >> sparse.RowShift)
	o.set.Matrix.Shards = make([]sparse.Shard, shards)
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range shards {
		g.Go(fs.Guarded(func() error { return o.readShard(i) }))
	}
	if err := g.Wait(); err != nil {
		return err
	}
	nnz := int64(0)
	for _, s := range o.set.Matrix.Shards {
		nnz += int64(len(s.Index))
	}
	if nnz != st.Nonzeros {
		return o.damaged(manifestFile, errors.New("the shards hold another number of values"))
	}
	return nil
}

func (o *opener) readShard(i int) error {
	st := o.m.Stats
	rows := min(st.Rows-int64(i)<<sparse.RowShift, 1<<sparse.RowShift)
	part, err := o.section(shardFile(i), kindShard, rows, -1, st.Columns)
	if err != nil {
		return err
	}
	s := &o.set.Matrix.Shards[i]
	s.Begin, s.Index, s.Value = sparse.View[uint64](part[0]), sparse.View[uint32](part[1]), sparse.View[float32](part[2])
	if err := checkRuns(s.Begin, s.Index, st.Columns); err != nil {
		return o.damaged(shardFile(i), err)
	}
	for _, v := range s.Value {
		if v-v != 0 {
			return o.damaged(shardFile(i), errors.New("a value is not finite"))
		}
	}
	return nil
}

// checkRuns verifies that begin divides index into runs that are strictly ascending and below
// limit.
func checkRuns(begin []uint64, index []uint32, limit int64) error {
	if begin[0] != 0 || begin[len(begin)-1] != uint64(len(index)) {
		return errors.New("its offsets do not cover its entries")
	}
	for i := range len(begin) - 1 {
		a, b := begin[i], begin[i+1]
		if a > b || b > uint64(len(index)) {
			return errors.New("its offsets do not ascend")
		}
		last := int64(-1)
		for _, x := range index[a:b] {
			if int64(x) <= last || int64(x) >= limit {
				return errors.New("its entries are out of order")
			}
			last = int64(x)
		}
	}
	return nil
}
