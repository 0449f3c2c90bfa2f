package generate

import (
	"bufio"
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func small(t testing.TB, name string, scale float64) Shape {
	s, err := Like(name, scale)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// document is a parsed line.
type document struct {
	labels []string
	index  []int
	value  []float64
}

func parse(t testing.TB, line string) (d document) {
	fields := strings.Fields(line)
	d.labels = strings.Split(fields[0], ",")
	for _, f := range fields[1:] {
		i, v, _ := strings.Cut(f, ":")
		index, err1 := strconv.Atoi(i)
		value, err2 := strconv.ParseFloat(v, 64)
		if err1 != nil || err2 != nil {
			t.Fatal(f)
		}
		d.index, d.value = append(d.index, index), append(d.value, value)
	}
	return d
}

func documents(t testing.TB, g *Source, n int, test bool) (out []document) {
	m := maker{g: g}
	for i := range n {
		out = append(out, parse(t, string(m.row(nil, i, test))))
	}
	return out
}

// TestShapeOfData generates a hundredth of lwiki and checks the documented laws.
func TestShapeOfData(t *testing.T) {
	s := small(t, "lwiki", 0.01)
	g, err := New(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	docs := documents(t, g, s.Instances, false)
	sizes, first, df := map[string]int{}, map[string]int{}, map[int]int{}
	var labels, nonzeros int
	for _, d := range docs {
		labels += len(d.labels)
		nonzeros += len(d.index)
		first[d.labels[0]]++
		for _, l := range d.labels {
			sizes[l]++
		}
		norm := 0.0
		for k, i := range d.index {
			df[i]++
			norm += d.value[k] * d.value[k]
			if i < 1 || i > s.Features || k > 0 && i <= d.index[k-1] || d.value[k] <= 0 {
				t.Fatalf("features %v", d.index)
			}
		}
		if math.Abs(norm-1) > 1e-2 {
			t.Fatalf("a row of square length %v", norm)
		}
	}
	within(t, "labels an instance", float64(labels)/float64(len(docs)), s.Labels, 0.08)
	within(t, "nonzeros an instance", float64(nonzeros)/float64(len(docs)), s.Nonzeros, 0.05)
	if len(sizes) != s.Classes || len(first) != s.Classes {
		t.Errorf("%d classes of %d, %d as first labels", len(sizes), s.Classes, len(first))
	}
	for c, n := range g.Sizes {
		if first["c"+strconv.Itoa(c)] != int(n) {
			t.Fatalf("class %d is the first label of %d, want %d", c, first["c"+strconv.Itoa(c)], n)
		}
	}
	bySize, byWord := falling(sizes), falling(df)
	within(t, "exponent of class sizes", slope(bySize, 11, 20, len(bySize)/4), -0.75, 0.15)
	// beyond the most frequent fiftieth, which no topic has, and the words of every other row
	within(t, "exponent of words", slope(byWord, 4, 2000, 10000), -1, 0.1)
	if used := float64(len(df)) / float64(s.Features); used < 0.7 {
		t.Errorf("only %v of the features occur", used)
	}
}

// TestShapeOfTree checks node counts, depth and the law of the numbers of children.
func TestShapeOfTree(t *testing.T) {
	s := small(t, "lwiki", 0.1)
	tree := NewTree(s, 1)
	children := map[int32]int{}
	depth := make([]int, len(tree.Parent))
	deepest := 0
	for n := 1; n < len(tree.Parent); n++ {
		p := tree.Parent[n]
		if int(p) >= n || int(p) >= tree.Internals {
			t.Fatalf("node %d has parent %d", n, p)
		}
		depth[n] = depth[p] + 1
		deepest = max(deepest, depth[n])
		children[p]++
	}
	if len(tree.Parent) != 47802 || len(children) != tree.Internals {
		t.Errorf("%d nodes, %d of %d inner nodes with children", len(tree.Parent), len(children), tree.Internals)
	}
	if deepest < 10 || deepest > 30 {
		t.Errorf("depth %d", deepest)
	}
	// a density of exponent 7/3 corresponds to a rank law of exponent -3/4
	within(t, "exponent of children", slope(falling(children), 1, 10, 500), -0.75, 0.25)
	s.Depth = 5
	if tree = NewTree(s, 1); slices.ContainsFunc(tree.Parent[tree.Internals:], func(p int32) bool {
		d := 1
		for ; p > 0; p = tree.Parent[p] {
			d++
		}
		return d > 5
	}) {
		t.Error("deeper than asked for")
	}
}

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > math.Abs(want)*tolerance {
		t.Errorf("%s: %.3f, want %.3f", what, got, want)
	}
}

func falling[K comparable](counts map[K]int) []int {
	var out []int
	for _, n := range counts {
		out = append(out, n)
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out
}

// slope fits log count to log(rank+shift) over ranks lo..hi.
func slope(counts []int, shift float64, lo, hi int) float64 {
	var n, sx, sy, sxx, sxy float64
	for r := lo; r < hi; r++ {
		x, y := math.Log(float64(r)+shift), math.Log(float64(counts[r]))
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// TestRelativesShareWords checks that classes with a common parent are closer than others, so that
// a hierarchy helps.
func TestRelativesShareWords(t *testing.T) {
	for _, dag := range []bool{false, true} {
		s := small(t, "lwiki", 0.003)
		s.DAG = dag
		g, err := New(s, 1)
		if err != nil {
			t.Fatal(err)
		}
		share := func(a, b int32) (n float64) {
			for slot := range slots {
				if g.topics.word(a, slot) == g.topics.word(b, slot) {
					n++
				}
			}
			return n / slots
		}
		var near, far, pairs float64
		in := int32(g.Tree.Internals)
		for a := in; a < in+400; a++ {
			for b := a + 1; b < in+400; b++ {
				if g.Tree.Parent[a] == g.Tree.Parent[b] {
					pairs++
					near += share(a, b)
					far += share(a, (a*7919)%400+in)
				}
			}
		}
		if pairs < 20 || near < 1.5*far || near/pairs < 0.2 {
			t.Errorf("DAG %v: %v pairs, siblings share %.3f, others %.3f", dag, pairs, near/pairs, far/pairs)
		}
	}
}

func TestShuffleIsPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 500).Draw(t, "n")
		s := newShuffle(n, rapid.Uint64().Draw(t, "seed"))
		seen := make([]bool, n)
		for i := range n {
			j := s.at(i)
			if j < 0 || j >= n || seen[j] {
				t.Fatalf("%d -> %d of %d", i, j, n)
			}
			seen[j] = true
		}
	})
}

func TestSizesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Shape{Classes: rapid.IntRange(2, 300).Draw(t, "classes")}
		s.Instances = s.Classes + rapid.IntRange(0, 5000).Draw(t, "more")
		sum := 0
		for _, n := range Sizes(s, 1) {
			if n < 1 {
				t.Fatalf("a class of %d", n)
			}
			sum += int(n)
		}
		if sum != s.Instances {
			t.Fatalf("%d of %d instances", sum, s.Instances)
		}
	})
}

