package storerpc

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"taxon/store"
)

// placement maps keys to shards by rendezvous hashing: each shard draws a number
// from its name and the key, the highest draw holds the key. The result depends on
// the set of names only, and a shard that joins or leaves moves only the keys that
// it gains or held. Cost: one hash of the key and one of 16 bytes a shard.
type placement struct {
	names []string
	seeds []uint64 // hash of each name
}

func newPlacement(names []string) placement {
	p := placement{names: names, seeds: make([]uint64, len(names))}
	for i, n := range names {
		p.seeds[i] = xxhash.Sum64String(n)
	}
	return p
}

// of gives the index of the key's shard.
func (p placement) of(k store.Key) int {
	if len(p.seeds) == 1 {
		return 0
	}
	var buf [store.MaxKeyBytes]byte
	var pair [16]byte
	binary.LittleEndian.PutUint64(pair[8:], xxhash.Sum64(store.AppendKey(buf[:0], k)))
	best, bestDraw := -1, uint64(0)
	for i, seed := range p.seeds {
		binary.LittleEndian.PutUint64(pair[:8], seed)
		draw := xxhash.Sum64(pair[:])
		if best < 0 || draw > bestDraw || draw == bestDraw && p.names[i] < p.names[best] {
			best, bestDraw = i, draw
		}
	}
	return best
}
