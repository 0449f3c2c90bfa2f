package node

import (
	"context"

	"golang.org/x/sync/errgroup"

	"taxon/coordinator"
	"taxon/internal/cluster"
	"taxon/internal/cluster/journal"
)

// openJournal opens the journal in its folder, or in dir.
func (o *Coordinator) openJournal(ctx context.Context, dir string) (j coordinator.Journal, snapshot []byte, records [][]byte, err error) {
	if o.Journal == "" {
		return coordinator.OpenJournal(dir)
	}
	j, snapshot, records, err = journal.Open(ctx, o.Journal)
	return j, snapshot, records, err
}

// announced says where the coordinator is and does its work until that ends, or another
// one has taken over.
func (o *Coordinator) announced(ctx context.Context, addr string, j coordinator.Journal, work func(context.Context) error) error {
	if o.Announce == "" {
		return work(ctx)
	}
	a := &cluster.Announcer{Path: o.Announce, Addr: addr}
	if f, ok := j.(*journal.Folder); ok {
		a.Epoch = f.Epoch()
	}
	if err := a.Announce(ctx); err != nil {
		return err
	}
	both, ctx := errgroup.WithContext(ctx)
	watching, stop := context.WithCancel(ctx)
	both.Go(func() error { return a.Watch(watching) })
	both.Go(func() error {
		defer stop()
		return work(ctx)
	})
	return both.Wait()
}
