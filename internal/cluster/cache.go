package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	taxonv1 "taxon/proto/taxon/v1"
)

// Cache keeps on disk the data sets that a worker has fetched, by fingerprint. Several processes
// may share its folder. The set used longest ago is removed first. Files that are mapped stay
// readable when they are removed.
type Cache struct {
	// Dir is the folder of the cache.
	Dir string
	// Bytes bounds the size of all sets together.
	Bytes int64
	// Store holds the uploaded data sets.
	Store Reader
	// Roots are the folders where data outside the store may be.
	Roots Roots
}

// lockWait is the pause between two checks whether another process has fetched a set.
const lockWait = 50 * time.Millisecond

// Open opens a job's data. It finds them at their own path below one of the roots, or in the cache.
// If the cache lacks them, it first fetches them from the store or from HDFS. It verifies
// checksums. Another worker may succeed where it fails, unless Refused reports otherwise.
func (c *Cache) Open(ctx context.Context, d *taxonv1.Data) (*dataset.Set, error) {
	if fs.Shared(d.GetPath()) {
		if err := c.Roots.Check(d.GetPath()); err != nil {
			return nil, &refusal{err}
		}
	} else if !Uploaded(d.GetPath()) {
		return c.openInPlace(d)
	}
	if !isSum(d.GetFingerprint()) {
		return nil, refusef("the job's data has no fingerprint")
	}
	if err := fs.MkdirMode(c.Dir, 0o755); err != nil {
		return nil, fs.Explain(c.Dir, err)
	}
	dir := filepath.Join(c.Dir, d.GetFingerprint())
	if set, err := c.use(dir); err == nil {
		return set, nil
	}
	unlock, err := lockFile(ctx, dir+".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if set, err := c.use(dir); err == nil { // another process fetched it meanwhile
		return set, nil
	}
	if err := c.fetch(ctx, d, dir); err != nil {
		return nil, err
	}
	return c.use(dir)
}

// use opens a cached set and records the use.
func (c *Cache) use(dir string) (*dataset.Set, error) {
	set, err := dataset.Open(dir)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // it only changes the order of removal
	return set, nil
}

// fetch copies a set from the store or HDFS into the cache. The caller holds its lock.
func (c *Cache) fetch(ctx context.Context, d *taxonv1.Data, dir string) (err error) {
	var l *held
	remote := fs.Shared(d.GetPath())
	if remote {
		l = &held{}
		l.Listing, err = remoteList(ctx, d)
	} else {
		l, err = listing(ctx, c.Store, d)
	}
	if err != nil {
		return err
	}
	need := int64(len(l.Manifest))
	for _, f := range l.Files {
		need += f.Bytes
	}
	if need > c.Bytes {
		return refusef("data %.12s takes %d bytes of disk, the worker's cache may hold %d: give the worker a larger ‹cache›",
			l.Fingerprint, need, c.Bytes)
	}
	if err := c.makeRoom(need, dir); err != nil {
		return err
	}
	part := dir + ".part"
	if err := errors.Join(fs.RemoveAll(part), fs.RemoveAll(dir), fs.MkdirMode(part, 0o755)); err != nil {
		return fs.Explain(c.Dir, err)
	}
	defer func() {
		if err != nil {
			_ = fs.RemoveAll(part)
		}
	}()
	if remote {
		err = fs.FetchInto(ctx, d.GetPath(), part)
	} else {
		err = fetchFiles(ctx, c.Store, l, part, func(string) bool { return true })
	}
	if err != nil {
		return err
	}
	return fs.Explain(c.Dir, fs.Rename(part, dir))
}

// makeRoom removes the sets used longest ago until `need` more bytes fit.
func (c *Cache) makeRoom(need int64, except string) error {
	entries, err := vfs.OS.ReadDir(c.Dir)
	if err != nil {
		return fs.Explain(c.Dir, err)
	}
	type held struct {
		path  string
		bytes int64
		used  time.Time
	}
	var sets []held
	total := int64(0)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !isSum(e.Name()) {
			continue
		}
		s := held{path: filepath.Join(c.Dir, e.Name()), used: info.ModTime()}
		s.bytes = fs.FolderBytes(s.path)
		if s.path != except {
			sets = append(sets, s)
			total += s.bytes
		}
	}
	slices.SortFunc(sets, func(a, b held) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path)) })
	for _, s := range sets {
		if total+need <= c.Bytes {
			return nil
		}
		if err := fs.RemoveAll(s.path); err != nil {
			return fs.Explain(c.Dir, err)
		}
		total -= s.bytes
	}
	return nil
}

// openInPlace opens data outside the cache.
func (c *Cache) openInPlace(d *taxonv1.Data) (*dataset.Set, error) {
	if err := c.Roots.Check(d.GetPath()); err != nil {
		return nil, &refusal{err}
	}
	set, err := dataset.Open(d.GetPath())
	if err != nil && fs.IsInput(err) {
		return nil, &refusal{err}
	}
	return set, err
}

// refusal is an error that the same request would meet on every worker.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// refusef returns a refusal with a formatted message.
func refusef(format string, args ...any) error { return &refusal{fmt.Errorf(format, args...)} }

// Refused reports whether every worker with the same settings would meet err.
func Refused(err error) bool {
	var r *refusal
	return errors.As(err, &r)
}

// remoteList reads the manifest of data in HDFS. The data may have changed since the job was
// submitted.
func remoteList(ctx context.Context, d *taxonv1.Data) (*dataset.Listing, error) {
	file := fs.Join(d.GetPath(), dataset.ManifestName)
	doc, err := fs.ReadFile(ctx, file)
	if err != nil {
		return nil, fs.Explain(file, err)
	}
	l, err := dataset.ParseManifest(doc)
	if err != nil {
		return nil, refusef("%s: %w", file, err)
	}
	if l.Fingerprint != d.GetFingerprint() {
		return nil, refusef("%s: is another data set (%.12s) than the job was submitted with (%.12s)", d.GetPath(),
			l.Fingerprint, d.GetFingerprint())
	}
	return l, nil
}
