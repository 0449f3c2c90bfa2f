package model

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	iofs "io/fs"
	"strings"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/model/shard"
)

const (
	shardBytes = 8 << 20 // Open verifies several shards at once
	maxShards  = 100000  // their names have five digits
)

// Writer writes a model node by node into a folder next to the model's place, and publishes the
// whole folder at Close. It belongs to one goroutine. After an error the caller must call Abort.
type Writer struct {
	// ShardBytes is the size that a weight shard exceeds only if a single record does. NewWriter
	// sets it.
	ShardBytes int64
	*Digest

	// dir is the folder next to the model's place.
	dir  *fs.OutDir
	meta Meta
	// open is the open shard, size its size, and first its first node.
	open  *shardFile
	size  int64
	first int
	files []File
	done  bool
}

// NewWriter starts a model that will be published as dir. It returns an error that lists all
// violations in meta, or says that dir may not be replaced: dir must not exist, or be empty, or
// hold nothing but an older model. An unfinished model of a killed process is removed. The slices
// of meta are retained until Close.
func NewWriter(dir string, meta Meta) (*Writer, error) {
	if err := meta.validate(); err != nil {
		return nil, fmt.Errorf("write model: %w", err)
	}
	if err := Replaceable(dir); err != nil {
		return nil, err
	}
	out, err := fs.CreateDir(dir, true)
	if err != nil {
		return nil, err
	}
	return writerTo(out, meta), nil
}

// writerTo starts a model in the folder out.
func writerTo(out *fs.OutDir, meta Meta) *Writer {
	return &Writer{dir: out, meta: meta, ShardBytes: shardBytes, Digest: NewDigest(meta.Tree, meta.columns(), meta.Form)}
}

// WriteNode writes the record of node n. Each node must be written once, in order. columns are
// strictly ascending; values[i] is w_n at columns[i] and finite. A value equal to the parent's
// (with whole weights: equal to zero) is omitted, and -0 becomes +0. So the bytes, and
// weights_sha256, depend on the effective weights alone. The slices are not retained.
func (w *Writer) WriteNode(n int, columns []uint32, values []float32) error {
	if err := w.Digest.WriteNode(n, columns, values); err != nil {
		return err
	}
	return w.append(n, w.buf)
}

// append adds a record to the open shard, or to a new one if the open one would exceed its limit.
func (w *Writer) append(n int, rec []byte) error {
	if w.open != nil && w.size+int64(len(rec)) > w.ShardBytes {
		if err := w.closeShard(n); err != nil {
			return err
		}
	}
	if w.open == nil {
		if err := w.openShard(n); err != nil {
			return err
		}
	}
	w.size += int64(len(rec))
	w.open.write(rec)
	return nil
}

// openShard starts a shard whose first node is n.
func (w *Writer) openShard(n int) error {
	if len(w.files) >= maxShards {
		return fmt.Errorf("write model: more than %d weight shards", maxShards)
	}
	f, err := w.dir.Create(shard.Name(len(w.files)))
	if err != nil {
		return err
	}
	file := newShard(f)
	head := shard.AppendHeader(nil, n)
	w.open, w.first, w.size = file, n, int64(len(head))
	file.write(head)
	return nil
}

// closeShard completes the open shard before node n and makes it durable.
func (w *Writer) closeShard(n int) error {
	file := w.open
	w.open = nil
	sum, err := file.close()
	if err != nil {
		return fs.Explain(w.dir.Name(), err)
	}
	w.files = append(w.files, File{Name: shard.Name(len(w.files)), Bytes: w.size, SHA256: sum, FirstNode: w.first,
		Nodes: n - w.first})
	return nil
}

// Close adds the report of the training and the trace with one row per sweep, makes the model
// durable, and publishes it. It returns the report with weights_sha256 and the counts filled in.
// After an error nothing is published, and the files are removed.
func (w *Writer) Close(report Report, trace []TraceRow) (Report, error) {
	report, err := w.finish(report, trace)
	if err == nil {
		err = Replaceable(w.dir.Name()) // it may have changed meanwhile
	}
	if err == nil {
		err = w.dir.Commit()
	}
	if err != nil {
		w.Abort()
		return Report{}, err
	}
	w.done = true
	return report, nil
}

// Abort removes what was written. After Close it does nothing.
func (w *Writer) Abort() {
	w.done = true
	if w.open != nil {
		w.open.abort()
		w.open = nil
	}
	w.dir.Abort()
}

// finish writes the tables and the manifest.
func (w *Writer) finish(report Report, trace []TraceRow) (Report, error) {
	if w.done {
		return report, fmt.Errorf("write model: already closed")
	}
	nodes := w.meta.Tree.Len()
	if err := w.Digest.whole(); err != nil {
		return report, err
	}
	if err := w.closeShard(nodes); err != nil {
		return report, err
	}
	counts := Counts{Nodes: nodes, Features: len(w.meta.Feature), Labels: len(w.meta.Labels), Edges: -1,
		Overrides: w.overrides, Terminals: len(w.meta.Tree.Terminals())}
	if w.meta.Structure != nil {
		counts.Edges = len(w.meta.Structure.Parents)
	}
	report.WeightsSHA256 = w.Digest.sum()
	report.Nodes, report.Terminals, report.Features = nodes, counts.Terminals, counts.Features
	if err := w.writeTables(trace); err != nil {
		return report, err
	}
	man := Manifest{Format: formatName, Options: w.meta.Options, Form: w.meta.Form,
		Data: w.meta.Data, Counts: counts, Report: report, Files: w.files}
	man.Version = man.version()
	b, err := encodeManifest(man)
	if err != nil {
		return report, err
	}
	return report, w.dir.Write(fileManifest, b)
}

