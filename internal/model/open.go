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

	"taxon/internal/fs"
	"taxon/internal/linalg/sparse"
	"taxon/internal/model/calibration"
	"taxon/internal/model/form"
	"taxon/internal/model/labelset"
	"taxon/internal/model/shard"
)

// Model is an open model. Its weights are in mapped, read-only memory until Close.
type Model struct {
	Dir      string
	Manifest Manifest
	// Meta holds options, data, tree, labels, features and text.
	Meta
	Trace []TraceRow

	// records maps a node to its overrides. For a pruned model they are computed on first use.
	records []shard.Record
	// rest maps a node to the part of its record after the vector. It is nil if there is none.
	rest []shard.Record
	// packed holds the columns of a pruned model.
	packed []*shard.Packed
	unpack sync.Once
	// derived is described at Derive.
	derived sync.Map
	// terms are the names of a table's numbers, by index.
	terms []string
	// mapped is in the order of the manifest's files.
	mapped []mapping
}

// mapping is a mapped file, which stays open so that its size can be checked. The zero value maps
// nothing.
type mapping struct {
	file  *os.File
	bytes []byte
}

// openParallel bounds the number of files that are verified at once. Hashing is fast, so a few keep
// a disk busy.
const openParallel = 4

// openLocal does what Open does, for a local folder.
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

// IsModel reports whether dir looks like a model: it has a manifest.json that begins as a model's
// does. It verifies nothing.
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

// Resembles reports whether dir has files that only models have, whatever its manifest contains.
// This is not so for a folder in which something is being made.
func Resembles(dir string) bool {
	names, err := fs.ReadDirNames(dir)
	has := func(name string) bool { return slices.Contains(names, name) }
	return err == nil && !has(fs.MarkName) && (slices.ContainsFunc(names, weightsFile) || has(fileStructure) &&
		has(fileLabels))
}

// ReadManifest reads and verifies the manifest of the model in dir, and nothing else.
func ReadManifest(dir string) (*Manifest, error) { return readManifest(dir) }

// readManifest does what ReadManifest does, for use within this package.
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

// WorkExt is the end of the name of a folder in which a model is trained.
const WorkExt = ".train"

// Unfinished is the folder next to a model's folder that holds its training until that has ended.
func Unfinished(dir string) string { return fs.Clean(dir) + WorkExt }

// IsUnfinished reports whether dir is the place of a model whose training has not ended. Other
// folders at Unfinished's path belong to the user: they have neither the mark nor a training's
// description.
func IsUnfinished(dir string) bool {
	work := Unfinished(dir)
	return !fs.Exists(dir) && (fs.Exists(fs.Join(work, fs.MarkName)) || fs.Exists(fs.Join(work, "job.json")))
}

// missingManifest returns the reason why dir has no manifest.
func missingManifest(dir string, err error) error {
	st, e := fs.Stat(dir)
	switch {
	case IsUnfinished(dir):
		return &fs.InputError{Path: dir, Msg: "the training of this model has not ended, and " + Unfinished(dir) +
			" holds what it has reached: " +
			"wait for it or, if it was interrupted, give its command again, which continues from there"}
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
		return in, &fs.InputError{Path: name, Msg: fmt.Sprintf("%d bytes, the manifest says %d: the file is damaged", n,
			f.Bytes)}
	}
	sum := sha256.Sum256(in.bytes)
	if hex.EncodeToString(sum[:]) != f.SHA256 {
		return in, &fs.InputError{Path: name, Msg: "SHA-256 does not match the manifest: the file is damaged"}
	}
	return in, nil
}

// Whole returns an error if a file of the model has become shorter since it was opened. The missing
// part of the last page reads as zeros without a fault. So data read before a call are as trained
// only if the call returns nil.
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

// parseTable decodes one table of the model.
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

// parseShards parses all records, several shards at a time.
func (m *Model) parseShards(data [][]byte) error {
	m.records = make([]shard.Record, m.Tree.Len())
	if m.Form.Precision != form.NoPrecision || m.Form.Draws > 0 {
		m.rest = make([]shard.Record, m.Tree.Len())
	}
	var g errgroup.Group
	g.SetLimit(openParallel)
	for i, f := range m.Manifest.Files {
		if f.Nodes == 0 {
			continue
		}
		g.Go(fs.Guarded(func() error {
			recs, err := shard.Parse(data[i], f.FirstNode, f.Nodes, m.Form.Width(m.columns()))
			if err != nil {
				return &fs.InputError{Path: filepath.Join(m.Dir, f.Name), Msg: err.Error()}
			}
			m.cutRest(f.FirstNode, recs)
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
	for shards < len(data) && m.Manifest.Files[shards].Name == shard.PackedName(shards) { // packed shards come first
		shards++
	}
	m.packed = make([]*shard.Packed, shards)
	for i, f := range m.Manifest.Files[:shards] {
		g.Go(fs.Guarded(func() (err error) {
			if m.packed[i], err = shard.ParsePacked(data[i], f.FirstColumn, f.Columns, m.Tree.Len()); err != nil {
				return &fs.InputError{Path: filepath.Join(m.Dir, f.Name), Msg: err.Error()}
			}
			return nil
		}))
	}
	return g.Wait()
}

// checkCounts compares the manifest's counts with the content of the tables.
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

// firstLine returns the first line of an error.
func firstLine(err error) string {
	line, _, _ := bytes.Cut([]byte(err.Error()), []byte("\n"))
	return string(line)
}

// Derive returns the result of the first call of make for this key. It lets another package compute
// something from the model once and share it among all users of the model.
func (m *Model) Derive(key any, make func() any) any {
	once, _ := m.derived.LoadOrStore(key, sync.OnceValue(make))
	return once.(func() any)()
}

// Packed returns the shards of a pruned model, by column. It is nil if the model is not pruned.
func (m *Model) Packed() []*shard.Packed { return m.packed }

// Terminals returns the number of nodes with a loss, which are the classes.
func (m *Model) Terminals() int { return m.Manifest.Counts.Terminals }

// Close unmaps the weights. No vector, predictor or walk of m may be used afterwards.
func (m *Model) Close() error {
	var errs []error
	for _, in := range m.mapped {
		if in.file != nil {
			errs = append(errs, sparse.Unmap(in.bytes), in.file.Close())
		}
	}
	m.mapped, m.records, m.rest, m.packed = nil, nil, nil, nil
	return errors.Join(errs...)
}

// LabelsPerInstance returns the mean number of labels of a training document.
func (m *Model) LabelsPerInstance() float64 {
	if m.Data.Documents() == 0 {
		return 0
	}
	return float64(m.Data.Positives) / float64(m.Data.Documents())
}

// Open verifies and maps the model in dir: first the manifest's own checksum, then size and SHA-256
// of every file, then the consistency of their content. An error names the file at fault. It is a
// *fs.InputError if the model is at fault and not the machine. A model in a Hadoop file system is
// copied to a temporary folder, which is removed once it is mapped.
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

// mapFile maps a whole file read-only. A file that is not regular is mapped as empty.
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
