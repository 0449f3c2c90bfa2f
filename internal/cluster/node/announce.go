package node

import (
	"context"

	"golang.org/x/sync/errgroup"

	"taxon/coordinator/journal"
	"taxon/internal/cluster"
	"taxon/internal/cluster/folderjournal"
)

// openJournal opens the journal in its folder, or in dir.
func (o *Coordinator) openJournal(ctx context.Context, dir string) (j journal.Journal, snapshot []byte, records [][]byte, err error) {
	if o.Journal == "" {
		return journal.Open(dir)
	}
	j, snapshot, records, err = folderjournal.Open(ctx, o.Journal)
	return j, snapshot, records, err
}

// announced says where the coordinator is and does its work until that ends, or another
// one has taken over.
func (o *Coordinator) announced(ctx context.Context, addr string, j journal.Journal, work func(context.Context) error) error {
	if o.Announce == "" {
		return work(ctx)
	}
	a := &cluster.Announcer{Path: o.Announce, Addr: addr}
	if f, ok := j.(*folderjournal.Folder); ok {
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
