package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

const (
	// partBytes is the size of the values into which a file is split.
	partBytes = 4 << 20
	// batchParts is how many parts are put or fetched in one call.
	batchParts = 4
	// uploaded is the prefix of the path of data that are in the store. The hexadecimal SHA-256 of
	// their index follows.
	uploaded = "store:"
)

// dataStep is the step under which all values of a data set are stored.
const dataStep = 1

// dataPrefix is the prefix of data sets' job ids in the store. No job may have such an id.
const dataPrefix = "data-"

// dataJob returns the job id of a data set in the store, which has as much of its fingerprint as
// fits.
func dataJob(fingerprint string) string {
	return dataPrefix + fingerprint[:min(len(fingerprint), store.MaxJobBytes-len(dataPrefix))]
}

// index lists what the store holds of a data set. All values are named by their content, so nobody
// can put others in their place, and an upload finds those that are there already. One fingerprint
// may have several indexes, which differ in what they say about the source of the data.
type index struct {
	// Manifest is the manifest's document.
	Manifest string `json:"manifest"`
	// Parts has the SHA-256 of each part, by file. It may have only the files with names.
	Parts map[string][]string `json:"parts"`
}

// partKey returns the key of a part of file n of a data set, by its hexadecimal SHA-256.
func partKey(fingerprint string, n int, sum string) store.Key {
	return store.Key{Job: dataJob(fingerprint), Step: dataStep, Task: uint32(n), Attempt: 1,
		Name: store.ContentPrefix + sum}
}

// indexKey returns the key of an index, by its hexadecimal SHA-256.
func indexKey(fingerprint, sum string) store.Key { return partKey(fingerprint, 0, sum) }

// Writer is the part of a store that uploading needs (see DataStore).
type Writer interface {
	Put(ctx context.Context, values []store.Value) error
	List(ctx context.Context, job string, yield func(store.Info) error) error
}

