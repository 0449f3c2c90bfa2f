package model_test

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"taxon/internal/model"
	"taxon/internal/model/form"
	"taxon/internal/model/modeltest"
)

// TestFormRefused: words of a newer program, and versions that do not fit.
func TestFormRefused(t *testing.T) {
	for _, f := range []form.Form{{Weights: "half"}, {Predictor: "vote"}, {Link: "probit"}, {Predictor: form.Descent},
		{Predictor: form.Nested}} {
		meta := modeltest.TinyMeta()
		meta.Form = f
		if _, err := model.NewWriter(filepath.Join(t.TempDir(), "m"), meta); err == nil || !strings.Contains(err.Error(),
			"form") {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

// TestOwnKeys: a method's own keys stand beside the others, and come back.
func TestOwnKeys(t *testing.T) {
	r := modeltest.TinyReport()
	plain, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	r.Own = map[string]json.RawMessage{"per_node": json.RawMessage(`[1,2]`), "alpha_used": json.RawMessage(`0.5`)}
	b, err := json.Marshal(r)
	if want := strings.TrimSuffix(string(plain), "}") + `,"alpha_used":0.5,"per_node":[1,2]}`; err != nil ||
		string(b) != want {
		t.Errorf("%s, %v\nwant %s", b, err, want)
	}
	for _, want := range []model.Report{r, modeltest.TinyReport()} {
		b, err := json.Marshal(want)
		var back model.Report
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || !reflect.DeepEqual(back, want) {
			t.Errorf("%+v, %v\nwant %+v", back, err, want)
		}
	}
	if _, err := model.JoinObjects(3); err == nil {
		t.Error("a number was taken for an object")
	}
}
