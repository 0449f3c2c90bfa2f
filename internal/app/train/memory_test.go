package train

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"taxon/coordinator/footprint"
	"taxon/internal/ui/option"
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
	if _, err := tr.Fit(4); !option.Is(err) || !strings.Contains(err.Error(), "‹memory› is") {
		t.Errorf("room for less than one: %v", err)
	}
}

// TestModes: a training that is given less memory than it would take keeps nothing decoded, says
// so, and has the same weights. With still less, its values go to files.
func TestModes(t *testing.T) {
	const tree = "r a\nr b\na c0\na c1\na c2\nb c3\nb c4\nb c5\n"
	var sums []string
	for mode := footprint.Cached; mode <= footprint.Compact; mode++ {
		o, h := noisy(t, tree), &heard{}
		tr, err := Open(t.Context(), o, h, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		o.Memory = tr.needs(tr.estimate(), 1, mode)
		tr.Close()
		r, err := Run(t.Context(), o, h)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, r.WeightsSHA256)
		if told := strings.Contains(strings.Join(h.notes, "\n"), "decoded at each use"); told != (mode == footprint.Compact) {
			t.Errorf("mode %d with %d bytes: %q", mode, o.Memory, h.notes)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("weights differ: %s", sums)
	}
	work, err := OpenWork(filepath.Join(t.TempDir(), "model"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer work.Close()
	tr := &Training{o: noisy(t, tree), work: work, usage: new(usage)}
	for tr.mode = footprint.Cached; tr.mode <= footprint.Spill; tr.mode++ {
		if c := tr.engineConfig(); c.NoCache != (tr.mode >= footprint.Compact) ||
			(c.BadgerDir != "") != (tr.mode == footprint.Spill) {
			t.Errorf("mode %d: nothing kept %v, files in %q", tr.mode, c.NoCache, c.BadgerDir)
		}
	}
}

// TestPeakIsOurs: the peak of the process that started this one is no part of it.
func TestPeakIsOurs(t *testing.T) {
	const child, large = "TAXON_TEST_PEAK", 300 << 20
	if os.Getenv(child) != "" {
		fmt.Println("peak", PeakRSS())
		return
	}
	held := make([]byte, large)
	for i := 0; i < large; i += os.Getpagesize() {
		held[i] = 1
	}
	c := exec.Command(os.Args[0], "-test.run=^TestPeakIsOurs$", "-test.v")
	c.Env = append(os.Environ(), child+"=1")
	out, err := c.Output()
	runtime.KeepAlive(held)
	if err != nil {
		t.Fatal(err)
	}
	var peak int64
	_, rest, _ := strings.Cut(string(out), "peak ")
	if _, err := fmt.Sscan(rest, &peak); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	if ours := PeakRSS(); peak <= 0 || peak >= large || ours < large {
		t.Errorf("a child's peak is %d bytes, its parent's %d", peak, ours)
	}
}
