package storerpc_test

import (
	"context"
	"fmt"

	"taxon/store"
	"taxon/store/memory"
	"taxon/store/storerpc"
)

// A job's values over three embedded shards: written by two attempts of a task, committed and read.
func Example() {
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	open := func() *storerpc.Client {
		shards := []store.Shard{memory.New(memory.Options{}), memory.New(memory.Options{}), memory.New(memory.Options{})}
		c, err := storerpc.Embedded(shards, store.Limits{})
		check(err)
		return c
	}
	c := open()
	first := store.Key{Job: "job-1", Step: 4, Task: 0, Attempt: 1, Name: "dual"}
	second := first
	second.Attempt = 2
	check(c.Put(ctx, []store.Value{{Key: first, Data: []byte("half done")}}))
	check(c.Put(ctx, []store.Value{{Key: second, Data: []byte("done")}}))
	check(c.Commit(ctx, "job-1", 4, []uint32{2})) // attempt 2 of task 0 counts

	got, err := c.Get(ctx, []store.Key{first, second})
	check(err)
	fmt.Printf("%v %q\n", got[0] == nil, got[1])
	// Output: true "done"
}
