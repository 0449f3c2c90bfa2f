package storerpc

import (
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"

	"taxon/store"
)

// placement maps keys to shards by rendezvous hashing. Each shard draws a number from its name
// and the key; the shards with the highest numbers hold the key. The result depends only on the
// set of names. A shard that joins or leaves moves only the keys that it gains or held. Cost: one
// hash of the key, and one of 16 bytes a shard.
//
// All that an attempt of a task writes is placed alike, so that it is one write to one shard.
// Values of data sets, which are large, are placed one by one.
type placement struct {
	names []string
	seeds []uint64 // hash of each name
}

// dataJobs is the prefix of data sets' jobs.
const dataJobs = "data-"

// together says whether a key is placed together with the others of its attempt.
func together(k store.Key) bool { return !strings.HasPrefix(k.Job, dataJobs) }

func newPlacement(names []string) placement {
	p := placement{names: names, seeds: make([]uint64, len(names))}
	for i, n := range names {
		p.seeds[i] = xxhash.Sum64String(n)
	}
	return p
}

// draws calls f with each shard's number for a key.
func (p placement) draws(k store.Key, f func(shard int, draw uint64)) {
	var buf [store.MaxKeyBytes]byte
	var pair [16]byte
	if together(k) {
		k.Name = ""
	}
	binary.LittleEndian.PutUint64(pair[8:], xxhash.Sum64(store.AppendKey(buf[:0], k)))
	for i, seed := range p.seeds {
		binary.LittleEndian.PutUint64(pair[:8], seed)
		f(i, xxhash.Sum64(pair[:]))
	}
}

// of is the index of the shard with the key's first copy.
func (p placement) of(k store.Key) int {
	if len(p.seeds) == 1 {
		return 0
	}
	best, bestDraw := -1, uint64(0)
	p.draws(k, func(i int, draw uint64) {
		if best < 0 || draw > bestDraw || draw == bestDraw && p.names[i] < p.names[best] {
			best, bestDraw = i, draw
		}
	})
	return best
}

// maxReplicas bounds the copies of a value.
const maxReplicas = 8

// replicas are the shards that hold a key's copies, in order of preference.
type replicas [maxReplicas]uint16

// rank returns the n shards with the highest numbers, highest first. n is at most the number of
// shards and maxReplicas.
func (p placement) rank(k store.Key, n int) replicas {
	var out replicas
	if n == 1 {
		out[0] = uint16(p.of(k))
		return out
	}
	var top [maxReplicas]uint64
	have := 0
	p.draws(k, func(i int, draw uint64) {
		at := have
		for at > 0 && (draw > top[at-1] || draw == top[at-1] && p.names[i] < p.names[out[at-1]]) {
			at--
		}
		if at >= n {
			return
		}
		have = min(have+1, n)
		copy(top[at+1:have], top[at:have])
		copy(out[at+1:have], out[at:have])
		top[at], out[at] = draw, uint16(i)
	})
	return out
}
