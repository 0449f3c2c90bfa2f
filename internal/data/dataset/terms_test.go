package dataset

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const termDocuments = "b,a\tred apples\na\tgreen apples\nc\tgreen boats\n"

// labelText writes files of texts about labels.
func labelText(t *testing.T, contents ...string) (l LabelText) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range contents {
		l.Paths = append(l.Paths, filepath.Join(dir, string(rune('1'+i))+".csv"))
		if err := os.WriteFile(l.Paths[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// TestTermsAreRows: terms are the last rows, as if they were written as documents, but for the idf;
// a class that only a term names is one; repeated and empty terms are counted and left out.
func TestTermsAreRows(t *testing.T) {
	l := labelText(t, "d\tboats\nc\tred boats\n", "d\tboats\na\t \nd\tships of boats\n")
	s := ingestPath(t, "docs.txt", termDocuments, Options{Text: true, LabelText: l})
	if want := []Term{{3, "boats"}, {2, "red boats"}, {3, "ships of boats"}}; !slices.Equal(s.Terms, want) {
		t.Errorf("terms %v, want %v", s.Terms, want)
	}
	if s.Documents() != 3 || s.Stats.Terms != 3 || s.Stats.EmptyTerms != 1 || s.Stats.RepeatedTerms != 1 ||
		s.Weight != nil {
		t.Errorf("%d documents, weights %v, %+v", s.Documents(), s.Weight, s.Stats)
	}
	if want := []int{1, 2, 1, 0}; !slices.Equal(s.LabelSizes(), want) || s.Labels[3] != "d" {
		t.Errorf("sizes %v of %v, want %v", s.LabelSizes(), s.Labels, want)
	}
	rows := ingestPath(t, "docs.txt", termDocuments+"d\tboats\nc\tred boats\nd\tships of boats\n", Options{Text: true})
	if !reflect.DeepEqual(s.Labels, rows.Labels) || !slices.Equal(s.LabelIndex, rows.LabelIndex) ||
		!slices.Equal(s.Vocabulary, rows.Vocabulary) || !slices.Equal(s.FeatureRows, rows.FeatureRows) {
		t.Errorf("%v %v %v, as documents %v %v %v", s.LabelIndex, s.Vocabulary, s.FeatureRows, rows.LabelIndex,
			rows.Vocabulary, rows.FeatureRows)
	}
	for i := range s.Matrix.Rows {
		index, _ := s.Matrix.Row(i)
		if want, _ := rows.Matrix.Row(i); !slices.Equal(index, want) {
			t.Errorf("row %d: %v, as a document %v", i, index, want)
		}
	}
	boats := slices.Index(s.Vocabulary, "boats")
	if s.IDF[boats] != ln(3) {
		t.Errorf("idf %g, want %g", s.IDF[boats], ln(3))
	}
	if sub := s.Subset([]uint32{0, 2, 4}); !slices.Equal(sub.Terms, s.Terms[1:2]) || sub.Documents() != 2 ||
		!slices.Equal(sub.LabelSizes(), []int{1, 1, 1, 0}) {
		t.Errorf("subset: %v, sizes %v", sub.Terms, sub.LabelSizes())
	}
}

// TestTermsOfTables: columns of a table are the same terms.
func TestTermsOfTables(t *testing.T) {
	lines := labelText(t, "d\tboats, red\nc\tred boats\n")
	cells := labelText(t, "note,class,name\n,d,\"boats, red\"\n1,c,red boats\n")
	cells.Columns = []string{"class", "name"}
	a := ingestPath(t, "docs.txt", termDocuments, Options{Text: true, LabelText: lines})
	b := ingestPath(t, "docs.txt", termDocuments, Options{Text: true, LabelText: cells})
	if a.Fingerprint != b.Fingerprint || len(a.Terms) != 2 {
		t.Errorf("%v and %v", a.Terms, b.Terms)
	}
}

// TestWeightsOfTerms: terms have their weight, documents their own or 1.
func TestWeightsOfTerms(t *testing.T) {
	l := labelText(t, "d\tboats\n")
	l.Weight = 0.25
	s := ingestPath(t, "docs.txt", termDocuments, Options{Text: true, LabelText: l})
	if want := []float64{1, 1, 1, 0.25}; !slices.Equal(s.Weight, want) || s.Stats.Weight != 3.25 {
		t.Errorf("weights %v of %g, want %v", s.Weight, s.Stats.Weight, want)
	}
	weights := filepath.Join(t.TempDir(), "w")
	if err := os.WriteFile(weights, []byte("2\n0\n3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Weight = 0
	s = ingestPath(t, "docs.txt", termDocuments, Options{Text: true, LabelText: l, Weights: weights})
	if want := []float64{2, 3, 1}; !slices.Equal(s.Weight, want) || s.Documents() != 2 {
		t.Errorf("weights %v, want %v", s.Weight, want)
	}
}

// TestWrongTerms: errors name the file and the line.
func TestWrongTerms(t *testing.T) {
	set := filepath.Join(t.TempDir(), "set")
	for want, c := range map[string]struct {
		text string
		l    LabelText
		svm  bool
	}{
		"1.csv:2: 2 labels":       {text: "a\tx\na,b\tx\n"},
		"1.csv:1: 0 labels":       {text: "\tx\n"},
		"1.csv:2: no tab":         {text: "a\tx\na x\n"},
		"‹label-text› is for tex": {text: "a\tx\n", svm: true},
		"two columns":             {text: "a\tx\n", l: LabelText{Columns: []string{"a"}}},
		"‹label-weight=-1›":       {text: "a\tx\n", l: LabelText{Weight: -1}},
	} {
		l := labelText(t, c.text)
		l.Columns, l.Weight = c.l.Columns, c.l.Weight
		path := filepath.Join(t.TempDir(), "docs")
		text := termDocuments
		if c.svm {
			text = "a 1:1\n"
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Ingest(t.Context(), Options{Paths: []string{path}, Out: set, Text: !c.svm, LabelText: l})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if err := (&LabelText{Weight: 2}).Check(true); err == nil || !strings.Contains(err.Error(), "‹label-weight›") {
		t.Errorf("a weight of no terms: %v", err)
	}
}

// TestDamagedTerms: a file of terms that is not that of the rows is refused.
func TestDamagedTerms(t *testing.T) {
	s := ingestPath(t, "docs.txt", termDocuments, Options{Text: true, LabelText: labelText(t, "d\tboats\n")})
	o := &opener{set: s, m: &manifest{Stats: s.Stats}, files: map[string][]byte{termsFile: []byte("1\tboats\n")}}
	if err := o.readTerms(); err != nil || o.checkTerms() == nil {
		t.Errorf("a term of another label: %v", err)
	}
	o.files[termsFile] = []byte("9\tboats\n")
	if o.readTerms() == nil {
		t.Error("a term of no label")
	}
}
