package worker

import (
	"context"

	"taxon/store"
)

// outboxBytes is how much an outbox holds before it writes.
const outboxBytes = 8 << 20

// outbox collects what the tasks of a batch write, so that it goes to the store in one
// call. Once that has failed no task of the batch can be reported done.
type outbox struct {
	batch   context.Context // ends with the last of the leases: one that is lost must not fail the others
	store   Store
	values  []store.Value
	bytes   int
	written []func() // to be called once the values are in the store
	err     error
}

type outboxKey struct{}

// withOutbox is a context in which tasks write to an outbox.
func withOutbox(ctx context.Context, o *outbox) context.Context {
	return context.WithValue(ctx, outboxKey{}, o)
}

// write puts values into the store, or into the context's outbox, and calls written, unless
// it is nil, when they are there.
func write(ctx context.Context, s Store, values []store.Value, written func()) error {
	o, ok := ctx.Value(outboxKey{}).(*outbox)
	if !ok {
		o = &outbox{batch: ctx}
	}
	bytes := 0
	for _, v := range values {
		bytes += len(v.Data)
	}
	if o.bytes+bytes > outboxBytes { // so that the store's limits are a task's, not a batch's
		_ = o.flush() // its error is that of the next flush, too
	}
	o.store = s // the tasks of a batch are one job's
	o.values, o.bytes = append(o.values, values...), o.bytes+bytes
	if written != nil {
		o.written = append(o.written, written)
	}
	if !ok || o.bytes > outboxBytes {
		return o.flush()
	}
	return o.err
}

// flush writes what is collected.
func (o *outbox) flush() error {
	if len(o.values) > 0 && o.err == nil {
		o.err = o.store.Put(o.batch, o.values)
	}
	if o.err == nil {
		for _, f := range o.written {
			f()
		}
	}
	o.values, o.written, o.bytes = nil, nil, 0
	return o.err
}
