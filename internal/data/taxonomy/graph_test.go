package taxonomy

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func readGraph(t *testing.T, text string) (*Structure, []string) {
	t.Helper()
	s, warnings, err := ReadGraph(strings.NewReader(text), "g")
	if err != nil {
		t.Fatal(err)
	}
	return s, warnings
}

func TestReadGraph(t *testing.T) {
	s, warnings := readGraph(t, "a b\nb a\n# no edge\nc c\na b\nb c\n")
	if len(s.Parents) != 2 || len(s.Names) != 3 {
		t.Errorf("edges %v %v of %v", s.Parents, s.Children, s.Names)
	}
	want := "g: edges dropped: 2 repeated edges and 1 self-loop (the first in line 2)"
	if len(warnings) != 1 || warnings[0] != want {
		t.Errorf("warnings %q", warnings)
	}
	for _, bad := range []string{"", "# nothing\n", "a a\n", "a b c\n", "a,x b\n"} {
		if _, _, err := ReadGraph(strings.NewReader(bad), "g"); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if _, _, err := Read(strings.NewReader("a b\nb a\n"), "g"); err == nil || !strings.Contains(err.Error(), "‹graph") {
		t.Errorf("a graph given as hierarchy: %v", err)
	}
}

func TestBuildGraph(t *testing.T) {
	s, _ := readGraph(t, "a b\nb p\np q\nc q\n")
	g, warnings, err := BuildGraph(s, []string{"c", "b", "a", "out", "none"}, []int{1, 1, 2, 3, 0})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "p", "q", "c", "out", "a,b"}; !slices.Equal(g.Name, want) {
		t.Errorf("names %v, want %v", g.Name, want)
	}
	if g.Kind[6] != Dummy || g.Leaf[6] || !g.Leaf[0] || g.Leaf[2] || !g.Leaf[5] || g.Label[4] != 0 || g.Label[5] != 3 {
		t.Errorf("kinds %v, terminals %v, labels %v", g.Kind, g.Leaf, g.Label)
	}
	for n, want := range [][]int32{{6}, {2, 6}, {1, 3}, {2, 4}, {3}, nil, {0, 1}} {
		if got := g.Adjacent.Of(int32(n)); !slices.Equal(got, want) {
			t.Errorf("neighbours of %s: %v, want %v", g.Name[n], got, want)
		}
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], `1 ("out")`) {
		t.Errorf("warnings %q", warnings)
	}
}

// TestGraphColours checks that no colouring gives both ends of an edge the same colour, that all
// nodes have one, and that no two terminals are neighbours.
func TestGraphColours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 25).Draw(t, "nodes")
		s := &Structure{}
		for i := range n {
			s.Names = append(s.Names, string(rune('a'+i)))
		}
		for range rapid.IntRange(1, 60).Draw(t, "edges") {
			s.Parents = append(s.Parents, uint32(rapid.IntRange(0, n-1).Draw(t, "a")))
			s.Children = append(s.Children, uint32(rapid.IntRange(0, n-1).Draw(t, "b")))
		}
		counts := make([]int, n)
		for i := range counts {
			counts[i] = rapid.IntRange(0, 1).Draw(t, "count")
		}
		counts[0] = 1
		g, _, err := BuildGraph(s, s.Names, counts)
		if err != nil {
			t.Fatal(err)
		}
		for _, by := range []Colouring{LargestFirst, SmallestLast, DSATUR} {
			colour := make([]int, g.Len())
			seen := 0
			for c, nodes := range g.Colours(by) {
				for _, v := range nodes {
					colour[v] = c + 1
					seen++
				}
			}
			if seen != g.Len() || slices.Contains(colour, 0) {
				t.Fatalf("%d of %d nodes coloured", seen, g.Len())
			}
			for v := range g.Len() {
				for _, w := range g.Adjacent.Of(int32(v)) {
					if colour[v] == colour[w] || g.Leaf[v] && g.Leaf[w] {
						t.Fatalf("colouring %d: edge %d-%d", by, v, w)
					}
				}
			}
		}
	})
}

// TestCrown checks that smallest-last and DSATUR colour a crown graph, for which a greedy order can
// need many colours, with two.
func TestCrown(t *testing.T) {
	s := &Structure{}
	for i := range 5 {
		s.Names = append(s.Names, "a"+string(rune('0'+i)), "b"+string(rune('0'+i)))
	}
	for i := range 5 {
		for j := range 5 {
			if i != j {
				s.Parents, s.Children = append(s.Parents, uint32(2*i)), append(s.Children, uint32(2*j+1))
			}
		}
	}
	g, _, err := BuildGraph(s, []string{"other"}, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(g.Colours(DSATUR)); got != 2 {
		t.Errorf("DSATUR: %d colours", got)
	}
}

func FuzzReadGraph(f *testing.F) {
	f.Add("a b\nb c\n")
	f.Add("a a\n\xff b")
	f.Fuzz(func(t *testing.T, text string) {
		s, _, err := ReadGraph(strings.NewReader(text), "g")
		if err == nil {
			if _, _, err := BuildGraph(s, s.Names[:1], []int{1}); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestIsReversed recognises a tree with its columns swapped, and no ordinary tree, chain or DAG.
func TestIsReversed(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	for _, test := range []struct {
		name              string
		parents, children []uint32
		want              bool
	}{
		{"tree", []uint32{0, 0, 1}, []uint32{1, 2, 3}, false},
		{"swapped tree", []uint32{1, 2, 3}, []uint32{0, 0, 1}, true},
		{"chain", []uint32{0, 1, 2}, []uint32{1, 2, 3}, false},
		{"dag", []uint32{0, 0, 1, 2}, []uint32{1, 2, 3, 3}, false},
		{"nothing", nil, nil, false},
	} {
		s := &Structure{Names: names, Parents: test.parents, Children: test.children}
		if got := s.IsReversed(); got != test.want {
			t.Errorf("%s: reversed %t, want %t", test.name, got, test.want)
		}
	}
}
