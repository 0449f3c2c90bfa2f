package train

import (
	"errors"
	"strings"
	"testing"

	"taxon/internal/exit"
)

// TestFit: as many trainings run side by side as the memory holds, and one that it does not
// hold is refused.
func TestFit(t *testing.T) {
	tr, err := Open(t.Context(), noisy(t, "r a\nr b\na c0\na c1\na c2\nb c3\nb c4\nb c5\n"), &heard{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	tr.o.Memory = tr.Needs(3)
	for most := 1; most <= 4; most++ {
		if n, err := tr.Fit(most); n != min(most, 3) || err != nil {
			t.Errorf("room for three: %d of %d fit, %v", n, most, err)
		}
		if tr.Needs(most+1) <= tr.Needs(most) {
			t.Errorf("%d trainings need %d bytes, one more %d", most, tr.Needs(most), tr.Needs(most+1))
		}
	}
	tr.o.Memory = tr.Needs(1) - 1
	var e *exit.Error
	if _, err := tr.Fit(4); !errors.As(err, &e) || e.Code != exit.Usage || !strings.Contains(err.Error(), "--memory is") {
		t.Errorf("room for less than one: %v", err)
	}
}
