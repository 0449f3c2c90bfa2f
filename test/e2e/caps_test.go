package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/store"
)

// TestOtherCaps checks that an interrupted training continues with other caps. If the old caps had
// not affected the training so far, the result has the bytes of a training without them.
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
	spendMore(t, out+".train/checkpoint")
	r := taxon(t, training(out, "--quiet=false")...)
	if got := trained(t, r); got != want {
		t.Errorf("capped, interrupted, and gone on without caps: %+v, want %+v", got, want)
	}
	for _, word := range []string{"resumes after sweep", "max-sweeps 4000 -> none, max-time 3000 s -> none"} {
		if !strings.Contains(r.stderr, word) {
			t.Errorf("no %q in %q", word, r.stderr)
		}
	}
	var info struct{ Report pastReport }
	for place, doc := range map[string]string{"the report": `{"report": ` + r.stdout + "}", "info": taxon(t, "info", out,
		"--json").stdout} {
		if err := json.Unmarshal([]byte(doc), &info); err != nil {
			t.Fatalf("%v in %q", err, doc)
		}
		if b := info.Report.CapsBefore; len(b) != 1 || b[0].Sweep < 1 || b[0].Gap != 1e-3 || b[0].MaxSweeps != 4000 ||
			b[0].MaxSeconds != 3000 {
			t.Errorf("%s: the caps before are %+v", place, b)
		}
		if s := info.Report.CPUSeconds; s < spentBefore || s > spentBefore+1000 {
			t.Errorf("%s: %g s of CPU, where the checkpoint tells of %d", place, s, spentBefore)
		}
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
	refused(t, taxon(t, training(out, "--gap", "1e-8", "--max-sweeps", "30")...), 2, out, "max_sweeps 1, not 30",
		"--warm-start "+out, "--force")
	warm := filepath.Join(t.TempDir(), "warm")
	if again := trained(t, taxon(t, training(warm, "--gap", "1e-2", "--max-sweeps", "30", "--warm-start",
		out)...)); again.StoppedBy != "gap" {
		t.Errorf("begun at the capped model: %+v", again)
	}
}

// pastReport is the part of a report about the runs that it continues.
type pastReport struct {
	CPUSeconds float64 `json:"cpu_seconds"`
	CapsBefore []struct {
		Sweep      int
		Gap        float64
		MaxSweeps  int     `json:"max_sweeps"`
		MaxSeconds float64 `json:"max_seconds"`
	} `json:"caps_before"`
}

const spentBefore = 4000

// spendMore has a checkpoint tell of more CPU time than any training here takes.
func spendMore(t *testing.T, checkpoint string) {
	t.Helper()
	manifest, spent := filepath.Join(checkpoint, "manifest"), fmt.Appendf(nil, "%d.000", spentBefore)
	data, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := bytes.Cut(data, []byte("\n"))
	var m map[string]any
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range m["extra"].([]any) {
		if f := e.(map[string]any); f["name"] == "cpu-seconds" {
			found = true
			f["bytes"], f["crc32c"] = len(spent), store.Checksum(spent)
		}
	}
	if !found {
		t.Fatalf("the checkpoint has no CPU seconds: %s", body)
	}
	if body, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	body = append(fmt.Appendf(nil, "taxon snapshot 1 %08x %d\n", store.Checksum(body), len(body)), body...)
	if err := os.WriteFile(manifest, body, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(checkpoint, "cpu-seconds"), spent, 0o666); err != nil {
		t.Fatal(err)
	}
}
