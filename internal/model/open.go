package model

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"taxon/internal/data/taxonomy"
	textlines "taxon/internal/data/textio"
	"taxon/internal/fs"
	"taxon/internal/linalg/sparse"
	"taxon/internal/model/calibration"
	"taxon/internal/model/form"
	"taxon/internal/model/labelset"
)

// Model is an opened model. Its weights are in mapped, read-only memory until Close.
type Model struct {
	Dir      string
	Manifest Manifest
	Meta     // options, data, tree, labels, features, text
	Trace    []TraceRow

	records  []record  // node -> overrides; of a pruned model they are made on first use
	moments  []record  // node -> what follows the mean in records with precisions; nil: other forms
	draws    []record  // the same for records with draws
	averaged sync.Once // fills average
	average  *average
	packed   []*packedShard // of a pruned model, by columns
	unpack   sync.Once
	indexed  sync.Once
	byColumn *columnIndex // made on first use
	planned  sync.Once
	byRow    *packedPlan // made on first use
	terms    []string    // of a table's numbers, by index
	mapped   []mapping   // by the manifest's files
}

// mapping is a mapped file, which stays open so that its size can be looked at. The zero value is none.
type mapping struct {
	file  *os.File
	bytes []byte
}

// openParallel bounds how many files are verified at once. Hashing is fast, so a few keep a disk
// busy.
const openParallel = 4

// openLocal is Open for a folder of this machine.
func openLocal(dir string) (*Model, error) {
	manifest, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	m := &Model{Dir: dir, Manifest: *manifest}
	m.Options, m.Form, m.Data = manifest.Options, manifest.Form, manifest.Data
	if err := cmp.Or(m.load(), m.Whole()); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// IsModel says whether dir looks like a model: it has a manifest.json that begins like a model's.
// Nothing is verified.
func IsModel(dir string) bool {
	f, err := fs.OpenRaw(fs.Join(dir, fileManifest))
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(checksumPrefix)+len(zeroSum)+64)
	n, _ := io.ReadFull(f, head)
	return bytes.HasPrefix(head[:n], []byte(checksumPrefix)) && bytes.Contains(head[:n], []byte(formatName))
}

// Resembles says whether dir has files that models alone have, whatever its manifest is like. A folder
// in which something is being made does not.
func Resembles(dir string) bool {
	names, err := fs.ReadDirNames(dir)
	has := func(name string) bool { return slices.Contains(names, name) }
	return err == nil && !has(fs.MarkName) && (slices.ContainsFunc(names, weightsFile) || has(fileStructure) && has(fileLabels))
}

// ReadManifest reads and verifies the manifest of the model in dir, and nothing else.
func ReadManifest(dir string) (*Manifest, error) { return readManifest(dir) }

