package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"taxon/test/dear"
)

// TestSameWeightsAnyMachine checks that threads, shards and the kind of store do not change a bit.
func TestSameWeightsAnyMachine(t *testing.T) {
	want, _ := undisturbed(t)
	for _, flags := range [][]string{
		{"--threads", "2"}, {"--threads", "3", "--x", "stores=5"}, {"--threads", "8"},
		{"--x", "stores=5", "--x", "store=badger",
			"--threads", "2"},
		{"--threads", "1", "--x", "checkpoint-every=1", "--x", "checkpoint-seconds=0.001"},
	} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "model")
			got := trained(t, taxon(t, training(out, flags...)...))
			if got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			onlyModel(t, out)
		})
	}
}

// kills is the number of chains of kills. TAXON_TEST_KILLS sets it for a soak test.
var kills = func() int {
	if n, err := strconv.Atoi(os.Getenv("TAXON_TEST_KILLS")); err == nil {
		return n
	}
	return 4
}()

// TestSameWeightsAfterKills kills trainings with SIGKILL at random instants, several times in a
// row, and runs them again, each time with other threads, shards and stores.
func TestSameWeightsAfterKills(t *testing.T) {
	want, whole := undisturbed(t)
	resumed := 0
	for seed := range uint64(kills) {
		r := rand.New(rand.NewPCG(seed, 1))
		out := filepath.Join(t.TempDir(), "model")
		flags := func() []string {
			kind := []string{"memory", "badger"}[r.IntN(2)]
			return append([]string{"--threads", fmt.Sprint(1 + r.IntN(3)), "--x", fmt.Sprint("stores=", 1+r.IntN(5)), "--x",
				"store=" + kind}, often...)
		}
		var instants []time.Duration
		for range 1 + seed%3 {
			after := time.Duration(r.Float64() * float64(whole))
			instants = append(instants, after)
			p := start(t, training(out, flags()...)...)
			if seed == 0 {
				// one chain is certain to continue from a checkpoint, however slow the machine
				p.appears(out + ".train/checkpoint")
				after = 0
			}
			timer := time.AfterFunc(after, func() { _ = p.cmd.Process.Kill() })
			p.wait()
			timer.Stop()
			if _, err := os.Stat(out + ".train/checkpoint"); err == nil {
				resumed++
			}
		}
		if got := trained(t, taxon(t, training(out, flags()...)...)); got != want {
			t.Errorf("seed %d, killed after %v: %+v, want %+v", seed, instants, got, want)
		}
		if n := sweeps(t, out); n != want.Sweeps {
			t.Errorf("seed %d, killed after %v: trace of %d sweeps, want %d", seed, instants, n, want.Sweeps)
		}
		onlyModel(t, out)
	}
	if resumed == 0 {
		t.Error("no kill left a checkpoint: the test tests nothing")
	}
}

// TestSameWeightsAfterKillsOfMethods checks the same for plans of other kinds, and after an
// interrupt.
func TestSameWeightsAfterKillsOfMethods(t *testing.T) {
	for n, line := range dear.Some([]string{
		"--method hblr-m2 --x prior=blr --max-sweeps 8", "--method mlr", "--method msvm", "--method td",
		"small --method corrmnl --x iterations=24 --x burn-in=8 --x leapfrog=2", "small --method hm3 --gap 5e-2",
		"--method h-svm", "--method h-rls",
		"--method flatmult --C 100", "--method hsvm --C 100", "--method hiermult --C 100", "--method transfer --C 100",
		"--method ot --C 100",
		"small --method rr-msvm", "--method rr-mlr",
		"small --method hblr-m3 --x likelihood=softmax --max-sweeps 3",
		"small --method hblr-m1 --x inference=variational --x covariance=diagonal --max-sweeps 2",
	}, 6) {
		t.Run(line, func(t *testing.T) {
			r, rows, structure := rand.New(rand.NewPCG(uint64(n), 2)), data, tree
			flags, small := strings.CutPrefix(line, "small ")
			if small {
				rows, structure = smallData, smallTree
			}
			run := func(out string, more ...string) []string {
				return slices.Concat([]string{"train", "--data", rows, "--hierarchy", structure, "--out", out, "--json", "--quiet"},
					strings.Fields(flags), more)
			}
			began := time.Now()
			want := trained(t, taxon(t, run(filepath.Join(t.TempDir(), "model"), "--threads", "1")...))
			whole := time.Since(began)
			out := filepath.Join(t.TempDir(), "model")
			other := func() []string {
				return append([]string{"--threads", fmt.Sprint(1 + r.IntN(3)), "--x", fmt.Sprint("stores=", 1+r.IntN(3))}, often...)
			}
			for again := range 2 {
				p := start(t, run(out, other()...)...)
				after := time.Duration(r.Float64() * float64(whole) / 2)
				if again == 0 {
					p.appears(out + ".train/checkpoint")
					after = 0
				}
				// killed the first time, interrupted the second time, at any step of a sweep
				signal := []os.Signal{os.Kill, os.Interrupt}[again]
				timer := time.AfterFunc(after, func() { _ = p.cmd.Process.Signal(signal) })
				p.wait()
				timer.Stop()
			}
			if got := trained(t, taxon(t, run(out, other()...)...)); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			if n := sweeps(t, out); n != want.Sweeps {
				t.Errorf("trace of %d sweeps, want %d", n, want.Sweeps)
			}
			onlyModel(t, out)
		})
	}
}

// TestSameWeightsAfterSignal checks that Ctrl-C and SIGTERM keep a checkpoint and print a command
// that continues from it.
func TestSameWeightsAfterSignal(t *testing.T) {
	want, _ := undisturbed(t)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a folder, it's odd")
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(dir, "model")
			p := start(t, append(training(out, often...), "--force")...)
			p.appears(out + ".train/checkpoint")
			if err := p.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			r := p.wait()
			refused(t, r, 130, "interrupted after sweep", "to continue from there: taxon train")
			if r.stdout != "" {
				t.Errorf("an interrupted training prints %q as its result", r.stdout)
			}
			if all := names(t, dir); !slices.Equal(all, []string{"model.train"}) {
				t.Errorf("kept: %v", all)
			}
			_, command, _ := strings.Cut(strings.TrimSpace(r.stderr), "from there: ")
			again := &process{t: t, cmd: exec.Command("sh", "-c", command)}
			again.cmd.Stdout, again.cmd.Stderr = &again.stdout, &again.stderr
			again.cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			if err := again.cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if got := trained(t, again.wait()); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			if n := sweeps(t, out); n != want.Sweeps {
				t.Errorf("trace of %d sweeps, want %d", n, want.Sweeps)
			}
			onlyModel(t, out)
		})
	}
}

// TestSecondSignalEndsAtOnce sends a second signal, also while the checkpoint of the first one is
// being written. The training can continue from the remaining checkpoint.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	want, _ := undisturbed(t)
	out := filepath.Join(t.TempDir(), "model")
	p := start(t, training(out, often...)...)
	p.appears(out + ".train/checkpoint")
	for range 2 {
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	if r := p.wait(); r.code != 130 {
		t.Errorf("exit status %d: %s", r.code, r.stderr)
	}
	if got := trained(t, taxon(t, training(out)...)); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	onlyModel(t, out)
}
