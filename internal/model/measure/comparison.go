package measure

// Output is a model's prediction for one row, as label ids.
type Output struct {
	// Predicted is the set of labels.
	Predicted []int32
	// Ranked is the ranking, best first. It is ignored without Options.Ranked.
	Ranked []int32
}

// Comparison measures two models on the same rows and tests whether they differ. Both use the
// same class set.
type Comparison struct {
	first, second *Accumulator
	plus, minus   int64
	truth, a, b   marks
}

// NewComparison returns an empty comparison.
func NewComparison(o Options) (*Comparison, error) {
	l, err := newLabels(o)
	if err != nil {
		return nil, err
	}
	return &Comparison{first: newAccumulator(l), second: newAccumulator(l)}, nil
}

// IDs appends the ids of label names to dst, as Accumulator.IDs does.
func (c *Comparison) IDs(dst []int32, names []string) []int32 { return c.first.IDs(dst, names) }

// Add adds one row and both models' predictions.
func (c *Comparison) Add(truth []int32, first, second Output) {
	c.first.Add(truth, first.Predicted, first.Ranked)
	c.second.Add(truth, second.Predicted, second.Ranked)
	n := len(c.first.labels.node)
	put(&c.truth, truth, n)
	put(&c.a, first.Predicted, n)
	put(&c.b, second.Predicted, n)
	// Where both predict the same, both are right or both are wrong.
	for _, id := range c.first.predIDs {
		if !c.b.has(id) {
			c.decide(c.truth.has(id))
		}
	}
	for _, id := range c.second.predIDs {
		if !c.a.has(id) {
			c.decide(!c.truth.has(id))
		}
	}
}

// Probabilities returns functions that add the probabilities of the first and of the second model,
// as Accumulator.AddProbabilities does.
func (c *Comparison) Probabilities() (first, second func(truth, classes []int32, p []float64)) {
	return c.first.AddProbabilities, c.second.AddProbabilities
}

// decide counts a decision on which the two models differ.
func (c *Comparison) decide(firstIsRight bool) {
	if firstIsRight {
		c.plus++
	} else {
		c.minus++
	}
}

// put makes ids the content of set.
func put(set *marks, ids []int32, n int) {
	set.reset(n)
	for _, id := range ids {
		set.put(id)
	}
}

// Result returns the first model's measures with both tests, and the second's as Other.
func (c *Comparison) Result() Result {
	r, other := c.first.Result(), c.second.Result()
	sign := NewSignTest(c.plus, c.minus)
	rank := NewWilcoxon(c.first.ClassF1(), c.second.ClassF1())
	r.SignTest, r.Wilcoxon, r.Other = &sign, &rank, &other
	return r
}
