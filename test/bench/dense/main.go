// Command dense generates dense data like those of proteins: classes in families of families, most
// of them tiny. A large class lies near its family's direction, a tiny one in a direction of its
// own. Equal flags and seeds give equal bytes.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
)

func main() {
	var (
		out      = flag.String("out", "", "folder to write train.svm, test.svm, hierarchy.txt and graph.txt to")
		seed     = flag.Uint64("seed", 1, "seed")
		folds    = flag.Int("folds", 60, "nodes below the root")
		families = flag.Int("families", 350, "nodes below those; 0: classes stand below the folds")
		classes  = flag.Int("classes", 1400, "classes below those")
		rows     = flag.Int("rows", 9000, "training rows, about")
		tests    = flag.Int("tests", 4000, "test rows, about")
		columns  = flag.Int("columns", 100, "features")
		shared   = flag.Float64("shared", 0.6, "length of a node's own direction, of which a class's is 1")
		near     = flag.Float64("near", 0.2, "how near to its family's direction a tiny class lies; large ones: 1")
		noise    = flag.Float64("noise", 1.3, "length of a row's noise")
	)
	flag.Parse()
	if err := write(*out, *seed, *folds, *families, *classes, *rows, *tests, *columns, *shared, *near,
		*noise); err != nil {
		fmt.Fprintln(os.Stderr, "dense:", err)
		os.Exit(1)
	}
}

func write(out string, seed uint64, folds, families, classes, rows, tests, columns int, shared, near,
	noise float64) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, 2))
	direction := func(of []float64, length float64) []float64 {
		v := make([]float64, columns)
		for f := range v {
			v[f] = random.NormFloat64() * length / math.Sqrt(float64(columns))
			if of != nil {
				v[f] += of[f]
			}
		}
		return v
	}
	file := map[string]*bufio.Writer{}
	for _, name := range []string{"train.svm", "test.svm", "hierarchy.txt", "graph.txt"} {
		f, err := os.Create(filepath.Join(out, name))
		if err != nil {
			return err
		}
		defer f.Close()
		file[name] = bufio.NewWriter(f)
	}
	var parent []int // parents of the classes, in the end
	level := func(n int, name, above string, parents [][]float64, length float64) (out [][]float64) {
		parent = parent[:0]
		for i := range n {
			p := i
			if i >= len(parents) {
				p = random.IntN(len(parents)) // each of the first families has one parent of its own
			}
			out, parent = append(out, direction(parents[p], length)), append(parent, p)
			fmt.Fprintf(file["hierarchy.txt"], "%s%d %s%d\n", above, p, name, i)
		}
		return out
	}
	root := [][]float64{direction(nil, 1.5)} // common to all rows: features are not centred
	tops := level(folds, "fold", "root", root, shared)
	above, mids := "fold", tops
	if families > 0 {
		above, mids = "family", level(families, "family", "fold", tops, shared)
	}
	centres := level(classes, "class", above, mids, 0)
	for c := range classes {
		// links: to the first class of the family, which becomes a hub, and one to any class
		for other, links := 0, 0; other < c && links < 4; other++ {
			if parent[other] == parent[c] {
				fmt.Fprintf(file["graph.txt"], "class%d class%d\n", c, other)
				links++
			}
		}
		if other := random.IntN(1 + c); other != c {
			fmt.Fprintf(file["graph.txt"], "class%d class%d\n", c, other*other/(1+c)) // some classes get many links
		}
	}
	size, sum := make([]float64, classes), 0.0
	for c := range size {
		size[c] = math.Pow(float64(1+random.IntN(classes)), -0.9)
		sum += size[c]
	}
	for c, v := range centres {
		if int(size[c]/sum*float64(rows)) <= 5 {
			for f := range v {
				v[f] = near*(v[f]-root[0][f]) + root[0][f]
			}
		}
		centres[c] = direction(v, 1)
	}
	row := func(name string, c int) {
		w := file[name]
		fmt.Fprintf(w, "class%d", c)
		x := direction(centres[c], noise)
		length := 0.0
		for _, v := range x {
			length += v * v
		}
		for f, v := range x {
			fmt.Fprintf(w, " %d:%.5g", f+1, v/math.Sqrt(length))
		}
		fmt.Fprintln(w)
	}
	for c := range classes {
		for range max(2, int(size[c]/sum*float64(rows))) {
			row("train.svm", c)
		}
		for range max(1, int(size[c]/sum*float64(tests))) {
			row("test.svm", c)
		}
	}
	for _, w := range file {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
