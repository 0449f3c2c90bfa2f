package coordinator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"taxon/coordinator"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store/storerpc"
)

// fullDisk is a journal that can't be written.
type fullDisk struct{}

var errFullDisk = errors.New("no space left on device")

func (fullDisk) Append([]byte) uint64                  { return 1 }
func (fullDisk) Sync(uint64) error                     { return errFullDisk }
func (fullDisk) Compact(func(cut func()) []byte) error { return errFullDisk }
func (fullDisk) Size() int64                           { return 0 }
func (fullDisk) Close() error                          { return nil }

// A server that can't write its journal says so to the process that runs it.
func TestWaitForBrokenJournal(t *testing.T) {
	server, err := coordinator.NewServer(coordinator.Config{Store: newToyStore(), Journal: fullDisk{}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := server.Wait(ctx); err != nil {
		t.Errorf("before anything is written: %v", err)
	}
	channel := storerpc.NewChannel()
	server.Register(channel)
	if _, err := taxonv1.NewTasksClient(channel).Register(t.Context(), &taxonv1.RegisterRequest{Name: "w",
		Slots: 1}); err == nil {
		t.Error("a worker is registered that no journal knows")
	}
	if err := server.Wait(t.Context()); !errors.Is(err, errFullDisk) {
		t.Errorf("Wait: %v", err)
	}
}
