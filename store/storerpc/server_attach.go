package storerpc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// shortCircuit lets clients on this host read and write values by way of the shard's files.
func (s *Server) shortCircuit() {
	filed, ok := s.shard.(store.Filed)
	if !ok || filed.Folder() == "" || !shortCircuits {
		return
	}
	if folder, err := filepath.Abs(filed.Folder()); err == nil {
		s.filed, s.inbox = filed, &inbox{folder: folder}
	}
}

var errNoFiles = status.Error(codes.Unimplemented, "this shard's files are not shown")

// Attach tells where the shard's files lie.
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

// Locate tells where values lie in the shard's files.
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

// locateResult codes places: there are few files.
func locateResult(places []store.Location) *taxonv1.LocateResult {
	n := len(places)
	out := &taxonv1.LocateResult{File: make([]uint32, n), Offset: make([]uint64, n), Bytes: make([]uint64, n), Crc32C: make([]uint32, n)}
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

// buffers are what Adopt reads into.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Adopt stores the values of a client's file. Its memory is that of a Put's group.
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
	buffer := buffers.Get().(*[]byte) // the shard keeps nothing of it: see store.Filed
	defer buffers.Put(buffer)
	*buffer = slices.Grow((*buffer)[:0], int(size))[:size]
	data := *buffer
	switch err := s.inbox.read(req.File, data); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, status.Error(codes.NotFound, "no such file in the shard's inbox")
	case err != nil:
		return nil, toStatus(fmt.Errorf("adopt: %w: %w", store.ErrInvalid, err))
	}
	values := make([]store.Summed, len(req.Keys))
	for i, k := range req.Keys {
		n := req.Bytes[i]
		values[i] = store.Summed{Key: keyFromProto(k), Data: data[:n:n], CRC32C: req.Crc32C[i]}
		data = data[n:]
	}
	if err := s.store(ctx, values); err != nil {
		return nil, toStatus(err)
	}
	return &taxonv1.PutResult{Values: uint64(len(values)), Bytes: size}, nil
}

// store hands values to the shard, and looks after what clients have left in its folder.
func (s *Server) store(ctx context.Context, values []store.Summed) error {
	err := s.shard.PutSummed(ctx, values)
	if s.inbox != nil {
		s.inbox.sweep(errors.Is(err, store.ErrFull))
	}
	return err
}

// checkAdopt bounds a request before anything is read for it, and sums its bytes.
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
