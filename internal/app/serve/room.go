package serve

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"taxon/internal/ui/format"
)

// DefaultMemory is the default of Options.Memory.
const DefaultMemory = 128 << 20

// room is the memory that requests under way share: their bodies as far as they have arrived, and
// the answers that have not been written yet.
type room struct {
	all   int64
	left  atomic.Int64
	large atomic.Bool // a buffer was dropped that is more than is kept
}

func newRoom(bytes int64) *room {
	r := &room{all: bytes}
	r.left.Store(bytes)
	return r
}

// take refuses what would be more than there is. Each success needs a give.
func (r *room) take(bytes int64) error {
	if r.left.Add(-bytes) >= 0 {
		return nil
	}
	r.give(bytes)
	if bytes > r.all {
		return refuse(http.StatusBadRequest, "the answer for one instance would take %s of memory, and requests have %s in "+
			"all: ask for fewer labels", format.Bytes(bytes), format.Bytes(r.all))
	}
	return refuse(http.StatusTooManyRequests, "requests under way take all the memory that they have (%s): "+
		"try again in a second", format.Bytes(r.all))
}

func (r *room) give(bytes int64) {
	r.left.Add(bytes)
	if bytes > keptBytes {
		r.large.Store(true)
	}
}

// bound has garbage collected before it takes more than the room again beside what models take, and
// gives back to the system what requests have taken. Call it when models have been opened.
func (r *room) bound() {
	debug.FreeOSMemory()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	models := int64(now.Sys - now.HeapReleased)
	debug.SetMemoryLimit(models + models/4 + 2*r.all)
}

// tidy gives memory back after large requests, once none is under way.
func (r *room) tidy() {
	if r.left.Load() == r.all && r.large.Swap(false) {
		debug.FreeOSMemory()
	}
}

// keptBytes is the most memory that a buffer may have to be kept for another request. What is larger
// is given back.
const keptBytes = 64 << 10