// TestWriteIsDeterministic checks that the bytes depend on the seed but not on threads, that a
// foreign folder is not replaced, and that the edges of a DAG lead from smaller to larger numbers.
func TestWriteIsDeterministic(t *testing.T) {
	s := small(t, "lwiki", 0.001)
	s.DAG = true
	write := func(seed uint64, threads int) (train []byte, dir string) {
		dir = filepath.Join(t.TempDir(), "out")
		r, err := Write(context.Background(), Options{Shape: s, Seed: seed, Out: dir, Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		var all []byte
		for _, name := range []string{TrainFile, TestFile, HierarchyFile} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b...)
		}
		if r.Bytes != int64(len(all)) || r.Nodes != 478 {
			t.Errorf("report %+v, %d bytes", r, len(all))
		}
		return all, dir
	}
	one, dir := write(1, 1)
	if three, _ := write(1, 3); !bytes.Equal(one, three) {
		t.Error("threads change what is made")
	}
	if other, _ := write(2, 3); bytes.Equal(one, other) {
		t.Error("the seed changes nothing")
	}
	f, err := os.Open(filepath.Join(dir, HierarchyFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := 0
	for in := bufio.NewScanner(f); in.Scan(); lines++ {
		if words := strings.Fields(in.Text()); len(words) != 2 || words[0][0] != 'n' {
			t.Fatalf("edge %q", in.Text())
		}
	}
	if lines < 600 {
		t.Errorf("%d edges of a DAG of 478 nodes", lines)
	}
	if err := os.Remove(filepath.Join(dir, ShapeFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(context.Background(), Options{Shape: s, Out: dir, Replace: true}); err == nil {
		t.Error("a folder of other things was replaced")
	}
}

func TestRefusedShapes(t *testing.T) {
	if _, err := Like("wiki", 1); err == nil || !strings.Contains(err.Error(), "lwiki") {
		t.Errorf("error %v", err)
	}
	if _, err := Like("lwiki", 0); err == nil {
		t.Error("scale 0 was taken")
	}
	for _, change := range []func(*Shape){
		func(s *Shape) { s.Instances = 0 }, func(s *Shape) { s.Classes = 1 }, func(s *Shape) { s.Classes = s.Instances + 1 },
		func(s *Shape) { s.Internals = s.Classes + 1 }, func(s *Shape) { s.Features = 1 },
		func(s *Shape) { s.Nonzeros = math.NaN() },
		func(s *Shape) { s.Labels = 0.5 }, func(s *Shape) { s.Depth = -1 }, func(s *Shape) { s.MoreParent = -1 },
	} {
		s := small(t, "lwiki", 0.001)
		if change(&s); s.Validate() == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}

func BenchmarkRows(b *testing.B) {
	g, err := New(small(b, "lwiki", 0.1), 1)
	if err != nil {
		b.Fatal(err)
	}
	m := maker{g: g}
	var out []byte
	n := 0
	for i := 0; b.Loop(); i++ {
		out = m.row(out[:0], i%g.Shape.Instances, false)
		n += len(out)
	}
	b.SetBytes(int64(n / b.N))
}
