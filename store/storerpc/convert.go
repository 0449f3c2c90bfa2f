package storerpc

import (
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

func keyToProto(k store.Key) *taxonv1.Key {
	return &taxonv1.Key{Job: k.Job, Step: k.Step, Task: k.Task, Attempt: k.Attempt, Name: k.Name}
}

// keyFromProto accepts nil, which gives a key that does not validate.
func keyFromProto(k *taxonv1.Key) store.Key {
	return store.Key{Job: k.GetJob(), Step: k.GetStep(), Task: k.GetTask(), Attempt: k.GetAttempt(), Name: k.GetName()}
}
