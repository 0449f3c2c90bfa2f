package taxonomy

import (
	"fmt"
	"strings"
	"testing"
)

// draw formats a tree with one node per line, indented by depth: name, kind, label.
func draw(t *Tree) string {
	var b strings.Builder
	for n := range t.Len() {
		name := t.Name[n]
		switch t.Kind[n] {
		case Spawned:
			name = "+" + name
		case Virtual:
			name = "*"
		}
		if t.Leaf[n] {
			name += "!"
		}
		fmt.Fprintf(&b, "%s%s", strings.Repeat(".", int(t.Depth[n])), name)
		if t.Label[n] >= 0 {
			fmt.Fprintf(&b, ":%d", t.Label[n])
		}
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

func mustRead(tb testing.TB, text string) *Structure {
	tb.Helper()
	s, _, err := Read(strings.NewReader(text), "test")
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// TestBuildByHand compares trees with cases worked out by hand. "!" marks terminals, "+" spawned
// leaves, "*" the virtual root, dots the depth, ":l" the label. labels are "name=count".
func TestBuildByHand(t *testing.T) {
	cases := []struct {
		name, edges, labels string
		prune               Prune
		want                string
		warn                string
	}{
		{"plain tree", "r a\nr b\na c\na d\n", "d=1 b=2 c=3", PruneEmpty,
			"r .a ..c!:2 ..d!:0 .b!:1", ""},
		{"labels at internal nodes and at the root", "r a\na b\n", "r=1 a=1 b=1", PruneEmpty,
			"r:0 .+r!:0 .a:1 ..+a!:1 ..b!:2", ""},
		{"labelled internal node, children pruned: chain of two", "r a\na b\na c\nr d\n", "a=4 d=1", PruneEmpty,
			"r .a:0 ..+a!:0 .d!:1", ""},
		{"the same, nothing pruned", "r a\na b\na c\nr d\n", "a=4 d=1", PruneNone,
			"r .a:0 ..+a!:0 ..b! ..c! .d!:1", ""},
		{"internal node without terminals goes too", "r a\na b\nr c\nb e\n", "c=1", PruneEmpty,
			"r .c!:0", ""},
		{"label without positives: leaf pruned", "r a\nr b\n", "a=1 b=0", PruneEmpty,
			"r .a!:0", ""},
		{"label without positives: leaf kept", "r a\nr b\n", "a=1 b=0", PruneNone,
			"r .a!:0 .b!:1", ""},
		{"label without positives at an internal node spawns nothing", "r a\na b\n", "a=0 b=1", PruneNone,
			"r .a:0 ..b!:1", ""},
		{"deep chain, only the end labelled", "a b\nb c\nc d\n", "d=1", PruneEmpty,
			"a .b ..c ...d!:0", ""},
		{"deep chain, only the middle labelled", "a b\nb c\nc d\n", "b=1", PruneEmpty,
			"a .b:0 ..+b!:0", ""},
		{"forest", "a x\nb y\n", "y=1 x=1", PruneEmpty,
			"* .a ..x!:1 .b ..y!:0", ""},
		{"forest of which pruning leaves one root", "a x\nb y\n", "y=1", PruneEmpty,
			"b .y!:0", ""},
		{"forest, nothing pruned", "a x\nb y\n", "y=1", PruneNone,
			"* .a ..x! .b ..y!:0", ""},
		{"labels outside", "r a\n", "q=1 a=1 p=2", PruneEmpty,
			"* .r ..a!:1 .q!:0 .p!:2", `labels that are not in the structure, joined under a virtual root: 2 ("q", "p")`},
		{"one label outside and nothing else left", "r a\n", "q=1", PruneEmpty,
			"q!:0", `labels that are not in the structure, joined under a virtual root: 1 ("q")`},
		{"label outside without positives", "r a\n", "q=0 a=1", PruneEmpty,
			"r .a!:1", ""},
		{"children in file order, whatever the names' order", "z b\nr z\nr y\nz a\n", "a=1 b=1 y=1", PruneEmpty,
			"r .z ..b!:1 ..a!:0 .y!:2", ""},
		{"flat", "", "b=1 a=2", PruneEmpty, "b!:0 a!:1", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var s *Structure
			if c.edges != "" {
				s = mustRead(t, c.edges)
			}
			labels, counts := parseLabels(c.labels)
			tree, warnings, err := Build(s, labels, counts, c.prune)
			if err != nil {
				t.Fatal(err)
			}
			if got := draw(tree); got != c.want {
				t.Errorf("tree\n got %s\nwant %s", got, c.want)
			}
			if got := strings.Join(warnings, "; "); got != c.warn {
				t.Errorf("warnings\n got %s\nwant %s", got, c.warn)
			}
		})
	}
}

func parseLabels(text string) (labels []string, counts []int) {
	for f := range strings.FieldsSeq(text) {
		name, count, _ := strings.Cut(f, "=")
		n := 0
		fmt.Sscan(count, &n)
		labels, counts = append(labels, name), append(counts, n)
	}
	return labels, counts
}

func TestBuildRefuses(t *testing.T) {
	tree := mustRead(t, "r a\nr b\n")
	cases := []struct {
		name   string
		s      *Structure
		labels string
		want   string
	}{
		{"no positive", tree, "a=0", "no instance has a label"},
		{"no label", nil, "", "no instance has a label"},
		{"DAG", mustRead(t, "r a\nr b\na c\nb c\n"), "c=1", `"c" has two parents, "a" and "b" (‹dag=first-parent›`},
		{"cycle", &Structure{Names: []string{"a", "b"}, Parents: []uint32{0, 1}, Children: []uint32{1, 0}}, "a=1", "cycle: "},
		{"edge twice", &Structure{Names: []string{"a", "b"}, Parents: []uint32{0, 0}, Children: []uint32{1, 1}}, "a=1",
			"occurs twice"},
		{"self-loop", &Structure{Names: []string{"a"}, Parents: []uint32{0}, Children: []uint32{0}}, "a=1", "its own parent"},
		{"index", &Structure{Names: []string{"a"}, Parents: []uint32{0}, Children: []uint32{7}}, "a=1", "beyond its 1 nodes"},
		{"lengths", &Structure{Names: []string{"a"}, Parents: []uint32{0}}, "a=1", "1 parents but 0 children"},
		{"name twice", &Structure{Names: []string{"a", "a"}}, "a=1", `named "a"`},
		{"no name", &Structure{Names: []string{""}}, "a=1", "no name"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			labels, counts := parseLabels(c.labels)
			_, _, err := Build(c.s, labels, counts, PruneEmpty)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
	if _, _, err := Build(nil, []string{"a"}, nil, PruneEmpty); err == nil {
		t.Error("labels without counts went through")
	}
}

// TestBuildDeepChain checks that a chain of a million nodes neither overflows the stack nor takes
// quadratic time.
func TestBuildDeepChain(t *testing.T) {
	const n = 1_000_000
	s := &Structure{Names: make([]string, n)}
	for i := range n {
		s.Names[i] = fmt.Sprint(i)
		if i > 0 {
			s.Parents, s.Children = append(s.Parents, uint32(i-1)), append(s.Children, uint32(i))
		}
	}
	tree, _, err := Build(s, []string{fmt.Sprint(n - 1)}, []int{1}, PruneEmpty)
	if err != nil {
		t.Fatal(err)
	}
	if tree.Len() != n || tree.MaxDepth() != n-1 || !tree.Leaf[n-1] {
		t.Errorf("%d nodes, depth %d", tree.Len(), tree.MaxDepth())
	}
	if end := tree.SubtreeEnd(); end[0] != n || end[n-1] != n {
		t.Errorf("subtree ends %d and %d", end[0], end[n-1])
	}
}
