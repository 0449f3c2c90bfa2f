package measure

import (
	"reflect"
	"strings"
	"testing"
)

// Worked out by hand: single labels, several, none given, none true.
func TestClasses(t *testing.T) {
	a, err := NewAccumulator(Options{Classes: []string{"c", "a"}, PerClass: true, Confusion: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][2]string{{"a", "a"}, {"a", "b, x"}, {"a", "b, x"}, {"a c", "c"}, {"", "c"}, {"a c", "b, x c"},
		{"a", ""}} {
		cut := func(s string) []string {
			out := strings.Fields(strings.ReplaceAll(s, "b, x", "B"))
			for i := range out {
				out[i] = strings.ReplaceAll(out[i], "B", "b, x")
			}
			return out
		}
		a.AddNames(cut(row[0]), cut(row[1]), nil)
	}
	r := a.Result()
	if want := []Class{{"c", 2, 3, 2. / 3, 1, 0.8}, {"a", 6, 1, 1, 1. / 6, 2. / 7}}; !reflect.DeepEqual(r.PerClass, want) {
		t.Errorf("%+v, want %+v", r.PerClass, want)
	}
	var b strings.Builder
	if err := r.WriteConfusion(&b); err != nil {
		t.Fatal(err)
	}
	const want = "true,predicted,instances\na,\"b, x\",3\na,,2\nc,c,2\n,c,1\na,a,1\n"
	if b.String() != want {
		t.Errorf("%s, want %s", b.String(), want)
	}
}
