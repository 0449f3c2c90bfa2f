package sim

import (
	taxonv1 "taxon/proto/taxon/v1"
)

const (
	storeTimeout = 300 * ms
	storeTries   = 4
)

// client is the store as a process uses it: placement by hash, replicas, retries.
type client struct {
	w        *world
	self     *process
	shards   []*shard
	replicas int
}

// place lists the shards of a value, the preferred one first.
func (c *client) place(k key) []*shard {
	h := mix(uint64(k.step)<<40 ^ uint64(k.task)<<8 ^ uint64(len(k.job)))
	out := make([]*shard, c.replicas)
	for i := range out {
		out[i] = c.shards[(h+uint64(i))%uint64(len(c.shards))]
	}
	return out
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// put writes a value to all its replicas. ok is false if one of them is unreachable.
func (c *client) put(k key, hash uint64, done func(ok bool)) {
	left, good := c.replicas, true
	for _, s := range c.place(k) {
		c.try(s, storeTries, func(answer func(bool)) { s.put([]key{k}, hash, answer) }, func(ok bool) {
			good = good && ok
			if left--; left == 0 {
				done(good)
			}
		})
	}
}

// try calls a shard until it answers, at most tries times.
func (c *client) try(s *shard, tries int, serve func(answer func(bool)), done func(ok bool)) {
	call(c.w, c.self, &s.process, storeTimeout, serve, func(_ bool, ok bool) {
		if ok || tries <= 1 {
			done(ok)
			return
		}
		c.w.after(c.self, c.w.between(20*ms, 200*ms), func() { c.try(s, tries-1, serve, done) })
	})
}

// read is the result of a get: values by place, lost places, and whether a shard was unreachable.
type read struct {
	hash map[taxonv1.Place]uint64
	lost []taxonv1.Place
	away bool
}

// get reads the values of places, one replica after the other.
func (c *client) get(job string, places []taxonv1.Place, done func(read)) {
	out := read{hash: map[taxonv1.Place]uint64{}}
	seen := map[taxonv1.Place]bool{}
	var want []taxonv1.Place
	for _, p := range places {
		if p.Step != 0 && !seen[p] {
			seen[p] = true
			want = append(want, p)
		}
	}
	c.getFrom(job, want, 0, &out, done)
}

// getFrom queries the n-th replica of each place, and the next replica for missing values.
func (c *client) getFrom(job string, want []taxonv1.Place, n int, out *read, done func(read)) {
	if len(want) == 0 || n == c.replicas {
		if out.away = out.away && len(want) > 0; !out.away { // if a shard was unreachable, the values may still exist
			out.lost = want
		}
		done(*out)
		return
	}
	byShard := make([][]taxonv1.Place, len(c.shards))
	for _, p := range want {
		s := c.place(key{job, p.Step, p.Task, p.Attempt})[n]
		for i := range c.shards {
			if c.shards[i] == s {
				byShard[i] = append(byShard[i], p)
			}
		}
	}
	left := 0
	var missing []taxonv1.Place
	for _, list := range byShard {
		if len(list) > 0 {
			left++
		}
	}
	for i, list := range byShard {
		if len(list) == 0 {
			continue
		}
		keys := make([]key, len(list))
		for j, p := range list {
			keys[j] = key{job, p.Step, p.Task, p.Attempt}
		}
		c.fetch(c.shards[i], keys, storeTries, func(got []found, ok bool) {
			for j, p := range list {
				switch {
				case ok && got[j].ok:
					out.hash[p] = got[j].hash
				default:
					missing = append(missing, p)
				}
			}
			out.away = out.away || !ok
			if left--; left == 0 {
				c.getFrom(job, missing, n+1, out, done)
			}
		})
	}
}

// fetch reads keys from a shard until it answers.
func (c *client) fetch(s *shard, keys []key, tries int, done func(got []found, ok bool)) {
	call(c.w, c.self, &s.process, storeTimeout, func(answer func([]found)) {
		c.w.after(&s.process, c.w.between(0, ms)+s.slow/4, func() { answer(s.get(keys)) })
	}, func(got []found, ok bool) {
		if ok || tries <= 1 {
			done(got, ok)
			return
		}
		c.w.after(c.self, c.w.between(20*ms, 200*ms), func() { c.fetch(s, keys, tries-1, done) })
	})
}
