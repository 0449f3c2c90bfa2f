package exact

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLogistic checks rr-lr on trees and graphs of every unusual kind.
func TestLogistic(t *testing.T) {
	all := settings()
	for k, kind := range slices.Concat(kinds, graphKinds) {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for s, setting := range all {
				if setting.squared || !full() && (s/2+3*k)%5 != 0 {
					continue
				}
				t.Run(setting.String(), func(t *testing.T) {
					p := setting.apply(kind.make(rand.New(rand.NewPCG(uint64(k), uint64(s)))))
					p.Logistic = true
					check(t, p)
				})
			}
		})
	}
}

// TestEveryPathOfALogistic checks that schedules and stiffness reach the same optimum.
func TestEveryPathOfALogistic(t *testing.T) {
	for k, kind := range []kind{kinds[0], kinds[10], graphKinds[6], graphKinds[7]} {
		list := paths
		if k > 1 {
			list = graphPaths
		}
		for _, path := range list {
			t.Run(kind.name+"/"+fmt.Sprint(path), func(t *testing.T) {
				t.Parallel()
				p := setting{1, 1, false}.apply(kind.make(rand.New(rand.NewPCG(uint64(k), 9))))
				p.Logistic, p.Anchor = true, 0.3
				check(t, p, path...)
			})
		}
	}
}

// TestPositiveWeight checks all three losses, on trees, on graphs and flat.
func TestPositiveWeight(t *testing.T) {
	for k, kind := range []kind{kinds[0], kinds[10], kinds[12], graphKinds[6], graphKinds[9]} {
		for s, weight := range []float64{-1, 0.25, 8} {
			t.Run(fmt.Sprint(kind.name, " w=", weight), func(t *testing.T) {
				t.Parallel()
				p := setting{[]float64{0.1, 1, 10}[(k+s)%3], 1, (k+s)%3 == 1}.apply(kind.make(rand.New(rand.NewPCG(uint64(k), 31))))
				p.Logistic = (k+s)%3 == 2
				p.Positive = weight
				check(t, p)
			})
		}
	}
}
