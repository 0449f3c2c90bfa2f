package train

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEarlyStopRefused: what could never say when to stop is refused before the training, not in its second sweep.
func TestEarlyStopRefused(t *testing.T) {
	held := filepath.Join(t.TempDir(), "held.svm")
	for _, c := range []struct{ rows, goal, flat, want string }{
		{"1:1 2:1\n", "", "", "no instance has a label that the training data have"},
		{"other 1:1\n", "", "", "no instance has a label that the training data have"},
		{"c1 1:1\n", "log_loss", "", "needs probabilities"},
		{"c1 1:1\n", "hier_f1", "flat", "needs a class structure"},
	} {
		if err := os.WriteFile(held, []byte(c.rows), 0o666); err != nil {
			t.Fatal(err)
		}
		o := noisy(t, "r a\nr b\na c0\na c1\na c2\nb c3\nb c4\nb c5\n")
		if o.EarlyStop, o.Goal = held, c.goal; c.flat != "" {
			o.Hierarchy = ""
		}
		if _, err := Run(t.Context(), o, &heard{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, goal %s: %v, want %q", c.rows, c.goal, err, c.want)
		}
	}
}
