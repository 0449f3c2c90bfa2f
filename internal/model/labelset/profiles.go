package labelset

import (
	"fmt"
	"slices"
)

// Profiles holds the scores of held-out instances: for each instance its Depth best scores,
// falling, with their classes, and its true classes.
type Profiles struct {
	depth   int
	classes int

	score []float64 // rows x depth
	class []int32   // rows x depth
	hit   []bool    // rows x depth: the class is a true one
	truth []int32   // true classes, row by row
	begin []int     // rows+1

	weight []float64 // of rows
	part   []int32   // of rows
	// part, class -> rows with the class, counted with their weights
	count [][]float64
	total float64 // sum of count
}

// NewProfiles begins a collection for a model with so many classes. depth is the length of the
// profiles, at most classes.
func NewProfiles(depth, classes int) (*Profiles, error) {
	if depth < 1 || depth > classes {
		return nil, fmt.Errorf("label sets: a profile of %d scores for %d classes", depth, classes)
	}
	return &Profiles{depth: depth, classes: classes, begin: []int{0}, count: [][]float64{make([]float64, classes)}}, nil
}

// Rows is the number of instances added.
func (p *Profiles) Rows() int { return len(p.begin) - 1 }

// Depth is the length of the profiles.
func (p *Profiles) Depth() int { return p.depth }

// NextPart begins a part. Macro-F1 is the mean of the parts', because a class's F1 depends on how
// many instances it is measured on, and a part has the size of a test set.
func (p *Profiles) NextPart() {
	if p.Rows() > 0 {
		p.count = append(p.count, make([]float64, p.classes))
	}
}

// Add appends an instance: its weight in the fit, its depth best scores, falling, with their
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
