package storerpc

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Put stores a stream of values and acknowledges the last one.
func (s *Server) Put(stream grpc.ClientStreamingServer[taxonv1.PutChunks, taxonv1.PutResult]) error {
	return s.watch(func(t *turns) error { return s.put(stream, t) })
}

func (s *Server) put(stream grpc.ClientStreamingServer[taxonv1.PutChunks, taxonv1.PutResult], t *turns) error {
	if err := acquire(stream.Context(), s.slots); err != nil {
		return toStatus(err)
	}
	defer func() { <-s.slots }()
	in := putStream{server: s, ctx: stream.Context()}
	defer in.release()
	for {
		var message *taxonv1.PutChunks
		err := t.other(func() (err error) { message, err = stream.Recv(); return err })
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if in.group == nil {
			in.group = make([]store.Summed, 0, min(len(message.Chunks), messageChunks))
		}
		for _, c := range message.Chunks {
			if err := in.add(c); err != nil {
				return toStatus(err)
			}
		}
	}
	if err := in.end(); err != nil {
		return toStatus(err)
	}
	return stream.SendAndClose(&taxonv1.PutResult{Values: in.values, Bytes: in.bytes})
}

// putStream is the state of one Put call.
type putStream struct {
	server *Server
	ctx    context.Context

	key   store.Key // of the value under way
	value assembler
	large bool // the stream has the token for a value over a group's size

	group         []store.Summed // whole values not yet in the shard
	pending       uint64         // their bytes
	values, bytes uint64         // of the whole stream
}

func (p *putStream) add(c *taxonv1.PutChunk) error {
	if c == nil {
		return fmt.Errorf("put: %w: empty chunk", store.ErrInvalid)
	}
	if c.Key != nil {
		if err := p.begin(c); err != nil {
			return err
		}
	} else if !p.value.begun {
		return fmt.Errorf("put: %w: a value's first chunk has no key", store.ErrInvalid)
	}
	if err := p.value.add(c.Data, c.Size); err != nil {
		return &store.KeyError{Op: "put", Key: p.key, Err: err}
	}
	if !c.Last {
		return nil
	}
	data, err := p.value.finish()
	if err != nil {
		return &store.KeyError{Op: "put", Key: p.key, Err: err}
	}
	// Within this process the sender has just made the sum from this very slice.
	p.group = append(p.group, store.Summed{Key: p.key, Data: data, CRC32C: c.Crc32C, Checked: p.server.local})
	p.pending += uint64(len(data))
	if p.pending >= groupBytes {
		return p.flush()
	}
	return nil
}

// begin checks a value before its bytes are taken in.
func (p *putStream) begin(c *taxonv1.PutChunk) error {
	key := keyFromProto(c.Key)
	if p.value.begun {
		return &store.KeyError{Op: "put", Key: p.key, Err: fmt.Errorf("%w: value has no last chunk", store.ErrInvalid)}
	}
	if err := key.Validate(); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	l := p.server.limits
	if err := l.CheckValue("put", key, c.Size); err != nil {
		return err
	}
	p.key = key
	p.values++
	p.bytes += c.Size
	if err := l.CheckBatch("put", int(min(p.values, 1<<31-1)), p.bytes); err != nil {
		return err
	}
	if c.Size <= groupBytes || p.server.local {
		return nil
	}
	if err := p.flush(); err != nil { // other streams' large values wait for this one's
		return err
	}
	p.large = true
	if err := acquire(p.ctx, p.server.large); err != nil {
		p.large = false
		return err
	}
	return nil
}

// flush hands the whole values to the shard.
func (p *putStream) flush() error {
	err := p.server.store(p.ctx, p.group)
	p.group, p.pending = nil, 0
	p.release()
	return err
}

// release gives the token for large values back.
func (p *putStream) release() {
	if p.large {
		p.large = false
		<-p.server.large
	}
}

func (p *putStream) end() error {
	if p.value.begun {
		return &store.KeyError{Op: "put", Key: p.key, Err: fmt.Errorf("%w: stream ends within the value", store.ErrInvalid)}
	}
	return p.flush()
}
