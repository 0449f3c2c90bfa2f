// Package chaos kills the processes of a cluster while it works. Whichever process is killed, and
// however often, the job must end with the bytes of an undisturbed training.
//
//	go test ./test/chaos                                      a few short runs
//	TAXON_CHAOS_RUNS=3 go test ./test/chaos                   all tests: make chaos-short
//	TAXON_CHAOS_RUNS=20 TAXON_DATA=DIR go test ./test/chaos   on real data: make chaos
package chaos

import (
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"taxon/test/cluster"
)

var bench *cluster.Bench

func TestMain(m *testing.M) {
	b, dir, err := cluster.NewBench(500, 60)
	if err != nil {
		log.Print(err)
		os.RemoveAll(dir)
		os.Exit(1)
	}
	bench = b
	if data := os.Getenv("TAXON_DATA"); data != "" {
		bench.Data, bench.Tree = filepath.Join(data, "wordnet-freq", "train.svm.xz"), filepath.Join(data, "wordnet-freq",
			"tree.txt")
		bench.Deadline = 15 * time.Minute
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// settings returns the number of runs of a test, its job's gap (real data get the gap that users
// request), and further flags of a job that must not be finished before a fault.
func settings(t *testing.T) (runs int, gap string, longer []string) {
	runs, gap = 1, "1e-2"
	if os.Getenv("TAXON_DATA") == "" {
		gap, longer = "1e-3", cluster.Long(100)
	}
	if s := os.Getenv("TAXON_CHAOS_RUNS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("TAXON_CHAOS_RUNS: %v", err)
		}
		runs = n
	}
	return runs, gap, longer
}

// thorough skips a test that only make chaos and make chaos-short run.
func thorough(t *testing.T) {
	t.Helper()
	if os.Getenv("TAXON_CHAOS_RUNS") == "" {
		t.Skip("runs with TAXON_CHAOS_RUNS set: make chaos-short")
	}
}

// killer sends a signal to a random process of a cluster at intervals.
type killer struct {
	random      *rand.Rand
	least, most time.Duration
	next        time.Time
	kills       map[string]int
}

func newKiller(seed uint64, least, most time.Duration) *killer {
	k := &killer{random: rand.New(rand.NewPCG(seed, 1)), least: least, most: most, kills: map[string]int{}}
	k.next = time.Now().Add(least)
	return k
}

func (k *killer) wait() {
	k.next = time.Now().Add(k.least + time.Duration(k.random.Int64N(int64(k.most-k.least))))
}

// strike kills a process if it is time.
func (k *killer) strike(t *testing.T, c *cluster.Cluster) {
	if time.Now().Before(k.next) {
		return
	}
	processes := c.State(t).Processes
	p := processes[k.random.IntN(len(processes))]
	p.Signal(syscall.SIGKILL)
	k.kills[p.Role]++
	k.wait()
}

// TestKills kills random processes again and again.
func TestKills(t *testing.T) {
	// all tests here that wait more than they compute are parallel
	t.Parallel()
	runs, gap, longer := settings(t)
	want := bench.Embedded(t, gap, longer...)
	least, most := 30*time.Millisecond, 250*time.Millisecond
	if os.Getenv("TAXON_DATA") != "" {
		least, most = 500*time.Millisecond, 3*time.Second
	}
	for run := range runs {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			t.Parallel()
			c := bench.Up(t, 3, 2)
			job := c.Submit(t, gap, longer...)
			k := newKiller(uint64(run), least, most)
			began := time.Now()
			s := c.Done(t, job, want, func(cluster.Status) { k.strike(t, c) })
			if len(k.kills) == 0 {
				t.Error("nothing was killed before the job was done")
			}
			t.Logf("%v killed in %.1f s; %d attempts repeated, %d workers lost", k.kills, time.Since(began).Seconds(),
				s.Tasks.Retried, s.Lost)
		})
	}
}

