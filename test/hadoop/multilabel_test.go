package hadoop

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"taxon/internal/fs"
)

// multiLabelRows generates instances with about two labels of eight, features that indicate them,
// and noise.
func multiLabelRows(rows int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var b bytes.Buffer
	for range rows {
		var labels, features []string
		for c := range 8 {
			on := r.IntN(4) == 0
			if on {
				labels = append(labels, fmt.Sprint("c", c))
			}
			if on != (r.IntN(8) == 0) {
				features = append(features, fmt.Sprintf("%d:%.2f", c+1, 0.2+0.3*r.Float64()))
			}
		}
		for f := range 20 {
			if r.IntN(3) == 0 {
				features = append(features, fmt.Sprintf("%d:0.2", f+9))
			}
		}
		fmt.Fprintln(&b, strings.Join(labels, ","), strings.Join(features, " "))
	}
	return b.Bytes()
}

// TestMultiLabel checks that a model with cut-offs fitted on held-out instances is the same in HDFS
// as locally, by every engine, and so are the outputs of predict and eval.
func TestMultiLabel(t *testing.T) {
	c := startCluster(t, Options{DataNodes: 1, Replication: 1})
	taxon := buildCommand(t)
	local, remote := t.TempDir(), c.URL("/multi")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	train, test := multiLabelRows(400, 1), multiLabelRows(300, 2)
	var cutoffs, labelled [][]byte
	var measured []float64
	for _, root := range []string{local, remote} {
		at := func(name string) string { return fs.Join(root, name) }
		if err := fs.MkdirAll(root); err != nil {
			t.Fatal(err)
		}
		put(t, at("train.svm"), train)
		put(t, at("test.svm"), test)
		for _, engine := range []string{"", "--engine mapreduce"} {
			for _, force := range []string{"", "--force"} { // over a model that is there, too
				args := append([]string{"train", "--data", at("train.svm"), "--out", at("model")}, strings.Fields(engine+" "+
					force)...)
				if engine != "" {
					args[4] = at("by-jobs")
				}
				if r := taxon.figures(t, args...); r["cutoff_seconds"] == nil {
					t.Errorf("%v: no cut-offs", args)
				}
				cutoffs = append(cutoffs, get(t, fs.Join(args[4], "cutoffs.json")))
				taxon.run(t, 0, "predict", "--model", args[4], "--data", at("test.svm"), "--out", at("pred.txt"))
				labelled = append(labelled, get(t, at("pred.txt")))
				measured = append(measured, taxon.figures(t, "eval", "--model", args[4], "--data",
					at("test.svm"))["micro_f1"].(float64))
			}
		}
		nothingBut(t, root, "by-jobs", "model", "pred.txt", "test.svm", "train.svm")
	}
	for i := range cutoffs {
		if !bytes.Equal(cutoffs[i], cutoffs[0]) || !bytes.Equal(labelled[i], labelled[0]) || measured[i] != measured[0] {
			t.Errorf("model %d is another than the first: micro F1 %v, %v", i, measured[i], measured[0])
		}
	}
	if !bytes.Contains(labelled[0], []byte(",")) {
		t.Error("no instance got several labels")
	}
}
