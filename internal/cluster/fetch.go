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

	"taxon/internal/dataset"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Reader is what fetching needs of a store.
type Reader interface {
	Get(ctx context.Context, keys []store.Key) ([][]byte, error)
}

// ErrNotThere says that the store does not hold (all of) a data set. It counts as a store
// that is away: workers that have the set go on, and once it is uploaded all do.
var ErrNotThere error = notThere{}

type notThere struct{}

func (notThere) Error() string {
	return "is not in the store (any more): `taxon submit` the same data again, which uploads it, and jobs that wait for it go on"
}

// Unwrap makes it an ErrUnavailable.
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

// FetchNames writes what a model takes over from a job's data (dataset.OpenNames) into
// the folder dir, which must be there and empty.
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

// fetchFiles writes the files that want accepts, and the manifest last.
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

// fetchFile writes one file and compares its checksum.
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
