package model

import "slices"

// Scored is a terminal with its score x.w.
type Scored struct {
	Node  int32
	Score float64
}

// before orders best first; equal scores stand in node order.
func (a Scored) before(b Scored) bool {
	return a.Score > b.Score || a.Score == b.Score && a.Node < b.Node
}

// topK keeps the k best of the terminals offered to it, as a binary heap with the worst
// on top. Offers come in node order, so a later equal score never displaces an earlier one.
type topK struct {
	heap []Scored // cap k
}

// full heaps refuse most offers; the caller tests that first, against the top.
func (t *topK) offer(s Scored) {
	h := t.heap
	if len(h) < cap(h) {
		h = append(h, s)
		for i := len(h) - 1; i > 0; {
			up := (i - 1) / 2
			if h[i].before(h[up]) {
				break
			}
			h[i], h[up] = h[up], h[i]
			i = up
		}
		t.heap = h
		return
	}
	if len(h) == 0 || !s.before(h[0]) {
		return
	}
	h[0] = s
	for i := 0; ; {
		worst := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h[worst].before(h[c]) {
				worst = c
			}
		}
		if worst == i {
			return
		}
		h[i], h[worst] = h[worst], h[i]
		i = worst
	}
}

func sortScored(s []Scored) {
	slices.SortFunc(s, func(a, b Scored) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return 0
	})
}
