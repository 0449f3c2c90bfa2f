package labelset

import (
	"fmt"
	"slices"
)

// Profiles hold the scores of held-out instances: for each instance its Depth best scores, in
// decreasing order, with their classes, and its true classes.
type Profiles struct {
	depth   int
	classes int

	// score, class and hit have rows x depth entries. hit reports whether the class is a true one.
	score []float64
	class []int32
	hit   []bool
	// truth lists the true classes, row by row, and begin has rows + 1 entries.
	truth []int32
	begin []int

	// weight and part are by row.
	weight []float64
	part   []int32
	// count holds, by part and class, the total weight of the rows with the class.
	count [][]float64
	// total is the sum of count.
	total float64
}

// NewProfiles returns an empty collection for a model with a number of classes. depth is the length
// of the profiles, at most classes.
func NewProfiles(depth, classes int) (*Profiles, error) {
	if depth < 1 || depth > classes {
		return nil, fmt.Errorf("label sets: a profile of %d scores for %d classes", depth, classes)
	}
	return &Profiles{depth: depth, classes: classes, begin: []int{0}, count: [][]float64{make([]float64, classes)}}, nil
}

// Rows returns the number of instances added.
func (p *Profiles) Rows() int { return len(p.begin) - 1 }

// Depth returns the length of the profiles.
func (p *Profiles) Depth() int { return p.depth }

// NextPart starts a part. Macro-F1 is the mean over the parts, because a class's F1 depends on the
// number of instances on which it is measured, and a part has the size of a test set.
func (p *Profiles) NextPart() {
	if p.Rows() > 0 {
		p.count = append(p.count, make([]float64, p.classes))
	}
}

// Add appends an instance: its weight in the fit, its depth best scores in decreasing order, their
// classes, and its true classes, each once. The slices are copied.
func (p *Profiles) Add(weight float64, scores []float64, classes, truth []int32) error {
	if len(scores) != p.depth || len(classes) != p.depth {
		return fmt.Errorf("label sets: %d scores of %d classes, want %d", len(scores), len(classes), p.depth)
	}
	for _, c := range truth {
		if c < 0 || int(c) >= p.classes {
			return fmt.Errorf("label sets: no class %d", c)
		}
		p.count[len(p.count)-1][c] += weight
		p.total += weight
	}
	p.weight, p.part = append(p.weight, weight), append(p.part, int32(len(p.count)-1))
	p.score = append(p.score, scores...)
	p.class = append(p.class, classes...)
	for _, c := range classes {
		p.hit = append(p.hit, slices.Contains(truth, c))
	}
	p.truth = append(p.truth, truth...)
	p.begin = append(p.begin, len(p.truth))
	return nil
}

func (p *Profiles) scores(row int) []float64 { return p.score[row*p.depth : (row+1)*p.depth] }
func (p *Profiles) ranked(row int) []int32   { return p.class[row*p.depth : (row+1)*p.depth] }
func (p *Profiles) hits(row int) []bool      { return p.hit[row*p.depth : (row+1)*p.depth] }
func (p *Profiles) labels(row int) int       { return p.begin[row+1] - p.begin[row] }
