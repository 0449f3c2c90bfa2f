package measure

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestProbability: log-loss, Brier score and calibration error as their definitions have them,
// of rows with one label, whose probabilities are divided by their sum, and with several.
func TestProbability(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 3))
		several := seed%2 == 1
		a, err := NewAccumulator(Options{Classes: []string{"a", "b", "c", "d"}})
		if err != nil {
			t.Fatal(err)
		}
		var loss, square, pairs float64
		var bin [15][3]float64
		put := func(p float64, right bool) {
			k := min(int(p*15), 14)
			bin[k][0]++
			bin[k][1] += p
			if right {
				bin[k][2]++
			}
		}
		const rows = 200
		for i := range rows {
			classes, p := []int32{2, 0, 1}, make([]float64, 3) // class 3 is not the model's
			for k := range p {
				p[k] = r.Float64() * r.Float64()
			}
			if i == 7 {
				p = []float64{1, 0, 1} // at the ends of the bins
			}
			truth := []int32{int32(r.IntN(4))}
			if several {
				truth = append(truth, int32(r.IntN(4)))
			}
			is := func(class int32) bool { return truth[0] == class || several && truth[1] == class }
			a.AddProbabilities(truth, classes, p)
			if several {
				for k, class := range classes {
					y, of := 0.0, 1-p[k]
					if is(class) {
						y, of = 1, p[k]
					}
					loss -= math.Log(max(of, 1e-15))
					square += (p[k] - y) * (p[k] - y)
					pairs++
					put(p[k], is(class))
				}
				if is(3) {
					loss -= math.Log(1e-15)
					square++
					pairs++
				}
				continue
			}
			sum, own, top := p[0]+p[1]+p[2], 0.0, 0
			for k, class := range classes {
				y := 0.0
				if is(class) {
					y, own = 1, p[k]/sum
				}
				square += (p[k]/sum - y) * (p[k]/sum - y)
				if p[k] > p[top] {
					top = k
				}
			}
			if is(3) {
				square++
			}
			loss -= math.Log(max(own, 1e-15))
			put(p[top]/sum, is(classes[top]))
			pairs++
		}
		ece, count := 0.0, 0.0
		for _, b := range bin {
			ece += math.Abs(b[2] - b[1])
			count += b[0]
		}
		got := a.Result().Probability
		for k, pair := range [][2]float64{{got.LogLoss, loss / pairs}, {got.Brier, square / pairs}, {got.ECE, ece / count}} {
			if math.Abs(pair[0]-pair[1]) > 1e-12 {
				t.Errorf("seed %d, figure %d: %g, by its definition %g", seed, k, pair[0], pair[1])
			}
		}
	}
}
