package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/test/command"
)

// TestReport checks that stdout holds exactly one JSON document with the documented keys, that the
// model holds the same report, and that nothing else is printed or left.
func TestReport(t *testing.T) {
	out := filepath.Join(t.TempDir(), "model")
	args := training(out)
	r := taxon(t, args[:len(args)-1]...) // without --quiet: progress must not appear on stdout
	if r.code != 0 {
		t.Fatalf("exit status %d: %s", r.code, r.stderr)
	}
	d := json.NewDecoder(strings.NewReader(r.stdout))
	var report map[string]any
	if err := d.Decode(&report); err != nil {
		t.Fatalf("%v in %q", err, r.stdout)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Errorf("more than one document: %q", r.stdout)
	}
	keys := command.ReportKeys()
	for _, key := range keys {
		if v, ok := report[key]; !ok || v == nil {
			t.Errorf("the report lacks %q", key)
		}
	}
	if len(report) != len(keys) {
		t.Errorf("%d keys, want %d: %v", len(report), len(keys), report)
	}
	sweepsDone, _ := report["sweeps"].(float64)
	if n := sweeps(t, out); n != int(sweepsDone) {
		t.Errorf("trace of %d sweeps, the report has %v", n, sweepsDone)
	}
	var info struct{ Report map[string]any }
	if err := json.Unmarshal([]byte(taxon(t, "info", out, "--json").stdout), &info); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(report)
	b, _ := json.Marshal(info.Report)
	if !bytes.Equal(a, b) {
		t.Errorf("info says\n%s\ntrain said\n%s", b, a)
	}
	onlyModel(t, out)
}

// files reads the files of a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range names(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = info.ModTime().String() + string(b)
	}
	return all
}

// TestFinishedOutput checks that the same command again does nothing and prints the same, that
// other options, data or structures are refused, and that --force starts over.
func TestFinishedOutput(t *testing.T) {
	out := filepath.Join(t.TempDir(), "model")
	first := taxon(t, training(out)...)
	want := trained(t, first)
	before := files(t, out)
	unchanged := func() {
		t.Helper()
		after := files(t, out)
		for name := range before {
			if after[name] != before[name] {
				t.Errorf("%s has changed", name)
			}
		}
		if len(after) != len(before) {
			t.Errorf("files %v, were %v", len(after), len(before))
		}
		onlyModel(t, out)
	}
	if again := taxon(t, training(out, "--threads", "1", "--x", "stores=3")...); again.code != 0 ||
		again.stdout != first.stdout {
		t.Errorf("exit status %d, %s\n%s\nwant\n%s", again.code, again.stderr, again.stdout, first.stdout)
	}
	unchanged()
	for _, other := range [][]string{
		{"--C", "2"}, {"--bias", "0"}, {"--loss", "squared-hinge"}, {"--seed", "1"}, {"--gap", "0.5"}, {"--max-sweeps", "3"},
		{"--x", "schedule=parity"}, {"--x", "prune=none"}, {"--method", "bsvm"}, {"--data", otherData},
		{"--instance-weights", weights},
	} {
		refused(t, taxon(t, training(out, other...)...), 2, out, "--force")
		unchanged()
	}
	flat := taxon(t, "train", "--data", data, "--out", out, "--gap", "1e-3", "--quiet")
	refused(t, flat, 2, out, "hierarchy", "--force")
	unchanged()
	if got := trained(t, taxon(t, training(out, "--seed", "1", "--max-sweeps", "2", "--force")...)); got.Sweeps != 2 {
		t.Errorf("forced: %+v", got)
	}
	if got := trained(t, taxon(t, training(out, "--force")...)); got != want {
		t.Errorf("forced back: %+v, want %+v", got, want)
	}
	onlyModel(t, out)
}

