package main

import (
	"context"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"taxon/coordinator"
	"taxon/internal/cluster"
	"taxon/internal/cluster/journal"
)

// announceOptions are the flags of a coordinator that may start on any host.
type announceOptions struct {
	announce string
	journal  string
}

func (o *announceOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.announce, "announce", "", "say in this `FILE`, mostly hdfs://, where the coordinator is; the others find it by --coordinator FILE")
	f.StringVar(&o.journal, "journal", "", "keep the journal in `FOLDER`, mostly hdfs://, instead of --dir: started on another host it goes on, and what went before it can decide nothing any more")
}

// openJournal opens the journal in its folder, or in dir.
func (o *announceOptions) openJournal(ctx context.Context, dir string) (j coordinator.Journal, snapshot []byte, records [][]byte, err error) {
	if o.journal == "" {
		return coordinator.OpenJournal(dir)
	}
	j, snapshot, records, err = journal.Open(ctx, o.journal)
	return j, snapshot, records, err
}

// announced says where the coordinator is and does its work until that ends, or another
// one has taken over.
func (o *announceOptions) announced(ctx context.Context, addr string, j coordinator.Journal, work func(context.Context) error) error {
	if o.announce == "" {
		return work(ctx)
	}
	a := &cluster.Announcer{Path: o.announce, Addr: addr}
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
