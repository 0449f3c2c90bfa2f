package storerpc

import (
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// keyToProto fills a message with a key.
func keyToProto(to *taxonv1.Key, k store.Key) *taxonv1.Key {
	to.Job, to.Step, to.Task, to.Attempt, to.Name = k.Job, k.Step, k.Task, k.Attempt, k.Name
	return to
}

// keyFromProto accepts nil, which gives a key that does not validate.
func keyFromProto(k *taxonv1.Key) store.Key {
	return store.Key{Job: k.GetJob(), Step: k.GetStep(), Task: k.GetTask(), Attempt: k.GetAttempt(), Name: k.GetName()}
}

// slab hands out messages that were allocated together: batches hold thousands of
// small ones.
type slab[M any] []M

func newSlab[M any](n int) slab[M] { return make(slab[M], n) }

// next gives a zero message; beyond the slab's size one of its own.
func (s *slab[M]) next() *M {
	if len(*s) == 0 {
		return new(M)
	}
	m := &(*s)[0]
	*s = (*s)[1:]
	return m
}
