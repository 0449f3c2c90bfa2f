package labelset

import (
	"fmt"
	"slices"
)

// Profiles holds what a model said about held-out instances: for each its Depth best
// scores, falling, with their classes, and its true classes.
type Profiles struct {
	depth   int
	classes int

	score []float64 // rows x depth
	class []int32   // rows x depth
	hit   []bool    // rows x depth: the class is a true one
	truth []int32   // true classes, row by row
	begin []int     // rows+1

	weight []float64 // of rows
	bears  []int     // class -> rows that bear it
	count  []float64 // the same, each counted by its weight
	total  float64   // sum of count
}

// NewProfiles starts a collection for a model of so many classes. depth is the length of
// the profiles, at most classes.
func NewProfiles(depth, classes int) (*Profiles, error) {
	if depth < 1 || depth > classes {
		return nil, fmt.Errorf("label sets: a profile of %d scores for %d classes", depth, classes)
	}
	return &Profiles{depth: depth, classes: classes, begin: []int{0}, bears: make([]int, classes), count: make([]float64, classes)}, nil
}

// Rows is the number of instances added.
func (p *Profiles) Rows() int { return len(p.begin) - 1 }

// Add appends an instance: its weight in what is fitted, its depth best scores, falling, their
// classes, and its true classes, each once. The slices are copied.
func (p *Profiles) Add(weight float64, scores []float64, classes, truth []int32) error {
	if len(scores) != p.depth || len(classes) != p.depth {
		return fmt.Errorf("label sets: %d scores of %d classes, want %d", len(scores), len(classes), p.depth)
	}
	for _, c := range truth {
		if c < 0 || int(c) >= p.classes {
			return fmt.Errorf("label sets: no class %d", c)
		}
		p.bears[c]++
		p.count[c] += weight
		p.total += weight
	}
	p.weight = append(p.weight, weight)
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