// methods lists the options of jobs with each kind of plan, besides that of recursive
// regularisation.
var methods = []string{
	"--method hblr-m2 --max-sweeps 10",
	"--method hblr-m3 --x likelihood=softmax --max-sweeps 4",
	"--method hblr-m1 --x inference=variational --x covariance=diagonal --max-sweeps 4",
	"--method mlr --gap 1e-3",
	"--method msvm --gap 1e-3",
	"--method td --gap 1e-3",
	"--method h-svm --gap 1e-3",
	"--method h-rls",
	"--method hm3 --gap 2e-2",
	"--method corrmnl --x iterations=60 --x burn-in=30 --x leapfrog=3",
	"--method flatmult --gap 1e-3",
	"--method hiermult --gap 1e-3",
	"--method hsvm --gap 1e-3",
	"--method transfer --gap 1e-3",
	"--method ot --gap 1e-3",
	"--method rr-msvm --gap 1e-2",
	"--method rr-mlr --gap 1e-3",
}

// TestKillsOfMethods kills random processes again and again, for other methods.
func TestKillsOfMethods(t *testing.T) {
	t.Parallel()
	lines := methods
	if os.Getenv("TAXON_CHAOS_RUNS") == "" {
		lines = lines[:2]
	}
	c := bench.Up(t, 3, 2)
	k := newKiller(7, 50*time.Millisecond, 400*time.Millisecond)
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			flags := strings.Fields(line)
			want := bench.Embedded(t, "", flags...)
			k.wait()
			s := c.Done(t, c.Submit(t, "", flags...), want, func(cluster.Status) { k.strike(t, c) })
			t.Logf("%v killed since the first job; %d attempts repeated", k.kills, s.Tasks.Retried)
		})
	}
	if len(k.kills) == 0 {
		t.Error("nothing was killed before the jobs were done")
	}
}

// TestStops stops a process for longer than a lease. When it continues, its work has been taken
// over, and it does no harm. A coordinator that was stopped must not take others for lost.
func TestStops(t *testing.T) {
	t.Parallel()
	_, gap, longer := settings(t)
	want := bench.Embedded(t, gap, longer...)
	for id, lease := range map[string]time.Duration{"worker-0": 300 * time.Millisecond, "coordinator": 3 * time.Second,
		"store-0": 300 * time.Millisecond} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			c := bench.Up(t, 2, 1, "--lease", lease.String())
			job := c.Submit(t, gap, longer...)
			p, stopped := c.Process(t, id), false
			s := c.Done(t, job, want, func(s cluster.Status) {
				if s.State == "running" && !stopped {
					stopped = true
					p.Signal(syscall.SIGSTOP)
					time.AfterFunc(3*lease, func() { p.Signal(syscall.SIGCONT) })
				}
			})
			if !stopped {
				t.Error("the job was done before anything was stopped")
			}
			if id == "coordinator" && s.Lost > 0 {
				t.Errorf("%d workers lost, which could not be heard", s.Lost)
			}
		})
	}
}

// TestReplicas lets the stores lose everything, one after the other. With two copies of each value,
// nothing is recomputed, and the weights are complete in the end.
func TestReplicas(t *testing.T) {
	t.Parallel()
	_, gap, _ := settings(t)
	want := bench.Embedded(t, gap)
	c := bench.Up(t, 2, 3, "--memory-stores")
	job := c.Submit(t, gap, "--replicas", "2")
	c.Process(t, "store-1").Signal(syscall.SIGKILL)
	if s := c.Done(t, job, want, nil); s.Rollbacks != 0 {
		t.Errorf("rolled back %d times", s.Rollbacks)
	}
}

// TestScale adds and removes workers in the middle of a job.
func TestScale(t *testing.T) {
	t.Parallel()
	_, gap, _ := settings(t)
	want := bench.Embedded(t, gap)
	c := bench.Up(t, 1, 1)
	job := c.Submit(t, gap)
	for _, n := range []int{8, 2} {
		c.Must(t, "", "cluster", "scale", "--dir", c.Dir, "--workers", fmt.Sprint(n))
	}
	c.Done(t, job, want, nil)
}