// TestCheckpointOfSomethingElse checks that an interrupted training is not continued with other
// options or data, and that its checkpoint is kept.
func TestCheckpointOfSomethingElse(t *testing.T) {
	out := filepath.Join(t.TempDir(), "model")
	p := start(t, training(out, often...)...)
	p.appears(out + ".train/checkpoint")
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait()
	for _, other := range [][]string{{"--C", "2"}, {"--seed", "1"}, {"--data", otherData}, {"--instance-weights", weights},
		{"--method", "bsvm"}} {
		refused(t, taxon(t, training(out, other...)...), 2, out, "--force")
		if _, err := os.Stat(out + ".train/checkpoint"); err != nil {
			t.Fatalf("after %v: %v", other, err)
		}
	}
	if got := trained(t, taxon(t, training(out, "--max-sweeps", "1", "--force")...)); got.Sweeps != 1 {
		t.Errorf("forced: %+v", got)
	}
	onlyModel(t, out)
}

// TestDamage checks that the error for a damaged checkpoint or model names it, and that --force
// replaces it.
func TestDamage(t *testing.T) {
	out := filepath.Join(t.TempDir(), "model")
	p := start(t, training(out, often...)...)
	p.appears(out + ".train/checkpoint")
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait()
	for _, name := range []string{"part-00000", "state"} {
		damage(t, filepath.Join(out+".train/checkpoint", name))
		refused(t, taxon(t, training(out)...), 2, "checkpoint is damaged", "--force")
	}
	short := func(more ...string) []string { return training(out, append(more, "--max-sweeps", "1")...) }
	trained(t, taxon(t, short("--force")...))
	for _, name := range []string{"weights-00000.bin", "manifest.json"} {
		damage(t, filepath.Join(out, name))
		if r := taxon(t, short()...); r.code == 0 || !strings.Contains(r.stderr, name) || !strings.Contains(r.stderr,
			"--force") {
			t.Errorf("damaged %s: exit status %d, %s", name, r.code, r.stderr)
		}
		trained(t, taxon(t, short("--force")...))
	}
	onlyModel(t, out)
}

// damage flips a bit in the middle of a file.
func damage(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 4
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestTwoAtOnce checks that a second training into the same place is refused, and that the first is
// unaffected.
func TestTwoAtOnce(t *testing.T) {
	want, _ := undisturbed(t)
	out := filepath.Join(t.TempDir(), "model")
	p := start(t, training(out)...)
	p.appears(out + ".train/job.json")
	refused(t, taxon(t, training(out)...), 2, out, "another process")
	refused(t, taxon(t, training(out, "--force")...), 2, out, "another process")
	if got := trained(t, p.wait()); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	onlyModel(t, out)
}

// TestCaps checks that a cap is reported as the outcome, and is an error with --require-gap.
func TestCaps(t *testing.T) {
	tests := []struct {
		name, flag, value, stopped string
	}{
		{"sweeps", "--max-sweeps", "3", "max_sweeps"},
		{"one sweep", "--max-sweeps", "1", "max_sweeps"},
		{"time", "--max-time", "0.2", "max_time"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "model")
			args := training(out, test.flag, test.value, "--gap", "1e-7")
			got := trained(t, taxon(t, args...))
			if got.StoppedBy != test.stopped || got.Gap <= 1e-7 {
				t.Errorf("%+v", got)
			}
			if test.flag == "--max-sweeps" && test.value != string(rune('0'+got.Sweeps)) {
				t.Errorf("%d sweeps, want %s", got.Sweeps, test.value)
			}
			if n := sweeps(t, out); n != got.Sweeps {
				t.Errorf("trace of %d sweeps, the report has %d", n, got.Sweeps)
			}
			again := taxon(t, append(args, "--require-gap")...) // on the finished model
			refused(t, again, 3, test.stopped, "1e-07")
			told := taxon(t, append(args, "--quiet=false")...).stderr
			if want := "raise " + test.flag + ", add --warm-start " + out; !strings.Contains(told, want) {
				t.Errorf("no %q in %q", want, told)
			}
			anew := taxon(t, append(args, "--require-gap", "--force")...)
			refused(t, anew, 3, test.stopped, "1e-07")
			for _, r := range []result{again, anew} {
				if !json.Valid([]byte(r.stdout)) {
					t.Errorf("no report: %q", r.stdout)
				}
			}
			onlyModel(t, out)
		})
	}
	out := filepath.Join(t.TempDir(), "model")
	if r := taxon(t, training(out, "--require-gap")...); r.code != 0 {
		t.Errorf("the gap was reached, but exit status %d: %s", r.code, r.stderr)
	}
}
