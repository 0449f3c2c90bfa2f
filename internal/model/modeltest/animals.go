// Package modeltest makes small models whose scores can be computed by hand, for tests.
package modeltest

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model"
)

// Animals writes a small model and returns its folder. Its columns are features 7, 2 and 100 of the
// input.
//
//	virtual -> animal -> (spawned leaf of animal), cat, dog
//	        -> car
//
// The scores are: animal 1.5 x2 + 0.25 x7 - 1; cat 1.5 x2 + 0.1 x100 - 1; dog 1.5 x2 + 0.25 x7 -
// 0.75; car -2 x7 + 3. The model has 10 instances with a total of positives labels; 10 make it a
// single-label model.
func Animals(t testing.TB, positives int64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "animals")
	w, err := model.NewWriter(dir, model.Meta{
		Options: model.Options{Method: "rr-svm", Loss: "hinge", Bias: 1},
		Data:    model.DataInfo{Fingerprint: "f00d", Instances: 10, Nonzeros: 25, Positives: positives},
		Tree: &taxonomy.Tree{
			Parent: []int32{-1, 0, 1, 1, 1, 0},
			Kind: []taxonomy.Kind{taxonomy.Virtual, taxonomy.Node, taxonomy.Spawned, taxonomy.Node, taxonomy.Node,
				taxonomy.Node},
			Name:  []string{"", "animal", "animal", "cat", "dog", "car"},
			Label: []int32{-1, -1, 0, 1, 2, 3},
			Depth: []int32{0, 1, 2, 2, 2, 1},
			Leaf:  []bool{false, false, true, true, true, true},
		},
		Structure: &taxonomy.Structure{Names: []string{"animal", "cat", "dog"}, Parents: []uint32{0, 0},
			Children: []uint32{1, 2}},
		Labels:      []string{"animal", "cat", "dog", "car"},
		LabelCounts: []uint32{2, 4, 3, 1},
		Feature:     []uint32{7, 2, 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	for n, x := range []struct {
		columns []uint32
		values  []float32
	}{
		{[]uint32{0, 3}, []float32{0.5, -1}},
		{[]uint32{0, 1}, []float32{0.25, 1.5}},
		{},
		{[]uint32{0, 2}, []float32{0, 0.1}},
		{[]uint32{3}, []float32{-0.75}},
		{[]uint32{0, 1, 3}, []float32{-2, 0, 3}},
	} {
		if err := w.WriteNode(n, x.columns, x.values); err != nil {
			t.Fatal(err)
		}
	}
	own := map[string]json.RawMessage{"loss": json.RawMessage(`"hinge"`), "C": json.RawMessage("1"),
		"schedule": json.RawMessage(`"twoblock"`)}
	if _, err := w.Close(model.Report{Method: "rr-svm", StoppedBy: "gap", Own: own}, nil); err != nil {
		t.Fatal(err)
	}
	return dir
}