func readManifest(dir string) (*Manifest, error) {
	name := fs.Join(dir, fileManifest)
	f, err := fs.OpenRaw(name)
	if err != nil {
		return nil, missingManifest(dir, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err != nil {
		return nil, fs.Explain(name, err)
	}
	if len(b) > maxManifestBytes {
		return nil, &fs.InputError{Path: name, Msg: "too large for a manifest"}
	}
	m, err := parseManifest(b)
	if err != nil {
		return nil, &fs.InputError{Path: name, Msg: err.Error()}
	}
	return m, nil
}

// Unfinished is the folder next to a model's folder that holds its training until that has ended.
func Unfinished(dir string) string { return fs.Clean(dir) + ".train" }

// IsUnfinished says whether dir is where a model will be whose training has not ended. What else
// may be at Unfinished's path is the user's: it has neither the mark nor a training's description.
func IsUnfinished(dir string) bool {
	work := Unfinished(dir)
	return !fs.Exists(dir) && (fs.Exists(fs.Join(work, fs.MarkName)) || fs.Exists(fs.Join(work, "job.json")))
}

// missingManifest explains why dir has no manifest.
func missingManifest(dir string, err error) error {
	st, e := fs.Stat(dir)
	switch {
	case IsUnfinished(dir):
		return &fs.InputError{Path: dir, Msg: "the training of this model has not ended, and " + Unfinished(dir) + " holds what it has reached: " +
			"wait for it or, if it was interrupted, give its command again, which goes on from there"}
	case errors.Is(e, iofs.ErrNotExist):
		return &fs.InputError{Path: dir, Msg: "no such model"}
	case e == nil && !st.IsDir():
		return &fs.InputError{Path: dir, Msg: "is a file; a model is a directory"}
	case errors.Is(err, iofs.ErrNotExist):
		return &fs.InputError{Path: dir, Msg: "not a model: there is no " + fileManifest + " in it"}
	}
	return fs.Explain(dir, err)
}

// load maps, verifies and parses every file of the manifest.
func (m *Model) load() error {
	files := m.Manifest.Files
	data := make([][]byte, len(files))
	m.mapped = make([]mapping, len(files))
	var g errgroup.Group
	g.SetLimit(openParallel)
	for i, f := range files {
		g.Go(fs.Guarded(func() (err error) {
			m.mapped[i], err = m.verify(f)
			data[i] = m.mapped[i].bytes
			return err
		}))
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, f := range files {
		if err := m.parseTable(f, data[i]); err != nil {
			return err
		}
	}
	if err := m.validate(); err != nil {
		return &fs.InputError{Path: m.Dir, Msg: firstLine(err)}
	}
	if err := m.checkCounts(); err != nil {
		return &fs.InputError{Path: filepath.Join(m.Dir, fileManifest), Msg: err.Error()}
	}
	m.terms = m.Data.Table.Terms()
	if m.Manifest.Pruned != nil {
		return m.parsePacked(data)
	}
	return m.parseShards(data)
}

// verify maps one file and compares it with the manifest.
func (m *Model) verify(f File) (mapping, error) {
	name := filepath.Join(m.Dir, f.Name)
	in, err := mapFile(name)
	if errors.Is(err, iofs.ErrNotExist) {
		return in, &fs.InputError{Path: name, Msg: "missing, though the manifest lists it: the model is not whole"}
	}
	if err != nil {
		return in, fs.Explain(name, err)
	}
	if n := len(in.bytes); int64(n) != f.Bytes {
		return in, &fs.InputError{Path: name, Msg: fmt.Sprintf("%d bytes, the manifest says %d: the file is damaged", n, f.Bytes)}
	}
	sum := sha256.Sum256(in.bytes)
	if hex.EncodeToString(sum[:]) != f.SHA256 {
		return in, &fs.InputError{Path: name, Msg: "SHA-256 does not match the manifest: the file is damaged"}
	}
	return in, nil
}

// Whole is an error if a file of the model got shorter since it was opened. What is missing within a
// page that is left reads as zeros, without a fault: what was read before the call is as it was trained
// only if there is no error.
func (m *Model) Whole() error {
	for _, in := range m.mapped {
		if in.file == nil {
			continue
		}
		st, err := in.file.Stat()
		if err != nil {
			return fs.Explain(in.file.Name(), err)
		}
		if st.Size() < int64(len(in.bytes)) {
			return fmt.Errorf("%s: %w", in.file.Name(), fs.ErrFault)
		}
	}
	return nil
}

func (m *Model) parseTable(f File, b []byte) (err error) {
	name := filepath.Join(m.Dir, f.Name)
	switch f.Name {
	case fileStructure:
		m.Tree, m.Structure, err = parseStructure(name, b)
	case fileLabels:
		m.Labels, m.LabelCounts, err = parseLabels(name, b)
	case fileFeatures:
		m.Feature, err = parseFeatures(name, b)
	case fileVocabulary:
		m.Text, err = parseVocabulary(name, b)
	case fileTrace:
		m.Trace, err = parseTrace(name, b)
	case fileCutoffs:
		m.Cutoffs = new(labelset.Cutoffs)
		err = parseFitted(name, b, m.Cutoffs)
	case fileCalibration:
		m.Calibration = new(calibration.Calibration)
		err = parseFitted(name, b, m.Calibration)
	}
	return err
}

// parseShards finds all records, several shards at a time.
func (m *Model) parseShards(data [][]byte) error {
	m.records = make([]record, m.Tree.Len())
	if m.Form.Precision != form.NoPrecision {
		m.moments = make([]record, m.Tree.Len())
	}
	if m.Form.Draws > 0 {
		m.draws = make([]record, m.Tree.Len())
	}
	var g errgroup.Group
	g.SetLimit(openParallel)
	for i, f := range m.Manifest.Files {
		if f.Nodes == 0 {
			continue
		}
		g.Go(fs.Guarded(func() error {
			recs, err := parseShard(data[i], f.FirstNode, f.Nodes, m.Form.Width(m.columns()))
			if err != nil {
				return &fs.InputError{Path: filepath.Join(m.Dir, f.Name), Msg: err.Error()}
			}
			m.cutRest(f.FirstNode, recs, m.moments)
			m.cutRest(f.FirstNode, recs, m.draws)
			copy(m.records[f.FirstNode:], recs)
			return nil
		}))
	}
	return g.Wait()
}

// parsePacked opens all packed shards.
func (m *Model) parsePacked(data [][]byte) error {
	var g errgroup.Group
	g.SetLimit(openParallel)
	shards := 0
	for shards < len(data) && m.Manifest.Files[shards].Name == packedName(shards) { // packed shards come first
		shards++
	}
	m.packed = make([]*packedShard, shards)
	for i, f := range m.Manifest.Files[:shards] {
		g.Go(fs.Guarded(func() (err error) {
			if m.packed[i], err = parsePacked(data[i], f.FirstColumn, f.Columns, m.Tree.Len()); err != nil {
				return &fs.InputError{Path: filepath.Join(m.Dir, f.Name), Msg: err.Error()}
			}
			return nil
		}))
	}
	return g.Wait()
}

// overrides returns the records of all nodes.
func (m *Model) overrides() []record {
	if m.Manifest.Pruned != nil {
		m.unpack.Do(func() { m.records = m.nodeRecords() })
	}
	return m.records
}

// checkCounts compares the manifest's counts with what the tables hold.
func (m *Model) checkCounts() error {
	c := m.Manifest.Counts
	if terminals := len(m.Tree.Terminals()); c.Terminals != terminals {
		return fmt.Errorf("counts do not match: %d terminals, but the structure has %d", c.Terminals, terminals)
	}
	if c.Nodes != m.Tree.Len() || c.Features != len(m.Feature) || c.Labels != len(m.Labels) {
		return fmt.Errorf("counts do not match: %d nodes, %d features, %d labels, but the tables hold %d, %d, %d",
			c.Nodes, c.Features, c.Labels, m.Tree.Len(), len(m.Feature), len(m.Labels))
	}
	return nil
}

func firstLine(err error) string {
	line, _, _ := bytes.Cut([]byte(err.Error()), []byte("\n"))
	return string(line)
}

// NodeName is the name of node n in errors and exports; - for the virtual root.
func (m *Model) NodeName(n int) string {
	if m.Tree.Kind[n] == taxonomy.Virtual {
		return "-"
	}
	return m.Tree.Name[n]
}

// NodeKind is the word for node n's kind: node, spawned, virtual or dummy.
func (m *Model) NodeKind(n int) string {
	kind, _ := kindName(m.Tree.Kind[n])
	return kind
}

// LineName is NodeName as written in lines of text: see AppendName of package lines.
func (m *Model) LineName(n int) string {
	if m.Tree.Kind[n] == taxonomy.Dummy { // its name was escaped when the tree was made
		return m.NodeName(n)
	}
	return string(textlines.AppendName(nil, m.NodeName(n)))
}

// VectorName is what exports call the weights of node n: kind and name of the node. With descent
// it is "edge" and PARENT,CHILD, where PARENT is - above a root. Names of an edge are those of
// LineName.
func (m *Model) VectorName(n int) (kind, name string) {
	kind, name = m.NodeKind(n), m.NodeName(n)
	if m.Form.Predictor != form.Descent {
		return kind, name
	}
	if p := m.Tree.Parent[n]; p >= 0 {
		return "edge", m.LineName(int(p)) + "," + m.LineName(n)
	}
	return "edge", "-," + m.LineName(n)
}

// Terminals is the number of nodes with a loss: the classes.
func (m *Model) Terminals() int { return m.Manifest.Counts.Terminals }

// Close unmaps the weights. No vector, predictor or walk of m may be used after it.
func (m *Model) Close() error {
	var errs []error
	for _, in := range m.mapped {
		if in.file != nil {
			errs = append(errs, sparse.Unmap(in.bytes), in.file.Close())
		}
	}
	m.mapped, m.records, m.moments, m.draws, m.packed = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}

// Columns is the length of a weight vector: the features, then the bias if the model has one.
func (m *Model) Columns() int { return m.columns() }

// above is the node from whose weights the record of node n differs; -1: zero.
func (m *Model) above(n int32) int32 { return m.Form.Above(m.Tree.Parent[n]) }

// Overrides returns the columns on which node n differs from its parent, and its values there.
// For whole weights these are its nonzeros. Both slices alias the mapped file.
func (m *Model) Overrides(n int) (columns []uint32, values []float32) {
	r := m.overrides()[n]
	return r.columns, r.values
}

// Vector returns the effective weights of node n, as a new slice of Columns() entries.
// WalkVectors is cheaper for all nodes.
func (m *Model) Vector(n int) []float32 {
	w := newPath[float32](m.columns())
	m.seek(w, int32(n))
	return w.current
}

// seek enters the ancestors of n and n itself.
func (m *Model) seek(w *path[float32], n int32) {
	var up []int32
	for ; n >= 0; n = m.above(n) {
		up = append(up, n)
	}
	w.leaveTo(-1)
	records := m.overrides()
	for i := len(up) - 1; i >= 0; i-- {
		w.override(up[i], records[up[i]].columns, records[up[i]].values)
	}
}

// WalkVectors calls visit with the effective vector of each node in [first, last), in order. The
// slice is valid during the call only and must not be written to.
func (m *Model) WalkVectors(first, last int, visit func(n int, vector []float32) error) error {
	if first >= last {
		return nil
	}
	w := newPath[float32](m.columns())
	if p := m.above(int32(first)); p >= 0 {
		m.seek(w, p)
	}
	records := m.overrides()
	for n := first; n < last; n++ {
		w.leaveTo(m.above(int32(n)))
		w.override(int32(n), records[n].columns, records[n].values)
		if err := visit(n, w.current); err != nil {
			return err
		}
	}
	return nil
}

// walkSums is WalkVectors with the sums of the vectors from the root to each node. Records are
// whole vectors.
func (m *Model) walkSums(first, last int, visit func(n int, vector []float32) error) error {
	w, records := newPath[float32](m.columns()), m.overrides()
	add := func(n int32) {
		w.enter(n, records[n].columns)
		for i, c := range records[n].columns {
			w.current[c] += records[n].values[i]
		}
	}
	var up []int32
	if first < last {
		for a := m.Tree.Parent[first]; a >= 0; a = m.Tree.Parent[a] {
			up = append(up, a)
		}
	}
	for _, a := range slices.Backward(up) {
		add(a)
	}
	for n := first; n < last; n++ {
		w.leaveTo(m.Tree.Parent[n])
		add(int32(n))
		if err := visit(n, w.current); err != nil {
			return err
		}
	}
	return nil
}

// LabelsPerInstance is the mean number of labels of a training instance.
func (m *Model) LabelsPerInstance() float64 {
	if m.Data.Instances == 0 {
		return 0
	}
	return float64(m.Data.Positives) / float64(m.Data.Instances)
}

// Open verifies and maps the model in dir: first the manifest's own checksum, then size and
// SHA-256 of every file, then whether their content is sound. An error names the file at fault.
// It is a *fs.InputError if the model, not the machine, is to blame. A model on a Hadoop file
// system is copied to a temporary folder, which is removed once it is mapped.
func Open(dir string) (*Model, error) {
	if dir == "" {
		return nil, fs.Inputf("", 0, "empty path: give the folder of a model")
	}
	local, done, err := fs.Fetch(context.Background(), dir)
	if err != nil {
		return nil, err
	}
	defer done()
	m, err := openLocal(local)
	if err != nil {
		return nil, fs.Renamed(err, local, dir)
	}
	m.Dir = dir
	return m, nil
}

// hadoopMark is the file that marks a folder as complete for Hadoop's tools.
const hadoopMark = "_SUCCESS"

// ReadTrace reads only the trace of the model in dir.
func ReadTrace(dir string) ([]TraceRow, error) {
	name := fs.Join(dir, fileTrace)
	b, err := fs.ReadFile(context.Background(), name)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseTrace(name, b)
}

// mapFile maps a whole file read-only. What is no regular file has no bytes.
func mapFile(name string) (in mapping, err error) {
	if in.file, err = fs.OpenRegular(name); err != nil {
		return mapping{}, err
	}
	st, err := in.file.Stat()
	if err == nil && st.Mode().IsRegular() {
		in.bytes, err = sparse.Map(in.file, int(st.Size()))
	}
	if err != nil {
		return mapping{}, errors.Join(err, in.file.Close())
	}
	return in, nil
}
