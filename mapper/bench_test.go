//go:build unix

package mapper

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const benchRows, benchCols, benchClasses = 8_000, 30_000, 300

// cpuTime is the processor time of this process so far: other work on the machine does not count.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano())
}

// perVisit reports the processor time since start, per nonzero and class.
func perVisit(b *testing.B, start time.Duration, visits int64) {
	b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(visits), "cpu-ns/nonzero-class")
}

// eachKernel runs a benchmark for every kernel of this CPU.
func eachKernel(b *testing.B, f func(b *testing.B, k Kernel)) {
	for _, k := range Kernels() {
		b.Run("kernel="+k.String(), func(b *testing.B) { f(b, k) })
	}
}

// BenchmarkScore is the cost of scoring all rows once, per nonzero and class.
func BenchmarkScore(b *testing.B) {
	x, _ := textLike(benchRows, benchCols, benchClasses)
	w := randomTile[float32](rand.New(rand.NewPCG(1, 1)), benchCols)
	out, low := make([][Lanes]float32, x.Rows), make([]uint16, x.Rows)
	eachKernel(b, func(b *testing.B, k Kernel) {
		e := scoreArgsOf(x, w, 1, out, low)
		start := cpuTime()
		for range b.N {
			k.score(e)
		}
		perVisit(b, start, int64(b.N)*(x.NNZ+int64(x.Rows))*Lanes)
	})
}

// BenchmarkSolve is a fresh block's three epochs, then three over its working set.
func BenchmarkSolve(b *testing.B) {
	x, class := textLike(benchRows, benchCols, benchClasses)
	s := NewProblem(x, Hinge, 1, 1)
	t, block := s.NewSolver(), textBlock(x, class)
	ctx := context.Background()
	first, err := t.Solve(ctx, block, nil, Options{Epochs: 3, Price: true, Band: 0.15})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		warm *State
	}{{"fresh", nil}, {"working-set", &first.State}} {
		b.Run(c.name, func(b *testing.B) {
			eachKernel(b, func(b *testing.B, k Kernel) {
				s.Kernel = k
				visits, start := int64(0), cpuTime()
				for range b.N {
					r, err := t.Solve(ctx, block, c.warm, Options{Epochs: 3})
					if err != nil {
						b.Fatal(err)
					}
					visits += r.Sums.Visits
				}
				perVisit(b, start, visits)
			})
		})
	}
}

// BenchmarkPrice is the pass over all rows and classes that certifies.
func BenchmarkPrice(b *testing.B) {
	x, class := textLike(benchRows, benchCols, benchClasses)
	s := NewProblem(x, Hinge, 1, 1)
	t, block := s.NewSolver(), textBlock(x, class)
	ctx := context.Background()
	warm, err := t.Solve(ctx, block, nil, Options{Epochs: 5, Price: true, Band: 0.15})
	if err != nil {
		b.Fatal(err)
	}
	eachKernel(b, func(b *testing.B, k Kernel) {
		s.Kernel = k
		visits, start := int64(0), cpuTime()
		for range b.N {
			r, err := t.Solve(ctx, block, &warm.State, Options{Price: true, Band: 0.15})
			if err != nil {
				b.Fatal(err)
			}
			visits += r.Sums.Visits
		}
		perVisit(b, start, visits)
	})
}
