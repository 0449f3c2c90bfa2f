package storerpc

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/fs/vfs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// A client on the same host as a durable shard uses a short circuit. It reads values directly
// from the shard's segments, and writes values into a file that the shard adopts. Only heads go
// over the connection. Whatever fails on this path, for any reason, is done over the connection.

// shortLeast is the size from which a Put by file costs less than a stream.
const shortLeast = 16 << 10

// attachment is what a client knows about a shard's files.
type attachment struct {
	// folder is empty if the shard is on another host or shows no files.
	folder string
	// passed counts the calls since the shard was asked.
	passed atomic.Uint32
}

// askAgain is the number of calls after which a shard without files is asked again.
const askAgain = 256

// attached returns the shard's folder, and asks for it on first use. It is empty if there is no
// short circuit.
func (s *shard) attached(ctx context.Context) string {
	if s.local {
		return ""
	}
	if a := s.files.Load(); a != nil && (a.folder != "" || a.passed.Add(1) < askAgain) {
		return a.folder
	}
	r, err := s.rpc.Attach(ctx, &taxonv1.AttachRequest{})
	a := &attachment{}
	switch {
	case err != nil && (away(fromStatus(s.name, "attach", err)) || ctx.Err() != nil):
		return "" // asked again the next time
	case err == nil && filepath.IsAbs(r.Folder) && inboxName.MatchString(r.Proof):
		if info, err := vfs.OS.Lstat(filepath.Join(r.Folder, inboxFolder, r.Proof)); err == nil && info.Mode().IsRegular() {
			a.folder = r.Folder
		}
	}
	s.files.Store(a)
	return a.folder
}

// detach forgets the shard's folder, so that it is asked for again: the shard may have moved.
func (s *shard) detach() {
	s.files.Store(nil)
	s.scratch.Swap(nil).remove()
}

// adopt puts values by way of a file. done is false if the stream must be used.
func (s *shard) adopt(ctx context.Context, values []store.Checksummed, positions []int32) (done bool, err error) {
	size := uint64(0)
	for _, p := range positions {
		if size += uint64(len(values[p].Data)); size > groupBytes {
			return false, nil
		}
	}
	if size < shortLeast {
		return false, nil
	}
	folder := s.attached(ctx)
	if folder == "" {
		return false, nil
	}
	req := &taxonv1.AdoptRequest{Keys: make([]*taxonv1.Key, len(positions)),
		Bytes: make([]uint64, len(positions)), Crc32C: make([]uint32, len(positions))}
	keys := newSlab[taxonv1.Key](len(positions))
	for i, p := range positions {
		v := &values[p]
		req.Keys[i], req.Bytes[i], req.Crc32C[i] = keyToProto(keys.next(), v.Key), uint64(len(v.Data)), v.CRC32C
	}
	f, err := s.takeScratch(folder)
	if err == nil {
		defer s.keepScratch(f)
		err = f.write(values, positions)
	}
	if err != nil {
		s.detach()
		return false, nil
	}
	req.File = filepath.Base(f.path)
	_, err = s.rpc.Adopt(ctx, req)
	switch status.Code(err) {
	// The shard saw another file, or none.
	case codes.NotFound, codes.Unimplemented, codes.InvalidArgument, codes.DataLoss:
		s.detach()
		return false, nil
	}
	return true, fromStatus(s.name, "put", err)
}

// scratch is a file in a shard's inbox. One is kept for the next Put, as its pages are in memory.
// The shard removes what a killed client leaves.
type scratch struct {
	file vfs.File
	path string
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, ioBytes) }}

// write writes values, one after the other, over the file's beginning.
func (f *scratch) write(values []store.Checksummed, positions []int32) error {
	out := writers.Get().(*bufio.Writer)
	defer func() {
		out.Reset(nil) // the pool must not keep the file
		writers.Put(out)
	}()
	out.Reset(io.NewOffsetWriter(f.file, 0))
	for _, p := range positions {
		_, _ = out.Write(values[p].Data) // Flush returns the error
	}
	return out.Flush()
}

// remove removes the file. It does nothing for nil.
func (f *scratch) remove() {
	if f != nil {
		_ = vfs.OS.Remove(f.path) // the shard removes it otherwise
		_ = f.file.Close()
	}
}

// takeScratch returns a file to which nobody else writes.
func (s *shard) takeScratch(folder string) (*scratch, error) {
	if f := s.scratch.Swap(nil); f != nil {
		return f, nil
	}
	path := filepath.Join(folder, inboxFolder, newName())
	file, err := vfs.OS.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &scratch{file, path}, nil
}

// keepScratch keeps a file for the next Put, if there is none yet and the folder has not changed.
func (s *shard) keepScratch(f *scratch) {
	a := s.files.Load()
	if a == nil || !strings.HasPrefix(f.path, a.folder) || !s.scratch.CompareAndSwap(nil, f) {
		f.remove()
	}
}

// read reads values from the shard's segments: keys[p] into out[p]. It returns the positions that
// are left for Get, in order.
func (s *shard) read(ctx context.Context, keys []store.Key, positions []int32, out [][]byte,
	size *atomic.Uint64) (left []int32) {
	folder := s.attached(ctx)
	if folder == "" {
		return positions
	}
	at, err := s.rpc.Locate(ctx, getRequest(keys, positions))
	n := len(positions)
	if err != nil || len(at.File) != n || len(at.Offset) != n || len(at.Bytes) != n || len(at.Crc32C) != n {
		return positions
	}
	files := opened{folder: folder, names: at.Files, files: make([]vfs.File, len(at.Files))}
	defer files.close()
	for i, p := range positions {
		if ctx.Err() != nil || s.limits.CheckValue("get", keys[p], at.Bytes[i]) != nil ||
			s.limits.CheckBatch("get", n, size.Load()+at.Bytes[i]) != nil {
			left = append(left, p)
			continue
		}
		data, err := files.read(at.File[i], at.Offset[i], at.Bytes[i])
		v := store.Checksummed{Key: keys[p], Data: data, CRC32C: at.Crc32C[i]}
		if err != nil || v.Verify("get") != nil {
			left = append(left, p)
			continue
		}
		size.Add(at.Bytes[i])
		out[p] = data
	}
	if files.missed {
		s.detach()
	}
	return left
}

// opened are the files from which one call reads.
type opened struct {
	folder string
	names  []string
	files  []vfs.File // nil: not yet
	missed bool       // a file could not be opened
}

// read reads part of a file; files are numbered from 1. The caller has bounded the size.
func (o *opened) read(file uint32, offset, bytes uint64) ([]byte, error) {
	if file == 0 || uint64(file) > uint64(len(o.files)) || offset > 1<<62 {
		return nil, store.ErrMissing
	}
	at := &o.files[file-1]
	if *at == nil {
		name := o.names[file-1]
		if !filepath.IsLocal(name) {
			return nil, store.ErrInvalid
		}
		var err error
		if *at, err = openPlain(filepath.Join(o.folder, name)); err != nil {
			o.missed = true
			return nil, err
		}
	}
	data := make([]byte, bytes)
	if bytes == 0 {
		return data, nil
	}
	_, err := (*at).ReadAt(data, int64(offset))
	return data, err
}

func (o *opened) close() {
	for _, f := range o.files {
		if f != nil {
			_ = f.Close()
		}
	}
}
