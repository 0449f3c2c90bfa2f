package eval

import "math"

// rankingSums adds up the ranked measures.
type rankingSums struct {
	hits1, hits3, hits5 int64
	ndcg                float64
}

// discount is the weight of a hit at place i, counted from 0: 1/log2(i+2).
func discount(i int) float64 { return 1 / math.Log2(float64(i+2)) }

// add takes a ranking without repeats and the set of the row's count true labels.
//
//	P@k    = (true labels among the first k) / k
//	nDCG@5 = sum over hits at places 1..5 of 1/log2(place+1), over the same sum with
//	         hits at places 1..min(5, count)
func (s *rankingSums) add(ranked []int32, truth *marks, count int) {
	if count == 0 {
		return
	}
	gain, best := 0.0, 0.0
	for i := range min(RankedPlaces, count) {
		best += discount(i)
	}
	for i, id := range ranked[:min(RankedPlaces, len(ranked))] {
		if !truth.has(id) {
			continue
		}
		gain += discount(i)
		s.hits5++
		if i < 3 {
			s.hits3++
		}
		if i < 1 {
			s.hits1++
		}
	}
	s.ndcg += gain / best
}

func (s *rankingSums) result(instances int) *Ranking {
	n := int64(instances)
	return &Ranking{
		P1: share(s.hits1, n), P3: share(s.hits3, 3*n), P5: share(s.hits5, 5*n),
		NDCG5: mean(s.ndcg, instances),
	}
}
