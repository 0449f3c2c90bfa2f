package estimate

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taxon/coordinator/method/registry"
	"taxon/internal/data/generate"
)

func prepare(t *testing.T, s generate.Shape) *registry.Job {
	t.Helper()
	j, err := registry.Prepare(Spec(s, 1))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

var cores = []int{1, 8, 64, 512}

func lwiki(t *testing.T, scale float64, c Cluster) *Info {
	t.Helper()
	s, err := generate.Like("lwiki", scale)
	if err != nil {
		t.Fatal(err)
	}
	return Of(prepare(t, s), c, cores)
}

func TestOfGeneratedShape(t *testing.T) {
	small, large := lwiki(t, 0.001, Cluster{}), lwiki(t, 0.01, Cluster{Stores: 64, Memory: 1 << 20})
	if small.Terminals != 325 || small.Blocks != 21 || small.TasksSweep != small.Blocks+small.Ranges ||
		small.Nodes != 478 {
		t.Errorf("%+v", small)
	}
	// Visits are instances times classes: a hundred times as many.
	if r := large.Visits / small.Visits; r < 90 || r > 110 {
		t.Errorf("visits grew by %v", r)
	}
	if small.Fits != nil || large.Fits == nil || *large.Fits {
		t.Errorf("a worker of 1 MiB: %v, of unknown memory: %v", large.Fits, small.Fits)
	}
	for _, i := range []*Info{small, large} {
		for k, s := range i.Speedup {
			if s.Speedup > float64(s.Cores) || k > 0 && s.Seconds > i.Speedup[k-1].Seconds*1.001 {
				t.Errorf("%+v", i.Speedup)
			}
		}
	}
	// 21 blocks cannot feed 512 cores, and the answer says so.
	if s := small.Speedup[3]; s.Speedup > 22 || s.Bottleneck == "none" {
		t.Errorf("%+v", s)
	}
	if large.Speedup[1].Speedup < 5 {
		t.Errorf("%+v", large.Speedup)
	}
}

// TestOneStoreIsABottleneck: many cores, one store.
func TestOneStoreIsABottleneck(t *testing.T) {
	one, many := lwiki(t, 0.03, Cluster{Stores: 1}), lwiki(t, 0.03, Cluster{Stores: 64})
	if one.Speedup[3].Seconds <= many.Speedup[3].Seconds {
		t.Errorf("one store %+v, 64 %+v", one.Speedup[3], many.Speedup[3])
	}
}

func TestFewWorkers(t *testing.T) {
	if i := lwiki(t, 0.003, Cluster{Workers: 2, Slots: 4}); i.Speedup[3].Speedup > 8 {
		t.Errorf("512 cores, but 8 slots: %+v", i.Speedup[3])
	} else if s := i.Speedup; strings.Contains(s[1].Bottleneck, "slots") || !strings.Contains(s[3].Bottleneck,
		"slots, 8 in all") {
		t.Errorf("8 slots are what limits 512 cores, and not 8: %+v", s)
	}
}

// TestFlat: without internals nothing is reduced, and no range of features holds up the blocks.
func TestFlat(t *testing.T) {
	s, err := generate.Like("flat", 1)
	if err != nil {
		t.Fatal(err)
	}
	i := Of(prepare(t, s), Cluster{}, cores)
	if i.Blocks < 64 || i.Speedup[1].Speedup < 6 {
		t.Errorf("%d blocks on 8 cores: %+v", i.Blocks, i.Speedup)
	}
}

func TestMakespan(t *testing.T) {
	if got := makespan([]float64{5, 4, 3, 3, 3}, 2); got != 10 {
		t.Errorf("%v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		tasks := rapid.SliceOfN(rapid.Float64Range(0, 10), 1, 50).Draw(t, "tasks")
		n := rapid.IntRange(1, 60).Draw(t, "cores")
		sum := 0.0
		for _, v := range tasks {
			sum += v
		}
		got := makespan(tasks, n)
		least := max(sum/float64(n), slices.Max(tasks))
		if got < least-1e-9 || got > sum/float64(n)+slices.Max(tasks)+1e-9 || n == 1 && math.Abs(got-sum) > 1e-9 {
			t.Fatalf("%v on %d: %v", tasks, n, got)
		}
	})
}
