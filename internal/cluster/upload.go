package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"

	"taxon/internal/dataset"
	"taxon/internal/fs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

const (
	// partBytes is the size of the values into which a file is cut.
	partBytes = 4 << 20
	// batchParts is how many are put or fetched in one call.
	batchParts = 4
	// uploaded is the prefix of the path of data that are in the store. The SHA-256 of their
	// manifest follows.
	uploaded = "store:"
)

// dataStep is the step under which all values of a data set are stored.
const dataStep = 1

// dataPrefix is the prefix of data sets' job ids in the store. No job may have such an id.
const dataPrefix = "data-"

// dataJob is the job id of a data set in the store: as much of its fingerprint as fits.
func dataJob(fingerprint string) string {
	return dataPrefix + fingerprint[:min(len(fingerprint), store.MaxJobBytes-len(dataPrefix))]
}

// partKey is the key of part k of file n of a data set.
func partKey(fingerprint string, n, k int) store.Key {
	return store.Key{Job: dataJob(fingerprint), Step: dataStep, Task: uint32(n), Attempt: 1, Name: fmt.Sprintf("part/%d", k)}
}

// manifestKey is the key of a manifest. One fingerprint may have several, which differ in what
// they say about the source of the data.
func manifestKey(fingerprint, sum string) store.Key {
	return store.Key{Job: dataJob(fingerprint), Step: dataStep, Task: 0, Attempt: 1, Name: "manifest/" + sum}
}

// Writer is what uploading needs of a store: see DataStore.
type Writer interface {
	Put(ctx context.Context, values []store.Value) error
	List(ctx context.Context, job string, yield func(store.Info) error) error
}

// Upload puts what is missing of the data set in the folder dir into the store, and returns the
// path by which jobs name it. With namesOnly it uploads only the files with names
// (dataset.HoldsNames): the workers see such data themselves, and the names let anybody fetch
// models. progress gets the bytes that are there by now, and all bytes; may be nil.
func Upload(ctx context.Context, st Writer, dir string, namesOnly bool, progress func(done, total int64)) (path string, err error) {
	l, err := dataset.List(dir)
	if err != nil {
		return "", err
	}
	u := &upload{store: st, dir: dir, list: l, progress: progress, there: map[store.Key]uint64{}}
	err = st.List(ctx, dataJob(l.Fingerprint), func(i store.Info) error {
		u.there[i.Key] = i.Bytes
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("upload: %w", err)
	}
	for _, f := range l.Files {
		if !namesOnly || dataset.HoldsNames(f.Name) {
			u.total += f.Bytes
		}
	}
	for n, f := range l.Files {
		if namesOnly && !dataset.HoldsNames(f.Name) {
			continue
		}
		if err := u.file(ctx, n, f); err != nil {
			return "", fmt.Errorf("upload of %s: %w", f.Name, err)
		}
	}
	// The manifest comes last: if it is there, the files are.
	sum := sha256.Sum256(l.Manifest)
	name := hex.EncodeToString(sum[:])
	key := manifestKey(l.Fingerprint, name)
	if err := st.Put(ctx, []store.Value{{Key: key, Data: l.Manifest}}); err != nil {
		return "", fmt.Errorf("upload: %w", err)
	}
	return uploaded + name, nil
}

// upload is one run of Upload.
type upload struct {
	store       Writer
	dir         string
	list        *dataset.Listing
	progress    func(done, total int64)
	there       map[store.Key]uint64 // bytes by key
	done, total int64
	batch       []store.Value
	batchBytes  int64
}

// file puts the missing parts of a file.
func (u *upload) file(ctx context.Context, n int, f dataset.File) error {
	in, err := fs.OpenRegular(filepath.Join(u.dir, f.Name))
	if err != nil {
		return err
	}
	defer in.Close()
	for k := range parts(f.Bytes) {
		size := min(partBytes, f.Bytes-int64(k)*partBytes)
		key := partKey(u.list.Fingerprint, n, k)
		if have, ok := u.there[key]; ok && have == uint64(size) {
			u.tell(size)
			continue
		}
		data := make([]byte, size) // a new slice, as the store may keep it
		if _, err := in.ReadAt(data, int64(k)*partBytes); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		u.batch = append(u.batch, store.Value{Key: key, Data: data})
		u.batchBytes += size
		if len(u.batch) == batchParts {
			if err := u.flush(ctx); err != nil {
				return err
			}
		}
	}
	return u.flush(ctx)
}

func (u *upload) flush(ctx context.Context) error {
	if len(u.batch) == 0 {
		return nil
	}
	if err := u.store.Put(ctx, u.batch); err != nil {
		return err
	}
	u.tell(u.batchBytes)
	u.batch, u.batchBytes = nil, 0
	return nil
}

func (u *upload) tell(bytes int64) {
	u.done += bytes
	if u.progress != nil {
		u.progress(u.done, u.total)
	}
}

// parts is the number of values for a file of so many bytes.
func parts(bytes int64) int { return int((bytes + partBytes - 1) / partBytes) }

// manifestOf returns the manifest's name in the path of uploaded data.
func manifestOf(path string) (sum string, ok bool) {
	sum, ok = strings.CutPrefix(path, uploaded)
	return sum, ok && isSum(sum)
}

// isSum says whether s is a SHA-256 in hex.
func isSum(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && s == strings.ToLower(s)
}

// Uploaded says whether a job's data path names data in the store.
func Uploaded(path string) bool { return strings.HasPrefix(path, uploaded) }

// Reader is what fetching needs of a store.
type Reader interface {
	Get(ctx context.Context, keys []store.Key) ([][]byte, error)
}

// ErrNotThere says that the store does not hold a data set, or not all of it. It counts as a
// store that is away: workers with the set go on, and once it is uploaded all do.
var ErrNotThere error = notThere{}

type notThere struct{}

func (notThere) Error() string {
	return "is not in the store (any more): `taxon submit` the same data again, which uploads it, and jobs that wait for it go on"
}

// Unwrap makes it a store.ErrUnavailable.
func (notThere) Unwrap() error { return store.ErrUnavailable }

// listing fetches and checks the manifest of a job's data.
func listing(ctx context.Context, st Reader, d *taxonv1.Data) (*dataset.Listing, error) {
	sum, ok := manifestOf(d.GetPath())
	if !ok || !isSum(d.GetFingerprint()) {
		return nil, fmt.Errorf("the job's data %q (fingerprint %q) names nothing in the store", d.GetPath(), d.GetFingerprint())
	}
	doc, err := st.Get(ctx, []store.Key{manifestKey(d.GetFingerprint(), sum)})
	if err != nil {
		return nil, err
	}
	if doc[0] == nil {
		return nil, fmt.Errorf("data %.12s %w", d.GetFingerprint(), ErrNotThere)
	}
	if got := sha256.Sum256(doc[0]); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("data %.12s: its manifest has another checksum than the job names", d.GetFingerprint())
	}
	l, err := dataset.ParseManifest(doc[0])
	if err != nil {
		return nil, err
	}
	if l.Fingerprint != d.GetFingerprint() {
		return nil, fmt.Errorf("data %.12s: its manifest is that of %.12s", d.GetFingerprint(), l.Fingerprint)
	}
	return l, nil
}

