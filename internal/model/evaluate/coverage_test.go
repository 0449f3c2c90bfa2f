package evaluate

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/calibration"
	"taxon/internal/model/modeltest"
	"taxon/internal/model/predict"
	"taxon/internal/ui/progress"
)

// The row 2:2 7:4 has dog 0.47, animal's own 0.37 and cat 0.14 by the soft-max of its scores, and
// animal whole 0.9998: from 0.5 on the answer is animal, which is right of a cat and wrong of a
// car; no class reaches 0.5 by itself. The row 100:1 has car 0.93 or more.
func TestCoverage(t *testing.T) {
	dir := modeltest.Animals(t, 10)
	if _, err := model.AddCalibration(dir, &calibration.Calibration{Kind: calibration.Temperature, Joint: true, Slope: 1},
		1, 1); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "rows.svm")
	if err := os.WriteFile(data, []byte("cat 2:2 7:4\ncar 2:2 7:4\ncar 100:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Model: dir, Data: predict.Input{Path: data, Files: fs.Local{}}, Coverage: true}
	r, err := Run(t.Context(), o, progress.Discard{})
	if err != nil || len(r.Coverage) != len(thresholds) {
		t.Fatal(r, err)
	}
	for _, c := range r.Coverage[:5] { // up to 0.9
		if c.Answered != 1 || math.Abs(c.Correct-2.0/3) > 1e-12 || math.Abs(c.Classes-1.0/3) > 1e-12 || c.ClassCorrect != 1 {
			t.Errorf("%+v", c)
		}
	}
	o.Model = modeltest.Animals(t, 10)
	if _, err := Run(t.Context(), o, progress.Discard{}); err == nil {
		t.Error("a model without probabilities has coverage")
	}
}