// writeTables writes all files but the shards and the manifest.
func (w *Writer) writeTables(trace []TraceRow) error {
	rows, err := encodeTrace(trace)
	if err != nil {
		return err
	}
	tables := []struct {
		name string
		data []byte
	}{
		{fileStructure, encodeStructure(&w.meta)},
		{fileLabels, encodeLabels(&w.meta)},
		{fileFeatures, encodeFeatures(w.meta.Feature)},
		{fileTrace, rows},
	}
	if w.meta.Text != nil {
		tables = append(tables, struct {
			name string
			data []byte
		}{fileVocabulary, encodeVocabulary(w.meta.Text)})
	}
	for _, fitted := range []struct {
		name  string
		there bool
		what  any
	}{{fileCutoffs, w.meta.Cutoffs != nil, w.meta.Cutoffs}, {fileCalibration, w.meta.Calibration != nil,
		w.meta.Calibration}} {
		if !fitted.there {
			continue
		}
		b, err := encodeFitted(fitted.what)
		if err != nil {
			return err
		}
		tables = append(tables, struct {
			name string
			data []byte
		}{fitted.name, b})
	}
	for _, t := range tables {
		if err := w.dir.Write(t.name, t.data); err != nil {
			return err
		}
		sum := sha256.Sum256(t.data)
		w.files = append(w.files, File{Name: t.name, Bytes: int64(len(t.data)), SHA256: hex.EncodeToString(sum[:])})
	}
	return nil
}

// shardFile is a new file that a goroutine of its own hashes and writes while the next records are
// made, because hashing a shard takes as long as everything else.
type shardFile struct {
	file vfs.File
	sum  hash.Hash
	// buf is the buffer that is being filled.
	buf []byte
	// full passes filled buffers to the goroutine.
	full chan []byte
	// free passes empty buffers back.
	free chan []byte
	// err is the error of writing. It is valid once done is closed.
	err  error
	done chan struct{}
}

// shardBuffer is the size of each of the two buffers.
const shardBuffer = 1 << 20

// newShard starts writing to a new file, which it owns from then on.
func newShard(f vfs.File) *shardFile {
	s := &shardFile{file: f, sum: sha256.New(), buf: make([]byte, 0, shardBuffer),
		full: make(chan []byte), free: make(chan []byte, 2), done: make(chan struct{})}
	s.free <- make([]byte, 0, shardBuffer)
	go s.run()
	return s
}

// run writes buffers until full is closed.
func (s *shardFile) run() {
	defer close(s.done)
	for b := range s.full {
		s.sum.Write(b)
		if s.err == nil {
			_, s.err = s.file.Write(b)
		}
		s.free <- b[:0]
	}
}

// write takes a copy of b. Errors are reported by close.
func (s *shardFile) write(b []byte) {
	for len(b) > 0 {
		n := min(len(b), cap(s.buf)-len(s.buf))
		s.buf, b = append(s.buf, b[:n]...), b[n:]
		if len(s.buf) == cap(s.buf) {
			s.full <- s.buf
			s.buf = <-s.free
		}
	}
}

// close makes the file durable and returns its digest.
func (s *shardFile) close() (sum string, err error) {
	s.full <- s.buf
	close(s.full)
	<-s.done
	return hex.EncodeToString(s.sum.Sum(nil)), vfs.CloseSynced(s.file, s.err)
}

// abort stops writing. The caller removes the file.
func (s *shardFile) abort() {
	close(s.full)
	<-s.done
	s.file.Close()
}

// Replaceable returns nil if a model may be published as dir: the folder does not exist, or is
// empty, or holds nothing but a model's files. Anything else belongs to the user.
func Replaceable(dir string) error {
	names, err := fs.ReadDirNames(dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		if st, e := fs.Stat(dir); e == nil && !st.IsDir() {
			return &fs.InputError{Path: dir, Msg: "is a file; a model is a directory: choose another ‹out›"}
		}
		return fs.Explain(dir, err)
	}
	for _, name := range names {
		if half, ok := fs.HalfWritten(name); ok {
			name = half
		}
		if !modelFile(name) && name != hadoopMark {
			return &fs.InputError{Path: dir, Msg: fmt.Sprintf("holds %q, which is not part of a model: choose another "+
				"‹out› or empty it", name)}
		}
	}
	return nil
}

// Publish publishes a copy of the model in the local folder from as dir, atomically, replacing an
// older model. from is unchanged.
func Publish(from, dir string) error {
	if err := Replaceable(dir); err != nil {
		return err
	}
	out, err := fs.CreateDir(dir, true)
	if err != nil {
		return err
	}
	defer out.Abort()
	if err := out.Fill(from, modelFile); err != nil {
		return err
	}
	if err := Replaceable(dir); err != nil { // it may have changed meanwhile
		return err
	}
	return out.Commit()
}

// modelFile reports whether a file of this name is part of a model.
func modelFile(name string) bool {
	switch name {
	case fileManifest, fileStructure, fileLabels, fileFeatures, fileVocabulary, fileTrace, fileCutoffs, fileCalibration,
		fs.MarkName:
		return true
	}
	return weightsFile(name)
}

// weightsFile reports whether a file of this name is a weight shard.
func weightsFile(name string) bool {
	return (strings.HasPrefix(name, "weights-") || strings.HasPrefix(name, "packed-")) && strings.HasSuffix(name, ".bin")
}
