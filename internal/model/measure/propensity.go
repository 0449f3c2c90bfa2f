package measure

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Propensity holds the parameters of the model of propensities: the probability that a relevant
// class is among the labels of a document (H. Jain et al., KDD 2016, section 4.1). The zero value
// stands for DefaultPropensity. It is the value of a flag.
type Propensity struct{ A, B float64 }

// DefaultPropensity has the parameters that Jain et al. give for data sets without any of their own.
var DefaultPropensity = Propensity{0.55, 1.5}

// String returns A,B.
func (p *Propensity) String() string {
	return fmt.Sprintf("%g,%g", cmp.Or(*p, DefaultPropensity).A, cmp.Or(*p, DefaultPropensity).B)
}

// Set reads A,B.
func (p *Propensity) Set(s string) error {
	first, second, _ := strings.Cut(s, ",")
	a, errA := strconv.ParseFloat(first, 64)
	b, errB := strconv.ParseFloat(second, 64)
	if errA != nil || errB != nil || !(a > 0 && b > 0) || math.IsInf(a+b, 0) {
		return errors.New("must be A,B, two numbers above 0, such as 0.55,1.5")
	}
	*p = Propensity{a, b}
	return nil
}

// Type names the values in help texts.
func (p *Propensity) Type() string { return "A,B" }

// inverse returns 1/p of a class that n of N training documents have:
//
//	1/p = 1 + (ln N - 1) (B+1)^A (n+B)^-A
//
// The factor ln N - 1 is taken as 0 where it is negative, which concerns N < 3.
func (p Propensity) inverse(n, documents int) float64 {
	p = cmp.Or(p, DefaultPropensity)
	return 1 + max(0, math.Log(float64(documents))-1)*math.Pow((p.B+1)/(float64(n)+p.B), p.A)
}

// propensities reports whether the measures of propensities are possible.
func (o *Options) propensities() bool { return o.Documents > 0 && o.TrainSizes != nil }

// PropensityScored holds the measures of rankings in which a hit counts 1/p of its class. Each is
// divided by the best value that a ranking can attain, so that it is at most 1.
type PropensityScored struct {
	PSP1    float64 `json:"psp@1"`
	PSP3    float64 `json:"psp@3"`
	PSP5    float64 `json:"psp@5"`
	PSNDCG5 float64 `json:"psndcg@5"`
}

// attained is a sum of gains beside the best that was possible.
type attained struct{ sum, best float64 }

func (a attained) of() float64 {
	if a.best == 0 {
		return 0
	}
	return a.sum / a.best
}

// propensitySums accumulates the measures of propensities.
type propensitySums struct {
	// weights[id] is 1/p of a class of the training data; unseen is that of others.
	weights []float64
	unseen  float64
	// precision and ndcg are the sums at each number of places.
	precision, ndcg []attained
	best            []float64
}

func newPropensitySums(o *Options, places int) *propensitySums {
	s := &propensitySums{precision: make([]attained, places), ndcg: make([]attained, places),
		unseen: o.Propensity.inverse(0, o.Documents)}
	for _, n := range o.TrainSizes {
		s.weights = append(s.weights, o.Propensity.inverse(n, o.Documents))
	}
	return s
}

func (s *propensitySums) weight(id int32) float64 {
	if int(id) < len(s.weights) {
		return s.weights[id]
	}
	return s.unseen
}

// add adds a ranking as rankingSums.add does, at each number of places k:
//
//	PSP@k    = sum over rows and hits at places 1..k of 1/p, over the same sum of the best ranking
//	PSnDCG@k = sum over rows of (sum over hits at places 1..k of 1/(p log2(place+1)))
//	           / (sum over i = 1..min(k, labels of the row) of 1/log2(i+1)), over the same of the best
//
// The best ranking has the row's labels by falling 1/p. Both are those of the extreme classification
// repository, whose sums run over all rows before they are divided.
func (s *propensitySums) add(at []int, ranked []int32, truth *marks, ids []int32) {
	s.best = s.best[:0]
	for _, id := range ids {
		s.best = append(s.best, s.weight(id))
	}
	slices.SortFunc(s.best, func(a, b float64) int { return cmp.Compare(b, a) })
	for j, k := range at {
		var plain, discounted attained
		unit := 0.0
		for i, w := range s.best[:min(k, len(s.best))] {
			plain.best += w
			discounted.best += float64(w * discount(i))
			unit += discount(i)
		}
		for i, id := range ranked[:min(k, len(ranked))] {
			if truth.has(id) {
				plain.sum += s.weight(id)
				discounted.sum += float64(s.weight(id) * discount(i))
			}
		}
		s.precision[j].sum += plain.sum
		s.precision[j].best += plain.best
		s.ndcg[j].sum += discounted.sum / unit
		s.ndcg[j].best += discounted.best / unit
	}
}

func (s *propensitySums) result() *PropensityScored {
	if s == nil {
		return nil
	}
	p := func(j int) float64 { return s.precision[j].of() }
	return &PropensityScored{PSP1: p(0), PSP3: p(1), PSP5: p(2), PSNDCG5: s.ndcg[2].of()}
}
