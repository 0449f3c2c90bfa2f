package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sync/errgroup"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/store"
)

// atOnce is how many parts are written or read at a time.
const atOnce = 8

// Placed is a store that knows which of its shards holds a value.
type Placed interface {
	store.Store
	// Shards returns the names of the shards.
	Shards() []string
	// ShardOf returns the index in Shards of the shard that holds a value.
	ShardOf(k store.Key) int
}

// Extra is a file in addition to the values, such as the coordinator's state.
type Extra struct {
	// Name consists of letters, digits, '.', '_' and '-'.
	Name string
	Data []byte
}

// Spec says what to write.
type Spec struct {
	// Job is the id of the job.
	Job string
	// Keep reports whether a value is written. A nil Keep writes all values of the job.
	Keep func(k store.Key) bool
	// Extra are further files of the snapshot.
	Extra []Extra
}

// Write writes a snapshot into a folder and commits it. The values must exist until it returns; one
// that is dropped meanwhile is store.ErrMissing. After an error the folder is aborted, and an
// earlier snapshot of this name is untouched.
func Write(ctx context.Context, dir Dir, src Placed, spec Spec) (m *Manifest, err error) {
	defer dir.Abort()
	parts := make([][]store.Info, len(src.Shards()))
	if err := store.ValidateJob(spec.Job); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	err = src.List(ctx, spec.Job, func(in store.Info) error {
		if spec.Keep == nil || spec.Keep(in.Key) {
			s := src.ShardOf(in.Key)
			parts[s] = append(parts[s], in)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	m = &Manifest{Job: spec.Job, Parts: make([]File, len(parts))}
	for i, infos := range parts {
		for _, in := range infos {
			m.Values++
			m.Bytes += in.Bytes
		}
		m.Parts[i] = File{Name: fmt.Sprintf("part-%05d", i), Values: uint64(len(infos))}
	}
	for _, e := range spec.Extra {
		m.Extra = append(m.Extra, File{Name: e.Name})
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("snapshot: %w: %s", store.ErrInvalid, err.Error())
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, infos := range parts {
		g.Go(func() error {
			return writeFile(dir, &m.Parts[i], func(w io.Writer) error { return writePart(gctx, w, src, infos) })
		})
	}
	for i, e := range spec.Extra {
		g.Go(func() error {
			return writeFile(dir, &m.Extra[i], func(w io.Writer) error { _, err := w.Write(e.Data); return err })
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	body, err := m.encode()
	if err != nil {
		return nil, err
	}
	err = writeFile(dir, &File{Name: manifestName}, func(w io.Writer) error { _, err := w.Write(body); return err })
	if err != nil {
		return nil, err
	}
	return m, dir.Commit()
}

// writeFile writes a file and records its size and checksum.
func writeFile(dir Dir, f *File, write func(io.Writer) error) error {
	out, err := dir.Create(f.Name)
	if err != nil {
		return err
	}
	return errors.Join(write(&counted{out, f}), out.Close())
}

// counted is a writer that adds what is written to the size and checksum of a file.
type counted struct {
	w io.Writer
	f *File
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.f.Bytes += uint64(n)
	c.f.CRC32C = store.UpdateChecksum(c.f.CRC32C, p[:n])
	return n, err
}

// Dir is a folder that is being written. Others see it, complete, once it is committed.
type Dir interface {
	// Create begins a file; its Close makes it durable. Several files may be written at a time.
	Create(name string) (io.WriteCloser, error)
	// Commit makes the folder visible under its name.
	Commit() error
	// Abort removes what was written. It does nothing after Commit.
	Abort()
}

// Local begins a folder on this machine. Commit replaces an earlier snapshot of this name
// atomically.
func Local(path string) (Dir, error) {
	d, err := fs.CreateDir(path, true)
	if err != nil {
		return nil, err
	}
	return localDir{d}, nil
}

// localDir is a Dir on this machine.
type localDir struct{ *fs.OutDir }

// Create implements Dir.
func (d localDir) Create(name string) (io.WriteCloser, error) {
	f, err := d.OutDir.Create(name)
	if err != nil {
		return nil, err
	}
	return &localFile{f, d.Name()}, nil
}

// localFile is a file of a localDir.
type localFile struct {
	f vfs.File
	// dir is the folder's name as the user gave it, for errors.
	dir string
}

// Write implements io.Writer.
func (f *localFile) Write(p []byte) (int, error) {
	n, err := f.f.Write(p)
	return n, fs.Explain(f.dir, err)
}

// Close makes the file durable and closes it.
func (f *localFile) Close() error {
	return fs.Explain(f.dir, vfs.CloseSynced(f.f, nil))
}

const (
	manifestName = "manifest"
	manifestHead = "taxon snapshot 1 "
	// maxManifest is the greatest size of a manifest, in bytes. Each file takes about 100 bytes of
	// it.
	maxManifest = 16 << 20
	maxFiles    = 1 << 16
)

// File describes one file of a snapshot.
type File struct {
	Name   string `json:"name"`
	Bytes  uint64 `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
	// Values is the number of values in a part.
	Values uint64 `json:"values,omitempty"`
}

// Manifest says what a snapshot holds.
type Manifest struct {
	Job    string `json:"job"`
	Values uint64 `json:"values"`
	// Bytes is the size of the values.
	Bytes uint64 `json:"bytes"`
	// Parts hold the values, one file a shard.
	Parts []File `json:"parts"`
	// Extra are the further files that the writer added.
	Extra []File `json:"extra"`
}

// encode returns the bytes of the manifest: a line with the checksum and size of the JSON that
// follows, and the JSON.
func (m *Manifest) encode() ([]byte, error) {
	body, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, fmt.Errorf("snapshot: manifest: %w", err)
	}
	return fmt.Appendf(nil, "%s%08x %d\n%s", manifestHead, store.Checksum(body), len(body), body), nil
}

// parseManifest checks and decodes a manifest. It returns store.ErrSnapshot if it is damaged.
func parseManifest(b []byte) (*Manifest, error) {
	head, body, _ := bytes.Cut(b, []byte("\n"))
	if string(head) != fmt.Sprintf("%s%08x %d", manifestHead, store.Checksum(body), len(body)) {
		return nil, fmt.Errorf("%w: the manifest is damaged, or of another version than 1", store.ErrSnapshot)
	}
	m := &Manifest{}
	if err := json.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("%w: the manifest is no JSON: %s", store.ErrSnapshot, err.Error())
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: manifest: %s", store.ErrSnapshot, err.Error())
	}
	return m, nil
}

// check validates the names and counts of a manifest.
func (m *Manifest) check() error {
	if err := store.ValidateJob(m.Job); err != nil {
		return err
	}
	if len(m.Parts)+len(m.Extra) > maxFiles {
		return fmt.Errorf("%d files, at most %d", len(m.Parts)+len(m.Extra), maxFiles)
	}
	seen := map[string]bool{manifestName: true}
	var values uint64
	for _, list := range [][]File{m.Parts, m.Extra} {
		for _, f := range list {
			if err := checkName(f.Name); err != nil {
				return err
			}
			if seen[f.Name] {
				return fmt.Errorf("two files named %q", f.Name)
			}
			seen[f.Name] = true
			values += f.Values
		}
	}
	if values != m.Values {
		return fmt.Errorf("%d values in parts, %d in all", values, m.Values)
	}
	return nil
}

// checkName refuses a file name that could lead out of the folder.
func checkName(name string) error {
	if strings.Contains(name, "/") || store.ValidateJob(name) != nil { // same rule
		return fmt.Errorf("file name %q: letters, digits, '.', '_', '-', and first a letter or digit", name)
	}
	return nil
}
