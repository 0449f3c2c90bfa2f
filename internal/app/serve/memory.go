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

// memoryBudget is the memory that running requests share. It holds the arrived parts of their
// bodies, and the answers that are not written yet.
type memoryBudget struct {
	all  int64
	left atomic.Int64
	// large reports that a buffer was dropped that is too large to be kept.
	large atomic.Bool
}

// newMemoryBudget returns a budget of a number of bytes.
func newMemoryBudget(bytes int64) *memoryBudget {
	r := &memoryBudget{all: bytes}
	r.left.Store(bytes)
	return r
}

// acquire reserves memory, or returns an error if too little is left. Each success needs a release.
func (r *memoryBudget) acquire(bytes int64) error {
	if r.left.Add(-bytes) >= 0 {
		return nil
	}
	r.release(bytes)
	if bytes > r.all {
		return refuse(http.StatusBadRequest, "the answer for one instance would take %s of memory, and requests have %s in "+
			"all: ask for fewer labels", format.Bytes(bytes), format.Bytes(r.all))
	}
	return refuse(http.StatusTooManyRequests, "requests under way take all the memory that they have (%s): "+
		"try again in a second", format.Bytes(r.all))
}

// release returns memory to the budget.
func (r *memoryBudget) release(bytes int64) {
	r.left.Add(bytes)
	if bytes > keptBytes {
		r.large.Store(true)
	}
}

// bound sets the garbage collector's limit to the memory of the models plus twice the budget, and
// returns the memory that earlier requests used to the system. It must be called whenever models
// have been opened.
func (r *memoryBudget) bound() {
	debug.FreeOSMemory()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	models := int64(now.Sys - now.HeapReleased)
	debug.SetMemoryLimit(models + models/4 + 2*r.all)
}

// tidy returns memory to the system after large requests, once no request is running.
func (r *memoryBudget) tidy() {
	if r.left.Load() == r.all && r.large.Swap(false) {
		debug.FreeOSMemory()
	}
}

// keptBytes is the largest size of a buffer that is kept for another request. Larger ones are
// freed.
const keptBytes = 64 << 10
