package sim

import (
	"slices"

	"taxon/coordinator/machine"
)

// key identifies a value. Each toy task writes one.
type key struct {
	job                 string
	step, task, attempt uint32
}

// value holds a toy's bytes with their checksum.
type value struct {
	hash   uint64
	sum    uint64
	synced bool
}

func summed(hash uint64) value { return value{hash: hash, sum: hash * 0x9e3779b97f4a7c15} }

func (v value) good() bool { return v.sum == v.hash*0x9e3779b97f4a7c15 }

// shard is a store shard. Acknowledged values survive a crash; others may or may not.
type shard struct {
	process
	w      *world
	id     string
	values map[key]value
	slow   machine.Tick // delay of the disk
	bug    string
}

// put stores values and acknowledges them when they are synced.
func (s *shard) put(keys []key, hash uint64, answer func(bool)) {
	for _, k := range keys {
		old, there := s.values[k]
		if there && old.good() {
			if old.hash != hash {
				s.w.fail("%s: %v is written with other bytes", s.name, k)
			}
			continue
		}
		s.values[k] = summed(hash)
	}
	if s.bug == "store acknowledges without a sync" {
		answer(true)
		return
	}
	s.w.after(&s.process, s.w.between(ms/2, 3*ms)+s.slow, func() {
		for _, k := range keys {
			if v, ok := s.values[k]; ok {
				v.synced = true
				s.values[k] = v
			}
		}
		answer(true)
	})
}

// found is the answer to a read of one key.
type found struct {
	hash uint64
	ok   bool
}

// get reads values. A corrupt value counts as missing.
func (s *shard) get(keys []key) []found {
	out := make([]found, len(keys))
	for i, k := range keys {
		if v, ok := s.values[k]; ok && (v.good() || s.bug == "read without checksum") {
			out[i] = found{v.hash, true}
		}
	}
	return out
}

// commit drops the values of attempts that are not committed.
func (s *shard) commit(job string, step uint32, attempts []uint32) {
	for k := range s.values {
		if k.job == job && k.step == step && (int(k.task) >= len(attempts) || attempts[k.task] != k.attempt) {
			delete(s.values, k)
		}
	}
}

// drop deletes steps.
func (s *shard) drop(job string, keep []uint32, before uint32) {
	for k := range s.values {
		if k.job == job && k.step < before && !slices.Contains(keep, k.step) {
			delete(s.values, k)
		}
	}
}

// crash drops the values that were not synced, except for those that the disk has already written.
func (s *shard) crash() {
	for _, k := range s.keys() {
		if !s.values[k].synced && s.w.chance(0.5) {
			delete(s.values, k)
		}
	}
}

// keys lists the values' keys in order.
func (s *shard) keys() []key {
	out := make([]key, 0, len(s.values))
	for k := range s.values {
		out = append(out, k)
	}
	slices.SortFunc(out, compareKeys)
	return out
}

func compareKeys(a, b key) int {
	switch {
	case a.job != b.job:
		if a.job < b.job {
			return -1
		}
		return 1
	case a.step != b.step:
		return int(a.step) - int(b.step)
	case a.task != b.task:
		return int(a.task) - int(b.task)
	}
	return int(a.attempt) - int(b.attempt)
}
