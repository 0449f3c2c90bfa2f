package train

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"taxon/internal/app/engine"
	"taxon/internal/ui/exitcode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestKept: a training that ends early says what is left of it. Ctrl-C has its own exit status,
// wherever it falls.
func TestKept(t *testing.T) {
	running := context.Background()
	stopped, stop := context.WithCancelCause(running)
	stop(exitcode.ErrInterrupted)
	service := engine.StripStatus(status.Error(codes.Canceled, "context canceled"))
	for _, c := range []struct {
		name  string
		ctx   context.Context
		begun bool
		err   error
		want  string
		code  int
	}{
		{"failed", running, true, errors.New("no room"), "no room; nothing is kept: the same command begins anew", 0},
		{"failed before it began", running, false, errors.New("no room"), "no room", 0},
		{"wrong option", running, true, exitcode.Usagef("wrong"), "wrong", exitcode.Usage},
		{"interrupted", stopped, true, context.Canceled, "interrupted; nothing is kept: the same command begins anew", exitcode.Interrupted},
		{"interrupted in a service", stopped, true, service, "interrupted; nothing is kept: the same command begins anew", exitcode.Interrupted},
		{"interrupted before it began", stopped, false, context.Canceled, "interrupted; nothing is kept: the same command begins anew", exitcode.Interrupted},
		{"has said so", stopped, true, exitcode.Interruptedf("interrupted after sweep 3"), "interrupted after sweep 3", exitcode.Interrupted},
	} {
		w := &Work{Keep: filepath.Join(t.TempDir(), "m.train"), begun: c.begun}
		err := w.kept(c.ctx, c.err)
		code := 0
		if own := (*exitcode.Error)(nil); errors.As(err, &own) {
			code = own.Code
		}
		if err.Error() != c.want || code != c.code {
			t.Errorf("%s: %q, exit status %d", c.name, err, code)
		}
	}
	if err := engine.StripStatus(status.Error(codes.NotFound, "no such job")); err.Error() != "no such job" || engine.StripStatus(nil) != nil {
		t.Error(err)
	}
}
