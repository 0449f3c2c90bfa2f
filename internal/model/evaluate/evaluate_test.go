package evaluate

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"taxon/internal/fs"
	"taxon/internal/model/modeltest"
	"taxon/internal/model/predict"
	"taxon/internal/ui/progress"
)

// heard keeps warnings.
type heard struct {
	progress.Discard
	warnings []string
}

func (h *heard) Warn(format string, args ...any) {
	h.warnings = append(h.warnings, fmt.Sprintf(format, args...))
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Two files of predictions are measured on the same instances, from a stream or from disk.
func TestFiles(t *testing.T) {
	data := "a 1:1\nb 1:1\nc 1:1\n"
	o := Options{Predictions: write(t, "p", "a\nb\nx\n"), Rankings: write(t, "r", "a b c\nb a c\nx c a\n"),
		Data: predict.Input{Path: write(t, "d", data)}}
	var ui heard
	r, err := Run(t.Context(), o, &ui)
	if err != nil {
		t.Fatal(err)
	}
	if r.Instances != 3 || r.Classes != 3 || math.Abs(r.MacroF1-2./3) > 1e-15 || r.P1 != 2./3 || r.Other != nil ||
		r.Hierarchy != nil {
		t.Errorf("%+v", r)
	}
	o.Data.Path, o.Data.Files = fs.Stdin, fs.Local{In: strings.NewReader(data)}
	again, err := Run(t.Context(), o, &ui)
	if err != nil || again.MicroF1 != r.MicroF1 || !reflect.DeepEqual(again.Ranking, r.Ranking) {
		t.Errorf("from a stream %+v, %v", again, err)
	}
	o = Options{Predictions: o.Predictions, Compare: write(t, "q", "b\nb\nc\n"),
		Data:      predict.Input{Path: write(t, "d", data)},
		Hierarchy: write(t, "h", "root a\nroot b\n"), ByLevel: true}
	if r, err = Run(t.Context(), o, &ui); err != nil {
		t.Fatal(err)
	}
	if s := r.SignTest; s.Plus != 2 || s.Minus != 2 || r.Other.ZeroOne != r.ZeroOne || len(r.ByLevel) != 2 {
		t.Errorf("%+v, by level %+v", r.SignTest, r.ByLevel)
	}
	outside := func(w string) bool { return strings.Contains(w, "outside the class structure") }
	if len(ui.warnings) != 3 || !slices.ContainsFunc(ui.warnings, outside) {
		t.Errorf("warnings %q", ui.warnings)
	}
}

// A file of predictions has a line for a broken row too, which is left out with the row.
func TestBrokenRows(t *testing.T) {
	for data, pred := range map[string]string{
		"A\tred\nbroken\nB\tgreen\n":               "A\n\nA\n",
		"t,l\nred,A\n\"x\nx,C\ny\" z,C\ngreen,B\n": "A\n\n\n\nA\n",
	} {
		o := Options{Predictions: write(t, "p", pred), Rankings: write(t, "r", pred), Compare: write(t, "q", pred),
			Data: predict.Input{Path: write(t, "d", data), Text: true}}
		o.Data.Table.SkipBroken = 3
		if data[0] == 't' {
			o.Data.Table.Format, o.Data.Table.Label = "csv", "l"
		}
		var ui heard
		r, err := Run(t.Context(), o, &ui)
		if err != nil || r.Instances != 2 || r.ZeroOne != 0.5 || r.P1 != 0.5 || r.SignTest.Plus+r.SignTest.Minus != 0 {
			t.Errorf("%q: %+v, %v", data, r, err)
		}
		if !slices.ContainsFunc(ui.warnings, func(w string) bool { return strings.Contains(w, "passed over") }) {
			t.Errorf("%q: warnings %q", data, ui.warnings)
		}
	}
}

func TestMistakes(t *testing.T) {
	data := write(t, "d", "a 1:1\n")
	for want, o := range map[string]Options{
		"give ‹model=DIR› or ‹pred=FILE›": {},
		"exclude each other":              {Model: "m", Predictions: "p"},
		"‹rank› goes with ‹pred›":         {Model: "m", Rankings: "r"},
		"reads the data twice":            {Predictions: "p", Compare: "q", Data: predict.Input{Path: fs.Stdin}},
		"‹by-level› needs a class":        {Predictions: data, ByLevel: true, Data: predict.Input{Path: data}},
		"‹by-size› needs a model":         {Predictions: data, BySize: true, Data: predict.Input{Path: data}},
		"‹reliability› needs ‹model›":     {Predictions: data, Reliability: "r.svg", Data: predict.Input{Path: data}},
		"‹reliability› and ‹compare›":     {Model: "m", Compare: "q", Reliability: "r.svg", Data: predict.Input{Path: data}},
		"‹reliability=-›: name a file":    {Model: "m", Reliability: "-", Data: predict.Input{Path: data}},
		"gives no probabilities": {Model: modeltest.Animals(t, 10), Reliability: "r.svg",
			Data: predict.Input{Path: data}},
		"more lines than the data has": {Predictions: write(t, "p", "a\nb\n"), Data: predict.Input{Path: data}},
		"no instance in it": {Predictions: write(t, "p", ""),
			Data: predict.Input{Path: write(t, "d", "# none\n")}},
	} {
		if _, err := Run(t.Context(), o, progress.Discard{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
