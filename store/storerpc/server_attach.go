package storerpc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/fs/vfs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// shortCircuit lets clients on this host read and write values by way of the shard's files.
func (s *Server) shortCircuit() {
	filed, ok := s.shard.(store.FileBacked)
	if !ok || filed.Folder() == "" || !shortCircuits {
		return
	}
	if folder, err := filepath.Abs(filed.Folder()); err == nil {
		s.filed, s.inbox = filed, &inbox{folder: folder}
	}
}

var errNoFiles = status.Error(codes.Unimplemented, "this shard's files are not shown")

// Attach says where the shard's files are.
func (s *Server) Attach(context.Context, *taxonv1.AttachRequest) (*taxonv1.AttachResult, error) {
	if s.inbox == nil {
		return nil, errNoFiles
	}
	proof, err := s.inbox.attach()
	if err != nil {
		return nil, toStatus(fmt.Errorf("attach: %w", err))
	}
	s.inbox.sweep(false)
	return &taxonv1.AttachResult{Folder: s.inbox.folder, Proof: proof}, nil
}

// Locate says where values are in the shard's files.
func (s *Server) Locate(ctx context.Context, req *taxonv1.GetRequest) (*taxonv1.LocateResult, error) {
	if s.inbox == nil {
		return nil, errNoFiles
	}
	if err := s.limits.CheckBatch("get", len(req.Keys), 0); err != nil {
		return nil, toStatus(err)
	}
	if err := acquire(ctx, s.slots); err != nil {
		return nil, toStatus(err)
	}
	defer func() { <-s.slots }()
	keys := make([]store.Key, len(req.Keys))
	for i, k := range req.Keys {
		keys[i] = keyFromProto(k)
	}
	places, err := s.filed.Locate(ctx, keys)
	if err != nil {
		return nil, toStatus(err)
	}
	return locateResult(places), nil
}

// locateResult encodes places. There are few different files.
func locateResult(places []store.Location) *taxonv1.LocateResult {
	n := len(places)
	out := &taxonv1.LocateResult{File: make([]uint32, n), Offset: make([]uint64, n), Bytes: make([]uint64, n),
		Crc32C: make([]uint32, n)}
	seen := map[string]uint32{"": 0}
	for i, p := range places {
		at, ok := seen[p.File]
		if !ok {
			out.Files = append(out.Files, p.File)
			at = uint32(len(out.Files))
			seen[p.File] = at
		}
		out.File[i], out.Offset[i], out.Bytes[i], out.Crc32C[i] = at, p.Offset, p.Bytes, p.CRC32C
	}
	return out
}

// buffers are reused by Adopt.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Adopt stores the values in a client's file. Its memory is that of a Put's group.
func (s *Server) Adopt(ctx context.Context, req *taxonv1.AdoptRequest) (*taxonv1.PutResult, error) {
	if s.inbox == nil {
		return nil, errNoFiles
	}
	size, err := s.checkAdopt(req)
	if err != nil {
		return nil, toStatus(fmt.Errorf("adopt: %w", err))
	}
	if err := acquire(ctx, s.slots); err != nil {
		return nil, toStatus(err)
	}
	defer func() { <-s.slots }()
	buffer := buffers.Get().(*[]byte) // the shard does not keep it: see store.FileBacked
	defer buffers.Put(buffer)
	*buffer = slices.Grow((*buffer)[:0], int(size))[:size]
	data := *buffer
	switch err := s.inbox.read(req.File, data); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, status.Error(codes.NotFound, "no such file in the shard's inbox")
	case err != nil:
		return nil, toStatus(fmt.Errorf("adopt: %w: %w", store.ErrInvalid, err))
	}
	values := make([]store.Checksummed, len(req.Keys))
	for i, k := range req.Keys {
		n := req.Bytes[i]
		values[i] = store.Checksummed{Key: keyFromProto(k), Data: data[:n:n], CRC32C: req.Crc32C[i]}
		data = data[n:]
	}
	if err := s.store(ctx, values); err != nil {
		return nil, toStatus(err)
	}
	return &taxonv1.PutResult{Values: uint64(len(values)), Bytes: size}, nil
}

