package train

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"taxon/internal/app/engine"
	"taxon/internal/cluster/jobs"
	"taxon/internal/ui/option"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestKept: a training that ends early says what is left of it. Ctrl-C is told apart,
// wherever it falls.
func TestKept(t *testing.T) {
	running := context.Background()
	stopped, stop := context.WithCancelCause(running)
	stop(jobs.ErrInterrupted)
	service := engine.StripStatus(status.Error(codes.Canceled, "context canceled"))
	for _, c := range []struct {
		name               string
		ctx                context.Context
		begun              bool
		err                error
		want               string
		wrong, interrupted bool
	}{
		{"failed", running, true, errors.New("no room"), "no room; nothing is kept: the same command begins anew", false,
			false},
		{"failed before it began", running, false, errors.New("no room"), "no room", false, false},
		{"wrong option", running, true, option.Errorf("wrong"), "wrong", true, false},
		{"interrupted", stopped, true, context.Canceled, "interrupted; nothing is kept: the same command begins anew", false,
			true},
		{"interrupted in a service", stopped, true, service, "interrupted; nothing is kept: the same command begins anew",
			false, true},
		{"interrupted before it began", stopped, false, context.Canceled, "interrupted; nothing is kept: the same " +
			"command begins anew", false, true},
		{"has said so", stopped, true, jobs.Interruptedf("interrupted after sweep 3"), "interrupted after sweep 3", false,
			true},
	} {
		w := &Work{Keep: filepath.Join(t.TempDir(), "m.train"), begun: c.begun}
		err := w.kept(c.ctx, c.err)
		wrong, interrupted := option.Is(err), errors.Is(err, jobs.ErrInterrupted)
		if err.Error() != c.want || wrong != c.wrong || interrupted != c.interrupted {
			t.Errorf("%s: %q, wrong %t, interrupted %t", c.name, err, wrong, interrupted)
		}
	}
	if err := engine.StripStatus(status.Error(codes.NotFound, "no such job")); err.Error() != "no such job" ||
		engine.StripStatus(nil) != nil {
		t.Error(err)
	}
}