// FetchNames writes those files of a job's data that a model needs (dataset.OpenNames) into the
// folder dir, which must exist and be empty.
func FetchNames(ctx context.Context, st Reader, d *taxonv1.Data, dir string) error {
	if d.GetNames() != "" {
		d = &taxonv1.Data{Path: d.GetNames(), Fingerprint: d.GetFingerprint()}
	}
	l, err := listing(ctx, st, d)
	if err != nil {
		return err
	}
	return fetchFiles(ctx, st, l, dir, dataset.HoldsNames)
}

// fetchFiles writes the files that want accepts, then the manifest.
func fetchFiles(ctx context.Context, st Reader, l *dataset.Listing, dir string, want func(name string) bool) error {
	for n, f := range l.Files {
		if !want(f.Name) {
			continue
		}
		out, err := os.OpenFile(filepath.Join(dir, f.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			err = fetchFile(ctx, st, l.Fingerprint, n, f, out)
		}
		if err != nil {
			return fmt.Errorf("fetch %s of data %.12s: %w", f.Name, l.Fingerprint, err)
		}
	}
	return os.WriteFile(filepath.Join(dir, dataset.ManifestName), l.Manifest, 0o644)
}

// fetchFile writes one file and verifies its checksum.
func fetchFile(ctx context.Context, st Reader, fingerprint string, n int, f dataset.File, out io.WriteCloser) error {
	sum := sha256.New()
	if err := errors.Join(fetchParts(ctx, st, fingerprint, n, f, out, sum), out.Close()); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return errors.New("what came has another checksum than the manifest says")
	}
	return nil
}

func fetchParts(ctx context.Context, st Reader, fingerprint string, n int, f dataset.File, out io.Writer, sum hash.Hash) error {
	all := parts(f.Bytes)
	left := f.Bytes
	for first := 0; first < all; first += batchParts {
		var keys []store.Key
		for k := first; k < min(first+batchParts, all); k++ {
			keys = append(keys, partKey(fingerprint, n, k))
		}
		values, err := st.Get(ctx, keys)
		if err != nil {
			return err
		}
		for i, v := range values {
			if v == nil {
				return ErrNotThere
			}
			if int64(len(v)) != min(partBytes, left) {
				return fmt.Errorf("part %d has %d bytes instead of %d", first+i, len(v), min(partBytes, left))
			}
			left -= int64(len(v))
			sum.Write(v)
			if _, err := out.Write(v); err != nil {
				return err
			}
		}
	}
	return nil
}
