package sim

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"taxon/coordinator/method/methodtest"
	taxonv1 "taxon/proto/taxon/v1"
)

func TestMain(m *testing.M) {
	// heaps are small here, so the collector would run all the time
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// specOf returns a job on a tree of three levels, with 18 to 480 terminals.
func specOf(schedule string, groups, each int, seed uint64) *taxonv1.JobSpec {
	st := &taxonv1.Structure{Names: []string{"root"}}
	d := &taxonv1.Data{Instances: 500, Features: 30000, Nonzeros: 600_000}
	add := func(parent uint32, name string, label bool) uint32 {
		n := uint32(len(st.Names))
		st.Names = append(st.Names, name)
		st.Parents, st.Children = append(st.Parents, parent), append(st.Children, n)
		if label {
			d.Labels, d.LabelInstances = append(d.Labels, name), append(d.LabelInstances, 10+n)
		}
		return n
	}
	for g := range groups {
		group := add(0, fmt.Sprintf("g%d", g), false)
		for c := range each {
			add(group, fmt.Sprintf("g%dc%d", g, c), true)
		}
	}
	spec := &taxonv1.JobSpec{
		Options: methodtest.Options("rr-svm", "loss", "hinge", "schedule", schedule, "c", 1, "bias", 1, "gap", 4e-3,
			"seed", seed),
		Data: d, Structure: st,
	}
	if schedule == "flat" {
		spec.Structure = nil
		spec.Options.Set("schedule", "twoblock")
	}
	return spec
}

// jobsOf returns the jobs of a seed: one or two, of any schedule.
func jobsOf(seed uint64) (specs []*taxonv1.JobSpec, names []string) {
	schedules := []string{"twoblock", "twoblock", "parity", "jacobi", "flat"}
	first := schedules[seed%5]
	if seed%6 == 4 { // enough blocks for several tasks per lease
		specs, names = append(specs, specOf(first, 16, 30, 1)), append(names, first+" wide")
	} else {
		specs, names = append(specs, specOf(first, 4, 11, 1)), append(names, first)
	}
	if seed%4 == 3 {
		second := schedules[seed/5%5]
		specs, names = append(specs, specOf(second, 2, 9, 2)), append(names, second+" small")
	}
	return specs, names
}

// calm caches the undisturbed runs, job by job.
var calm = struct {
	sync.Mutex
	runs map[string]Outcome
}{runs: map[string]Outcome{}}

// undisturbed returns the outcome of a job that runs alone on one worker without faults.
func undisturbed(name string, spec *taxonv1.JobSpec) Outcome {
	calm.Lock()
	defer calm.Unlock()
	if out, ok := calm.runs[name]; ok {
		return out
	}
	out := Run(0, Options{Jobs: []*taxonv1.JobSpec{spec}, Workers: 1, Shards: 1})
	for i, what := range out.Broken {
		out.Broken[i] = "undisturbed run of " + name + ": " + what
	}
	calm.runs[name] = out
	return out
}

// play runs a seed and returns the violated invariants.
func play(seed uint64, bug string) (Outcome, []string) {
	specs, names := jobsOf(seed)
	out := Run(seed, Options{Faults: Draw(seed), Jobs: specs, Workers: 2 + int(seed%3), Shards: 1 + int(seed/2%3),
		Replicas: 1 + replicas(seed), Bug: bug})
	broken := out.Broken
	if len(broken) > 0 {
		return out, broken
	}
	for i, name := range names {
		want := undisturbed(name, specs[i])
		if len(want.Broken) > 0 {
			return out, want.Broken
		}
		if !slices.Equal(out.Weights[i], want.Weights[0]) {
			broken = append(broken, fmt.Sprintf("job %d (%s): other weights than the undisturbed run's", i, name))
		}
		if out.Objectives[i] != want.Objectives[0] || out.Sweeps[i] != want.Sweeps[0] {
			broken = append(broken, fmt.Sprintf("job %d (%s): other certificate than the undisturbed run's", i, name))
		}
	}
	return out, broken
}

// replicas returns the number of replicas beyond the first, if there are enough shards.
func replicas(seed uint64) int {
	if 1+seed/2%3 > 1 && seed%3 == 0 {
		return 1
	}
	return 0
}

// seeds returns the range of seeds: SIM_SEED only, or the first SIM_SEEDS, or the first n.
func seeds(t *testing.T, n uint64) (from, to uint64) {
	number := func(name string) (uint64, bool) {
		text := os.Getenv(name)
		if text == "" {
			return 0, false
		}
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return v, true
	}
	if seed, ok := number("SIM_SEED"); ok {
		return seed, seed + 1
	}
	if many, ok := number("SIM_SEEDS"); ok {
		return 0, many
	}
	return 0, n
}

// inParallel runs several seeds at a time, and passes their results to next in order until it
// returns false.
func inParallel[R any](from, to uint64, play func(seed uint64) R, next func(seed uint64, r R) bool) {
	ahead := uint64(runtime.GOMAXPROCS(0))
	results := make([]chan R, ahead)
	start := func(seed uint64) {
		if seed < to {
			result := make(chan R, 1)
			results[seed%ahead] = result
			go func() { result <- play(seed) }()
		}
	}
	for seed := from; seed < from+ahead; seed++ {
		start(seed)
	}
	for seed := from; seed < to; seed++ {
		r := <-results[seed%ahead]
		if !next(seed, r) {
			for s := seed + 1; s < min(seed+ahead, to); s++ { // no goroutine outlives the test
				<-results[s%ahead]
			}
			return
		}
		start(seed + ahead)
	}
}

// played is the result of play.
type played struct {
	Outcome
	broken []string
}

// TestSimulation runs seeds with all faults. In spite of them, the jobs must end with the bytes of
// an undisturbed run.
func TestSimulation(t *testing.T) {
	var total Outcome
	from, to := seeds(t, 100)
	run := func(seed uint64) played {
		out, broken := play(seed, "")
		return played{out, broken}
	}
	inParallel(from, to, run, func(seed uint64, out played) bool {
		if len(out.broken) > 0 {
			t.Errorf("seed %d (SIM_SEED=%d go test ./test/sim -run TestSimulation):\n%s\nfaults %+v\nwhat happened last:\n%s",
				seed, seed, strings.Join(out.broken, "\n"), Draw(seed), strings.Join(out.History, "\n"))
			return false
		}
		total.Kills += out.Kills
		total.Restarts += out.Restarts
		total.Resumed += out.Resumed
		total.Compacts += out.Compacts
		total.Batches += out.Batches
		total.Replayed += out.Replayed
		total.Speculated += out.Speculated
		total.Remade += out.Remade
		total.Rollbacks += out.Rollbacks
		total.Retried += out.Retried
		total.WorkersLost += out.WorkersLost
		total.Seconds += out.Seconds
		return true
	})
	t.Logf("%d runs, %.0f simulated seconds: %d kills, %d restarts of the coordinator, %d journals shortened, %d "+
		"replayed, %d second attempts, %d retries, %d workers lost, %d values made again, %d rollbacks, %d jobs resumed, "+
		"%d leases of several tasks",
		to-from, total.Seconds, total.Kills, total.Restarts, total.Compacts, total.Replayed, total.Speculated, total.Retried,
		total.WorkersLost, total.Remade, total.Rollbacks, total.Resumed, total.Batches)
	if !t.Failed() && to-from >= 100 && (total.Restarts == 0 || total.Compacts == 0 || total.Speculated == 0 ||
		total.Remade == 0 || total.Rollbacks == 0 || total.Resumed == 0 || total.WorkersLost == 0 || total.Batches == 0) {
		t.Error("some kind of harm was never done: the simulation shows less than it says")
	}
}

// TestSimulationIsDeterministic checks that the same seed gives the same run.
func TestSimulationIsDeterministic(t *testing.T) {
	for _, seed := range []uint64{3, 8} {
		a, _ := play(seed, "")
		b, _ := play(seed, "")
		if a.Seconds != b.Seconds || !slices.Equal(a.History, b.History) {
			t.Errorf("seed %d: %.6f s and %.6f s", seed, a.Seconds, b.Seconds)
		}
	}
}
