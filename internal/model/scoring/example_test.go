package scoring_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model"
	"taxon/internal/model/scoring"
)

// A model of two classes under one root, written, opened and asked.
func Example() {
	tmp, err := os.MkdirTemp("", "model")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "pets")

	w, err := model.NewWriter(dir, model.Meta{
		Options: model.Options{Method: "rr-svm", Loss: "hinge", Bias: 1},
		Data:    model.DataInfo{Instances: 2, Positives: 2},
		Tree: &taxonomy.Tree{
			Parent: []int32{-1, 0, 0},
			Kind:   []taxonomy.Kind{taxonomy.Node, taxonomy.Node, taxonomy.Node},
			Name:   []string{"pet", "cat", "dog"},
			Label:  []int32{-1, 0, 1},
			Depth:  []int32{0, 1, 1},
			Leaf:   []bool{false, true, true},
		},
		Labels:      []string{"cat", "dog"},
		LabelCounts: []uint32{1, 1},
		// columns 0 and 1 are the input's features 1 and 2; column 2 is the bias
		Feature: []uint32{1, 2},
	})
	if err != nil {
		log.Fatal(err)
	}
	// Overrides: what differs from the parent (above the root: from zero).
	for n, node := range []struct {
		columns []uint32
		values  []float32
	}{
		{[]uint32{2}, []float32{-0.5}},    // pet: bias -0.5
		{[]uint32{0}, []float32{1}},       // cat: feature 1; its bias is pet's
		{[]uint32{1, 2}, []float32{2, 0}}, // dog: feature 2, no bias
	} {
		if err := w.WriteNode(n, node.columns, node.values); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := w.Close(model.Report{Method: "rr-svm", StoppedBy: "gap"}, nil); err != nil {
		log.Fatal(err)
	}

	m, err := model.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	p, err := scoring.New(m, scoring.Options{Rule: scoring.DefaultRule(m), Top: 2})
	if err != nil {
		log.Fatal(err)
	}
	var batch scoring.Batch
	batch.Add([]uint32{0}, []float32{3})
	batch.Add([]uint32{0, 1}, []float32{1, 1})
	var result scoring.Result
	if err := p.NewScorer().Predict(&batch, &result); err != nil {
		log.Fatal(err)
	}
	for i := range batch.Rows() {
		first, second := result.Best(i)[0], result.Best(i)[1]
		fmt.Println(m.Tree.Name[first.Node], first.Score, m.Tree.Name[second.Node], second.Score)
	}
	fmt.Println("dog:", m.Vector(2))
	// Output:
	// cat 2.5 dog 0
	// dog 2 cat 0.5
	// dog: [0 2 0]
}
