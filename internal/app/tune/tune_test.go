package tune

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
)

func TestMain(m *testing.M) {
	// heaps are small here: the collector would run all the time
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

func TestThin(t *testing.T) {
	if fewer, single := CountRareLabels([]int{0, 1, 3, 5}, 4); fewer != 2 || single != 1 {
		t.Error(fewer, single)
	}
}

func TestPaths(t *testing.T) {
	g := Grid{Methods: []string{"rr-svm", "bsvm", "rr-lr"}, Values: map[string][]string{"loss": {"hinge"},
		"bias": {"0", "1"}, "positive-weight": {"1", "1.0"},
		"internal-weight": {"1", "3"}, "C": {"10", "1", "1"}}}
	paths := g.Paths(method.Structured)
	if len(paths) != 4+2+4 {
		// the weight of internal edges means nothing to bsvm, 1.0 is 1
		t.Fatalf("%d paths", len(paths))
	}
	if flat := g.Paths(method.Anything); len(flat) != 6+2+6 { // a learned hierarchy has internal edges, none has not
		t.Errorf("%d paths without a structure", len(flat))
	}
	names := map[string]bool{}
	for _, p := range paths {
		if len(p) != 2 || p[0].Base.C() != 1 || p[1].Base.C() != 10 || p[0].Base.Path() != p[1].Base.Path() {
			t.Errorf("path %v", p)
		}
		names[p[0].Base.Name()], names[p[1].Base.Name()] = true, true
	}
	if len(names) != 20 || paths[6][0].Base.Values["loss"] != "logistic" {
		t.Errorf("names %v", names)
	}
	// A point has no option that its method lacks.
	g.Methods, g.Values["positive-weight"], g.Values["prior-shift"] = []string{"td", "mlr"}, []string{"1", "2"},
		[]string{"0", "0.5"}
	if n := len(g.Paths(method.Structured)); n != 4+2 {
		t.Errorf("%d paths", n)
	}
	for _, p := range g.Paths(method.Structured) {
		b := p[0].Base
		if b.Values["internal-weight"] != "" || b.Method == "mlr" && (b.Values["positive-weight"] != "" ||
			b.Values["loss"] != "softmax") {
			t.Errorf("%+v", b)
		}
		if want := map[string]int{"td": 1, "mlr": 2}[b.Method]; len(p[0].Points) != want || b.Shift() != 0 {
			t.Errorf("%s: %d shifts on %+v", b.Method, len(p[0].Points), b)
		}
	}
}

// TestPointAsJSON: a point's keys are those of manifests, its values of their types, and they
// read back.
func TestPointAsJSON(t *testing.T) {
	g := Grid{Methods: []string{"rr-svm"}, Values: map[string][]string{"C": {"0.1"}, "anchor": {"0.5", "2"},
		"positive-weight": {"balanced"}}}
	paths := g.Paths(method.Graphs)
	if len(paths) != 2 {
		t.Fatalf("%d paths of two anchors", len(paths))
	}
	p, back := paths[1][0].Base, Point{}
	text, err := json.Marshal(p)
	want := `{"method":"rr-svm","loss":"hinge","C":0.1,"bias":1,"families":"none","anchor":2,"positive_weight":"balanced","internal_weight":1,"edge_weights":"even","cost_by":"class","bias_pull":"parent","prior_shift":0}`
	if err != nil || string(text) != want {
		t.Errorf("%s (%v), want %s", text, err, want)
	}
	if err := json.Unmarshal(text, &back); err != nil || !back.Equal(p) || back.Equal(paths[0][0].Base) {
		t.Errorf("read back as %+v (%v)", back, err)
	}
	if p.Name() != "rr-svm-anchor=2-positive-weight=balanced-C0.1" {
		t.Errorf("named %s", p.Name())
	}
	if tree := g.Paths(method.Structured); len(tree) != 1 || tree[0][0].Base.Values["anchor"] != "0.01" {
		t.Errorf("on a tree: %v", tree)
	}
}

func TestChoice(t *testing.T) {
	s := NewScore(0.5, []float64{0.4, 0.5, 0.6})
	if s.Value != 0.5 || math.Abs(s.Spread-0.1/math.Sqrt(3)) > 1e-15 { // sd 0.1, over sqrt(3)
		t.Errorf("%+v", s)
	}
	up := []Score{{0.2, 0.1}, {0.71, 0.1}, {0.8, 0.1}, {0.8, 0.1}, {0.65, 0.1}, {0.6, 0.1}}
	all := []int{0, 1, 2, 3, 4, 5}
	down := make([]Score, len(up))
	for i, s := range up {
		down[i] = Score{-s.Value, s.Spread}
	}
	for low, scores := range map[bool][]Score{false: up, true: down} {
		if b := OneStandardError(scores, 2, all, low); b != 1 {
			t.Errorf("one standard error: %d", b)
		}
	}
}

func TestSketch(t *testing.T) {
	text := Sketch([]Mark{{0.01, Score{0.5, 0.01}}, {1, Score{0.7, 0.02}}, {100, Score{0.6, 0}}}, "micro_f1", 1)
	lines := strings.Split(text, "\n")
	if len(lines) != sketchHeight+3 || strings.Count(text, "*") != 1 || strings.Count(text, "o") < 2 ||
		!strings.Contains(lines[sketchHeight+1], "0.01") {
		t.Errorf("\n%s", text)
	}
	Sketch([]Mark{{1, Score{0.5, 0}}}, "x", 1) // one value alone has no range
}

// TestDraw: the picture is XML that names each path, has an error bar and a circle for each point,
// and a ring around the chosen one.
func TestDraw(t *testing.T) {
	at := Point{Method: "rr-svm", Values: registry.Values{"loss": "hinge", "C": "1"}}
	lines := []Line{
		{at.Path(), []Mark{{0.01, Score{0.5, 0.01}}, {1, Score{0.7, 0.02}}}},
		{"other <&>", []Mark{{1, Score{0.6, 0}}}}, // a path that ended at once
	}
	var b bytes.Buffer
	if err := Draw(&b, "micro_f1", lines, at); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	texts := map[string]bool{}
	for d := xml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, b.String())
		}
		switch x := token.(type) {
		case xml.StartElement:
			count[x.Name.Local]++
		case xml.CharData:
			texts[string(x)] = true
		}
	}
	if count["circle"] != 3+1+1 || count["g"] != 2 { // points, ring, and the legend's
		t.Errorf("%v in %s", count, b.String())
	}
	for _, want := range []string{at.Path(), "other <&>", "chosen", "C", "micro_f1", "0.01", "0.1", "1"} {
		if !texts[want] {
			t.Errorf("no text %q in %s", want, b.String())
		}
	}
	if err := Draw(&b, "micro_f1", []Line{{"one", []Mark{{1, Score{0.5, 0}}}}}, at); err != nil ||
		strings.Contains(b.String(), "NaN") {
		t.Errorf("one point: %v, %s", err, b.String())
	}
}