// store passes values to the shard, and removes what clients have left in its folder.
func (s *Server) store(ctx context.Context, values []store.Checksummed) error {
	err := s.shard.PutChecksummed(ctx, values)
	switch {
	case err == nil:
		s.refused.Store(0)
	case errors.Is(err, store.ErrFull):
		size := uint64(0)
		for i := range values {
			size += uint64(len(values[i].Data))
		}
		s.refused.Store(size)
	}
	if s.inbox != nil {
		s.inbox.sweep(errors.Is(err, store.ErrFull))
	}
	return err
}

// checkAdopt checks a request before anything is read for it, and returns its bytes.
func (s *Server) checkAdopt(req *taxonv1.AdoptRequest) (size uint64, err error) {
	n := len(req.Keys)
	if !inboxName.MatchString(req.File) || len(req.Bytes) != n || len(req.Crc32C) != n {
		return 0, fmt.Errorf("%w: a file's name, and as many sizes and checksums as keys must be given", store.ErrInvalid)
	}
	for _, b := range req.Bytes {
		if size += b; b > groupBytes || size > groupBytes {
			return 0, fmt.Errorf("%w: more than %d bytes in one file", store.ErrTooLarge, groupBytes)
		}
	}
	return size, s.limits.CheckBatch("put", n, size)
}

// inboxFolder is where clients of a short circuit put files, within a shard's folder.
const inboxFolder = "inbox"

// A client's file that was not written to for inboxStale belongs to a client that has ended, or
// that makes another when it needs one. Such files are looked for every sweepEvery; if the disk
// is full at once, and those idle for inboxIdle are removed.
const (
	inboxStale = time.Minute
	sweepEvery = 10 * time.Second
	inboxIdle  = 5 * time.Second
)

var inboxName = regexp.MustCompile(`^[0-9a-f]{32}$`)

// inbox is the shard's side of its folder.
type inbox struct {
	folder string // of the shard, absolute

	mu    sync.Mutex
	proof string    // name of a file in it, made at the first call
	swept time.Time // when it was last swept
}

// newName is a name that nobody can guess.
func newName() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ClearInbox removes what clients left in the folder of a shard that is not being served.
func ClearInbox(folder string) error { return vfs.OS.RemoveAll(filepath.Join(folder, inboxFolder)) }

// attach returns the name of the file that proves to a client that it sees this folder.
func (in *inbox) attach() (proof string, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	dir := filepath.Join(in.folder, inboxFolder)
	if _, err := vfs.OS.Lstat(filepath.Join(dir, in.proof)); in.proof == "" || err != nil { // or somebody has removed it
		if err := errors.Join(ClearInbox(in.folder), vfs.OS.Mkdir(dir, 0o700)); err != nil {
			return "", err
		}
		name := newName()
		if err := vfs.WriteNew(vfs.OS, filepath.Join(dir, name), nil, 0o600); err != nil {
			return "", err
		}
		in.proof = name
	}
	return in.proof, nil
}

// sweep removes clients' files that were not written to for inboxStale, unless it did so just
// before. If the disk is full it removes those idle for inboxIdle, at once.
func (in *inbox) sweep(full bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	idle := inboxStale
	if full {
		idle = inboxIdle
	} else if time.Since(in.swept) < sweepEvery {
		return
	}
	in.swept = time.Now()
	dir := filepath.Join(in.folder, inboxFolder)
	entries, _ := vfs.OS.ReadDir(dir) // otherwise the next sweep reads it
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Name() != in.proof && time.Since(info.ModTime()) > idle {
			_ = vfs.OS.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// read reads the beginning of a client's file; fs.ErrNotExist if there is none.
func (in *inbox) read(name string, data []byte) error {
	f, err := openPlain(filepath.Join(in.folder, inboxFolder, name))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < int64(len(data)) {
		return fmt.Errorf("%s has %d bytes, must have %d", name, info.Size(), len(data))
	}
	_, err = io.ReadFull(f, data)
	return err
}
