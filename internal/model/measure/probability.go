package measure

import "math"

// Probability holds the measures of probabilities. If every row has one label, a row's
// probabilities are first normalised.
type Probability struct {
	// LogLoss is the mean of -log p of the true label, with p at least 1e-15. With several labels
	// it is the mean over instances and classes.
	LogLoss float64 `json:"log_loss"`
	// Brier is the mean of the sum over classes of (p - y)^2. With several labels it is the mean
	// over instances and classes.
	Brier float64 `json:"brier"`
	// ECE is the expected calibration error with 15 bins of the top label's p. With several labels
	// the bins are of all p.
	ECE float64 `json:"ece"`
}

const (
	calibrationBins = 15
	minProbability  = 1e-15
)

// bins are the bins of the calibration error, with the number of probabilities in each, their sum,
// and how many belong to true labels.
type bins [calibrationBins]struct{ count, sum, right float64 }

func (b *bins) add(p float64, right bool) {
	k := &b[min(int(p*calibrationBins), calibrationBins-1)]
	k.count++
	k.sum += p
	if right {
		k.right++
	}
}

func (b *bins) error() (sum float64) {
	total := 0.0
	for _, k := range b {
		sum += math.Abs(k.right - k.sum)
		total += k.count
	}
	return sum / max(total, 1)
}

// probabilitySums holds the sums for both cases, because only the last row shows which case
// applies.
type probabilitySums struct {
	// several counts the rows without exactly one label.
	rows, pairs, several int
	// one is for data whose rows all have one label, many for others.
	one, many        struct{ loss, square float64 }
	topBins, allBins bins
}

// add adds a row: the probabilities of classes, and which of them are true. absent counts the true
// labels without a class, whose probability is 0.
func (s *probabilitySums) add(p []float64, right []bool, absent int) {
	s.rows++
	s.pairs += len(p) + absent
	labels, sum := absent, 0.0
	for k, x := range p {
		sum += x
		if right[k] {
			labels++
		}
	}
	if labels != 1 {
		s.several++
	}
	best, top := -1, math.Inf(-1)
	own := 0.0
	for k, x := range p {
		q := x / max(sum, math.SmallestNonzeroFloat64)
		y, of := 0.0, 1-x
		if right[k] {
			y, of, own = 1, x, q
		}
		s.many.loss -= math.Log(max(of, minProbability))
		s.many.square += float64((x - y) * (x - y))
		s.one.square += float64((q - y) * (q - y))
		s.allBins.add(x, right[k])
		if q > top {
			best, top = k, q
		}
	}
	s.one.loss -= math.Log(max(own, minProbability))
	s.many.loss -= float64(float64(absent) * math.Log(minProbability))
	s.many.square += float64(absent)
	s.one.square += float64(absent)
	if best >= 0 {
		s.topBins.add(top, right[best])
	}
}

func (s *probabilitySums) single() bool { return s.several == 0 }

// result returns the measures of the rows so far, and the bins of the calibration error.
func (s *probabilitySums) result() (*Probability, []Bin) {
	sums, n, b := &s.many, s.pairs, &s.allBins
	if s.single() {
		sums, n, b = &s.one, s.rows, &s.topBins
	}
	of := float64(max(n, 1))
	return &Probability{sums.loss / of, sums.square / of, b.error()}, b.table()
}
