package worker

import (
	"context"
	"testing"
	"time"

	"taxon/internal/data/dataset"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store/memory"
	"taxon/test/jobs"
)

// A job without tasks is dropped and its data given back; one with tasks is not.
func TestTrim(t *testing.T) {
	small := jobs.Small(3, 50, 10)
	r := result(t, small, "twoblock")
	released, opened := 0, 0
	trainer := &Trainer{
		Store:   memory.New(memory.Options{}),
		Release: func(*dataset.Set) { released++ },
		Open: func(context.Context, *taxonv1.Data) (*dataset.Set, error) {
			opened++
			return small.Set, nil
		},
	}
	l, err := trainer.load(t.Context(), "j", r)
	if err != nil {
		t.Fatal(err)
	}
	trainer.Trim(0)
	if released != 0 || len(trainer.jobs) != 1 {
		t.Error("a job with a task was dropped")
	}
	trainer.leave(l)
	trainer.Trim(time.Hour)
	if released != 0 {
		t.Error("a job was dropped too early")
	}
	trainer.Trim(0)
	if released != 1 || len(trainer.jobs) != 0 {
		t.Errorf("%d sets given back, %d jobs kept", released, len(trainer.jobs))
	}
	if l, err = trainer.load(t.Context(), "j", r); err != nil || opened != 2 {
		t.Fatalf("opened %d times: %v", opened, err)
	}
	trainer.leave(l)
}
