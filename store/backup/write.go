package backup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"taxon/store"
)

// atOnce is how many parts are written or read at a time.
const atOnce = 8

// Placed is a store that knows which of its shards holds a value.
type Placed interface {
	store.Store
	Shards() []string
	ShardOf(k store.Key) int // place in Shards
}

// Extra is a file that goes with the values, such as the coordinator's state.
type Extra struct {
	Name string // letters, digits, '.', '_', '-'
	Data []byte
}

// Spec says what to write.
type Spec struct {
	Job   string
	Keep  func(k store.Key) bool // which values; nil: all of the job
	Extra []Extra
}

// Write writes a snapshot into a folder and commits it. The values must stay while it
// runs: one that is dropped meanwhile is store.ErrMissing. After an error the folder is
// aborted, and a snapshot that was there before is untouched.
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
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, infos := range parts {
		for _, in := range infos {
			m.Values++
			m.Bytes += in.Bytes
		}
		m.Parts[i] = File{Name: fmt.Sprintf("part-%05d", i), Values: uint64(len(infos))}
		g.Go(func() error {
			return writeFile(dir, &m.Parts[i], func(w io.Writer) error { return store.SnapshotListed(gctx, w, src, infos) })
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, e := range spec.Extra {
		f := File{Name: e.Name}
		if err := writeFile(dir, &f, func(w io.Writer) error { _, err := w.Write(e.Data); return err }); err != nil {
			return nil, err
		}
		m.Extra = append(m.Extra, f)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("snapshot: %w: %s", store.ErrInvalid, err.Error())
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

// writeFile writes a file and notes its size and checksum.
func writeFile(dir Dir, f *File, write func(io.Writer) error) error {
	if err := checkName(f.Name); err != nil {
		return fmt.Errorf("snapshot: %w: %s", store.ErrInvalid, err.Error())
	}
	out, err := dir.Create(f.Name)
	if err != nil {
		return err
	}
	return errors.Join(write(&counted{out, f}), out.Close())
}

// counted sums up what is written to a file.
type counted struct {
	w io.Writer
	f *File
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.f.Bytes += uint64(n)
	c.f.CRC32C = store.UpdateChecksum(c.f.CRC32C, p[:n])
	return n, err
}
