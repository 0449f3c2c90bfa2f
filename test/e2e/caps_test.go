package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOtherCaps: an interrupted training goes on with other caps; where the old ones had
// changed nothing yet, to the bytes of one that never had them.
func TestOtherCaps(t *testing.T) {
	want, _ := undisturbed(t)
	out := filepath.Join(t.TempDir(), "model")
	interrupt := func(flags ...string) {
		t.Helper()
		p := start(t, training(out, append(flags, often...)...)...)
		p.appears(out + ".train/checkpoint")
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if r := p.wait(); r.code != 130 {
			t.Fatalf("exit status %d: %s", r.code, r.stderr)
		}
	}
	interrupt("--max-sweeps", "4000", "--max-time", "3000")
	if got := trained(t, taxon(t, training(out)...)); got != want {
		t.Errorf("capped, interrupted, and gone on without caps: %+v, want %+v", got, want)
	}
	onlyModel(t, out)
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	interrupt("--gap", "1e-9")
	refused(t, taxon(t, training(out, "--max-sweeps", "1", "--C", "2")...), 2, out, "C 1, not 2", "--force")
	got := trained(t, taxon(t, training(out, "--gap", "1e-8", "--max-sweeps", "1")...))
	if n := sweeps(t, out); got.StoppedBy != "max_sweeps" || got.Sweeps >= want.Sweeps || n != got.Sweeps {
		t.Errorf("gone on with a cap that is behind it already: %+v, trace of %d sweeps", got, n)
	}
	onlyModel(t, out)
	refused(t, taxon(t, training(out, "--gap", "1e-8", "--max-sweeps", "30")...), 2, out, "max_sweeps 1, not 30", "--warm-start "+out, "--force")
	warm := filepath.Join(t.TempDir(), "warm")
	if again := trained(t, taxon(t, training(warm, "--gap", "1e-2", "--max-sweeps", "30", "--warm-start", out)...)); again.StoppedBy != "gap" {
		t.Errorf("begun at the capped model: %+v", again)
	}
}