// Upload puts what is missing of the data set in the folder dir into the store, so that each value
// has the given number of copies, and returns the path by which jobs name it. With namesOnly it
// uploads only the files with names (dataset.HoldsNames): the workers then read the data in place,
// and the names let anybody fetch models. progress is called with the bytes that are in the store
// by now, and all bytes. It may be nil.
func Upload(ctx context.Context, st Writer, copies int, dir string, namesOnly bool,
	progress func(done, total int64)) (path string, err error) {
	l, err := dataset.List(dir)
	if err != nil {
		return "", err
	}
	u := &upload{store: st, dir: dir, list: l, progress: progress, there: map[store.Key]int{}, copies: max(copies, 1)}
	err = st.List(ctx, dataJob(l.Fingerprint), func(i store.Info) error {
		u.there[i.Key]++
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
	list := index{Manifest: string(l.Manifest), Parts: map[string][]string{}}
	for n, f := range l.Files {
		if namesOnly && !dataset.HoldsNames(f.Name) {
			continue
		}
		if list.Parts[f.Name], err = u.file(ctx, n, f); err != nil {
			return "", fmt.Errorf("upload of %s: %w", f.Name, err)
		}
	}
	// The index comes last: if it is there, the files are.
	doc, err := json.Marshal(&list)
	if err != nil {
		return "", err
	}
	name := sumOf(doc)
	if err := st.Put(ctx, []store.Value{{Key: indexKey(l.Fingerprint, name), Data: doc}}); err != nil {
		return "", fmt.Errorf("upload: %w", err)
	}
	return uploaded + name, nil
}

// sumOf returns the hexadecimal SHA-256 of data.
func sumOf(data []byte) string {
	return strings.TrimPrefix(store.ContentName(data), store.ContentPrefix)
}

// upload holds the state of one call of Upload.
type upload struct {
	store    Writer
	dir      string
	list     *dataset.Listing
	progress func(done, total int64)
	// there counts the copies by key, and copies is how many there should be.
	there       map[store.Key]int
	copies      int
	done, total int64
	batch       []store.Value
	batchBytes  int64
}

// file puts the missing parts of a file, and returns the SHA-256 of each part.
func (u *upload) file(ctx context.Context, n int, f dataset.File) (sums []string, err error) {
	in, err := fs.OpenRegular(filepath.Join(u.dir, f.Name))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	for k := range parts(f.Bytes) {
		size := min(partBytes, f.Bytes-int64(k)*partBytes)
		data := make([]byte, size) // a new slice, as the store may keep it
		if _, err := in.ReadAt(data, int64(k)*partBytes); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		sum := sumOf(data)
		sums = append(sums, sum)
		key := partKey(u.list.Fingerprint, n, sum)
		if u.there[key] >= u.copies {
			u.tell(size)
			continue
		}
		u.there[key] = u.copies
		u.batch = append(u.batch, store.Value{Key: key, Data: data})
		u.batchBytes += size
		if len(u.batch) == batchParts {
			if err := u.flush(ctx); err != nil {
				return nil, err
			}
		}
	}
	return sums, u.flush(ctx)
}

// flush puts the batch.
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

// tell adds a number of bytes to the progress and reports it.
func (u *upload) tell(bytes int64) {
	u.done += bytes
	if u.progress != nil {
		u.progress(u.done, u.total)
	}
}

// parts returns the number of values for a file of the given size in bytes.
func parts(bytes int64) int { return int((bytes + partBytes - 1) / partBytes) }

// indexOf returns the SHA-256 of the index in the path of uploaded data.
func indexOf(path string) (sum string, ok bool) {
	sum, ok = strings.CutPrefix(path, uploaded)
	return sum, ok && isSum(sum)
}

// isSum reports whether s is a hexadecimal SHA-256.
func isSum(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && s == strings.ToLower(s)
}

// Uploaded reports whether a job's data path names data in the store.
func Uploaded(path string) bool { return strings.HasPrefix(path, uploaded) }

// Reader is the part of a store that fetching needs.
type Reader interface {
	Get(ctx context.Context, keys []store.Key) ([][]byte, error)
}

// ErrNotThere says that the store does not hold a data set, or not all of it. It counts as a store
// that is away: workers that have the set continue, and all do once it is uploaded again.
var ErrNotThere error = notThere{}

// notThere is the type of ErrNotThere.
type notThere struct{}

func (notThere) Error() string {
	return "is not in the store (any more): `taxon submit` the same data again, which uploads it, and jobs " +
		"that wait for it go on"
}

// Unwrap makes it a store.ErrUnavailable.
func (notThere) Unwrap() error { return store.ErrUnavailable }

// held is a data set that the store holds.
type held struct {
	*dataset.Listing
	// parts has the SHA-256 of each part, by file.
	parts map[string][]string
}

// listing fetches and checks the index of a job's data.
func listing(ctx context.Context, st Reader, d *taxonv1.Data) (*held, error) {
	sum, ok := indexOf(d.GetPath())
	if !ok || !isSum(d.GetFingerprint()) {
		return nil, fmt.Errorf("the job's data %q (fingerprint %q) names nothing in the store", d.GetPath(),
			d.GetFingerprint())
	}
	doc, err := st.Get(ctx, []store.Key{indexKey(d.GetFingerprint(), sum)})
	if err != nil {
		return nil, err
	}
	if doc[0] == nil {
		return nil, fmt.Errorf("data %.12s %w", d.GetFingerprint(), ErrNotThere)
	}
	if sumOf(doc[0]) != sum {
		return nil, fmt.Errorf("data %.12s: its index has another checksum than the job names", d.GetFingerprint())
	}
	var list index
	if err := json.Unmarshal(doc[0], &list); err != nil {
		return nil, fmt.Errorf("data %.12s: its index: %w", d.GetFingerprint(), err)
	}
	l, err := dataset.ParseManifest([]byte(list.Manifest))
	if err != nil {
		return nil, err
	}
	if l.Fingerprint != d.GetFingerprint() {
		return nil, fmt.Errorf("data %.12s: its manifest is that of %.12s", d.GetFingerprint(), l.Fingerprint)
	}
	for _, f := range l.Files {
		sums := list.Parts[f.Name]
		whole := len(sums) == parts(f.Bytes)
		if !whole && (len(sums) > 0 || dataset.HoldsNames(f.Name)) || slices.ContainsFunc(sums,
			func(s string) bool { return !isSum(s) }) {
			return nil, fmt.Errorf("data %.12s: its index does not fit its manifest", d.GetFingerprint())
		}
	}
	return &held{l, list.Parts}, nil
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

// fetchFiles writes the files for which want is true, and then the manifest.
func fetchFiles(ctx context.Context, st Reader, l *held, dir string, want func(name string) bool) error {
	for n, f := range l.Files {
		if !want(f.Name) {
			continue
		}
		out, err := vfs.OS.OpenFile(filepath.Join(dir, f.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			err = fetchFile(ctx, st, l, n, out)
		}
		if err != nil {
			return fmt.Errorf("fetch %s of data %.12s: %w", f.Name, l.Fingerprint, err)
		}
	}
	return vfs.WriteNew(vfs.OS, filepath.Join(dir, dataset.ManifestName), l.Manifest, 0o644)
}

// fetchFile writes file n and verifies its checksum.
func fetchFile(ctx context.Context, st Reader, l *held, n int, out io.WriteCloser) error {
	sum := sha256.New()
	if err := errors.Join(fetchParts(ctx, st, l, n, io.MultiWriter(out, sum)), out.Close()); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != l.Files[n].SHA256 {
		return errors.New("what came has another checksum than the manifest says")
	}
	return nil
}

// fetchParts writes the parts of file n, each verified by its name.
func fetchParts(ctx context.Context, st Reader, l *held, n int, out io.Writer) error {
	f := l.Files[n]
	sums := l.parts[f.Name]
	if len(sums) != parts(f.Bytes) {
		return ErrNotThere
	}
	for first := 0; first < len(sums); first += batchParts {
		var keys []store.Key
		for _, sum := range sums[first:min(first+batchParts, len(sums))] {
			keys = append(keys, partKey(l.Fingerprint, n, sum))
		}
		values, err := st.Get(ctx, keys)
		if err != nil {
			return err
		}
		for i, v := range values {
			if v == nil {
				return ErrNotThere
			}
			if store.ContentName(v) != keys[i].Name {
				return fmt.Errorf("part %d: %w: it has another SHA-256 than its name says", first+i, store.ErrCorrupt)
			}
			if _, err := out.Write(v); err != nil {
				return err
			}
		}
	}
	return nil
}
