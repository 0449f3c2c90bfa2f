package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"taxon/internal/fs"
	"taxon/store"
)

const (
	// restoreBytes and restoreValues bound the size and the number of values of a batch that
	// Restore puts.
	restoreBytes  = 8 << 20
	restoreValues = 4096
)

// Snapshot is a snapshot that was written.
type Snapshot struct {
	Manifest
	src  fs.Source
	path string
}

// Open reads the manifest of a snapshot. If it is damaged, the error is store.ErrSnapshot with the
// file's name.
func Open(ctx context.Context, src fs.Source, path string) (*Snapshot, error) {
	s := &Snapshot{src: src, path: strings.TrimRight(path, "/")}
	b, err := s.readAll(ctx, manifestName, maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name(manifestName), err)
	}
	s.Manifest = *m
	return s, nil
}

// name returns the path of a file of the snapshot.
func (s *Snapshot) name(file string) string { return s.path + "/" + file }

// readAll reads a file of at most limit bytes.
func (s *Snapshot) readAll(ctx context.Context, file string, limit uint64) ([]byte, error) {
	f, _, err := s.src.Open(ctx, s.name(file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, fs.Explain(s.name(file), err)
	}
	if uint64(len(b)) > limit {
		return nil, fmt.Errorf("%s: %w: it is larger than %d bytes", s.name(file), store.ErrSnapshot, limit)
	}
	return b, nil
}

// ReadExtra reads and verifies a further file that the writer added.
func (s *Snapshot) ReadExtra(ctx context.Context, name string) ([]byte, error) {
	i := slices.IndexFunc(s.Extra, func(f File) bool { return f.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s: %w: it has no file %q", s.path, store.ErrSnapshot, name)
	}
	b, err := s.readAll(ctx, name, s.Extra[i].Bytes)
	if err != nil {
		return nil, err
	}
	if uint64(len(b)) != s.Extra[i].Bytes || store.Checksum(b) != s.Extra[i].CRC32C {
		return nil, s.damaged(name)
	}
	return b, nil
}

// damaged returns the error of a file that does not match the manifest.
func (s *Snapshot) damaged(file string) error {
	return fmt.Errorf("%s: %w: it is not as the manifest says: take another snapshot", s.name(file), store.ErrSnapshot)
}

// Restore checks all parts and only then puts their values into dst, which may have any number of
// shards and other values. It may be interrupted and called again.
func (s *Snapshot) Restore(ctx context.Context, dst store.Store) error {
	if err := s.Verify(ctx); err != nil {
		return err
	}
	return s.Each(ctx, dst.Put)
}

// Verify reads and checks all parts.
func (s *Snapshot) Verify(ctx context.Context) error {
	return s.Each(ctx, func(context.Context, []store.Value) error { return nil })
}

// Each reads the parts and passes their verified values on in batches. put is called for several
// parts at a time, and also before it is known whether the rest is intact.
func (s *Snapshot) Each(ctx context.Context, put func(context.Context, []store.Value) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, f := range s.Parts {
		g.Go(func() error { return s.part(ctx, f, put) })
	}
	return g.Wait()
}

// part reads one part and passes its values on in batches.
func (s *Snapshot) part(ctx context.Context, f File, put func(context.Context, []store.Value) error) error {
	in, _, err := s.src.Open(ctx, s.name(f.Name))
	if err != nil {
		return err
	}
	defer in.Close()
	sum := &summed{r: in}
	var batch []store.Value
	var bytes, values uint64
	flush := func() error {
		err := put(ctx, batch)
		batch, bytes = nil, 0
		return err
	}
	err = readPart(ctx, sum, store.Limits{}, func(v store.Checksummed) error {
		if v.Key.Job != s.Job {
			return fmt.Errorf("%w: it holds a value of job %q", store.ErrSnapshot, v.Key.Job)
		}
		values++
		batch = append(batch, store.Value{Key: v.Key, Data: v.Data})
		if bytes += uint64(len(v.Data)); bytes >= restoreBytes || len(batch) == restoreValues {
			return flush()
		}
		return nil
	})
	switch {
	case err == nil:
	case errors.Is(err, store.ErrSnapshot):
		return fmt.Errorf("%s: %w", s.name(f.Name), err)
	default:
		return fmt.Errorf("restore of %s: %w", s.name(f.Name), err)
	}
	if sum.bytes != f.Bytes || sum.crc32c != f.CRC32C || values != f.Values {
		return s.damaged(f.Name)
	}
	if len(batch) == 0 {
		return ctx.Err()
	}
	return flush()
}

// summed is a reader that counts what is read and computes its checksum.
type summed struct {
	r      io.Reader
	bytes  uint64
	crc32c uint32
}

// Read implements io.Reader.
func (s *summed) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.bytes += uint64(n)
	s.crc32c = store.UpdateChecksum(s.crc32c, p[:n])
	return n, err
}
