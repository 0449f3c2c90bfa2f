package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"taxon/internal/data/table"
)

// What is written reads back as what encoding/json writes, whatever the names are.
func TestPredictionsReadBack(t *testing.T) {
	want := []Prediction{{Labels: []Label{{"a \"b\"\\\n\u2028<é", 1e-7, "x > y"}, {"b", -1e300, ""}}},
		{Error: "a \"row\""}, {Labels: []Label{{"\xff", math.Pi, "c"}}}, {}}
	w := httptest.NewRecorder()
	out := &output{w: w, text: []byte(`{"predictions":[`)}
	for _, p := range want {
		labels := make([]label, len(p.Labels))
		for k := range labels {
			labels[k].Node = int32(k)
		}
		if err := out.prediction(p.Error, labels, func(n label) Label { return p.Labels[n.Node] }); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.end(); err != nil {
		t.Fatal(err)
	}
	var got struct{ Predictions []Prediction }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	want[2].Labels[0].Label = "\uFFFD"
	want[3].Labels = []Label{}
	if !reflect.DeepEqual(got.Predictions, want) {
		t.Errorf("%+v\nwant %+v", got.Predictions, want)
	}
}

// FuzzRequest: a body is taken where encoding/json takes it for the same thing, and refused else.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{`{"instances": [{"text": "a"}], "top": 2}`,
		`{"instances": [1, "a", {"b": [{}]}], "label": "\u00e9\n", "words": null}`, `{"instances": []} x`, `[`,
		`{"instances": {}}`,
		`{"instances": [{"features": {"7": 0.5, "8": -1e9}}]}`, "{\"label\": \"\xff\", \"instances\": [[]]}", `{"top": 1.5}`,
		`{"top": 1e2, "instances": [0]}`, ``, `null`, `{"instances": null}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		q := requests.New().(*request)
		q.room = newMemoryBudget(1 << 22)
		err := q.read(strings.NewReader(body), -1, 1<<20, 1<<20)
		var want struct {
			Instances []json.RawMessage
			Top       *int
			Label     string
			Words     *int
		}
		d := json.NewDecoder(strings.NewReader(body))
		d.DisallowUnknownFields()
		wrong := d.Decode(&want)
		if err != nil {
			var r refusal
			if !errors.As(err, &r) || r.code != http.StatusBadRequest {
				t.Fatalf("refused by %v", err)
			}
			return
		}
		if wrong != nil || len(want.Instances) != q.rows.len() || want.Label != q.label || !reflect.DeepEqual(want.Top,
			q.top) || !reflect.DeepEqual(want.Words, q.words) {
			t.Fatalf("%q is taken for %d rows, top %v, label %q; encoding/json says %v, %+v", body, q.rows.len(), q.top, q.label,
				wrong, want)
		}
		for i, raw := range want.Instances {
			if !bytes.Equal(raw, q.rows[i]) {
				t.Fatalf("instance %d is %q, want %q", i, q.rows[i], raw)
			}
		}
	})
}

// What is wrong with a column of a table is said by its name.
func TestNamedColumn(t *testing.T) {
	schema := &table.Schema{Columns: table.Columns{Features: []string{"price"}}, Widths: []int{0}}
	for value, want := range map[string]string{`"x"`: `feature "price": its value must be a number`,
		"1e60": `feature "price": 1e60 is not finite in float32`} {
		var v vector
		if err := v.feature(open(&v.json, &v.in, []byte(value)), []byte(`"price"`), schema); err == nil ||
			err.Error() != want {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
	}
}

// A large number keeps what is left of it without its mean.
func TestLargeNumber(t *testing.T) {
	schema := &table.Schema{Columns: table.Columns{Features: []string{"t"}}, Widths: []int{0}, Mean: []float64{1.6e9},
		Scale: []float64{16}}
	var v vector
	if err := v.feature(open(&v.json, &v.in, []byte("1600000008")), []byte(`"t"`), schema); err != nil {
		t.Fatal(err)
	}
	if got := schema.Standardise(v.features[0].index, v.features[0].value); got != 0.5 {
		t.Errorf("%v, want 0.5", got)
	}
}
