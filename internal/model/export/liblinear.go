package export

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"
)

// blockBytes bounds the weights held at once while the order changes from by-node to by-feature.
const blockBytes = 128 << 20

// Liblinear writes all terminals as a model file of LIBLINEAR 2: one line per feature with a weight
// per class, dense, as LIBLINEAR requires. Classes are in node order, so ties are broken as in
// taxon. ClassNumbers returns their numbers. With two classes LIBLINEAR keeps one vector, and
// predicts its first class where the score is above 0. So the second class comes first there, with
// the difference of the two. A weight is written as the exact value of the float32, as the shortest
// double.
//
// The model is walked once for every block of features that fits into blockBytes.
func (s *Source) Liblinear(ctx context.Context, w io.Writer, threads int) error {
	if threads < 1 {
		return fmt.Errorf("export: %d threads: must be at least 1", threads)
	}
	terminals := s.m.Tree.Terminals()
	head := fmt.Appendf(nil, "solver_type %s\nnr_class %d\nlabel", s.solver(), len(terminals))
	numbers := s.ClassNumbers()
	if len(numbers) == 2 {
		slices.Reverse(numbers)
	}
	for _, n := range numbers {
		head = strconv.AppendInt(append(head, ' '), n, 10)
	}
	bias := -1.0
	if s.hasBias() {
		bias = float64(float32(s.m.Options.Bias))
	}
	head = fmt.Appendf(head, "\nnr_feature %d\nbias %s\nw\n", s.width, strconv.FormatFloat(bias, 'g', -1, 64))
	if _, err := w.Write(head); err != nil {
		return err
	}
	t := &transposer{s: s, classes: len(terminals), class: make([]int32, s.m.Tree.Len())}
	for k, n := range terminals {
		t.class[n] = int32(k)
	}
	step := max(1, blockBytes/4/max(1, t.classes))
	for first := 0; first < s.columns(); first += step {
		if err := t.block(ctx, w, first, min(first+step, s.columns()), threads); err != nil {
			return err
		}
	}
	return nil
}

// LiblinearBytes returns a lower bound of the size of Liblinear's output: a digit and a blank for
// every class and every feature up to the highest index, in the model or not.
func (s *Source) LiblinearBytes() int64 {
	numbers := int64(len(s.m.Tree.Terminals()))
	if numbers == 2 {
		numbers = 1
	}
	columns := int64(s.columns())
	if numbers > 0 && columns > math.MaxInt64/3/numbers {
		return math.MaxInt64
	}
	return columns * (2*numbers + 1)
}

// solver returns LIBLINEAR's name for the loss, which its predict ignores.
func (s *Source) solver() string {
	switch s.m.Options.Loss {
	case "squared-hinge":
		return "L2R_L2LOSS_SVC_DUAL"
	case "logistic":
		return "L2R_LR_DUAL"
	}
	return "L2R_L1LOSS_SVC_DUAL"
}

// ClassNumbers returns the terminals' numbers in a LIBLINEAR file: the labels themselves if all are
// whole numbers as LIBLINEAR prints them, and otherwise the lines of Labels, counted from 1.
func (s *Source) ClassNumbers() []int64 {
	var numbers, lines []int64
	for n, leaf := range s.m.Tree.Leaf {
		if !leaf {
			continue
		}
		lines = append(lines, int64(len(lines)+1))
		v, err := strconv.ParseInt(s.m.Tree.Name[n], 10, 32)
		if err == nil && strconv.FormatInt(v, 10) == s.m.Tree.Name[n] {
			numbers = append(numbers, v)
		}
	}
	if len(numbers) == len(lines) {
		return numbers
	}
	return lines
}

// transposer gathers the weights of a block of columns from all terminals.
type transposer struct {
	s       *Source
	classes int
	// class maps a node to its class.
	class   []int32
	weights []float32
	lines   [][]byte
}

// block writes the lines of columns [first, last) of the matrix.
func (t *transposer) block(ctx context.Context, w io.Writer, first, last, threads int) error {
	n := (last - first) * t.classes
	if cap(t.weights) < n {
		t.weights = make([]float32, n)
	}
	t.weights = t.weights[:n]
	clear(t.weights)
	leaf := t.s.m.Tree.Leaf
	if err := RenderRows(ctx, t.s.m, io.Discard, 0, t.s.m.Tree.Len(), threads,
		func(b []byte, n int, vector []float32) []byte {
			if leaf[n] {
				k := int(t.class[n])
				t.s.each(vector, func(column uint32, v float32) {
					if c := int(column); c >= first && c < last {
						t.weights[(c-first)*t.classes+k] = v // each class is rendered by one goroutine
					}
				})
			}
			return b
		}); err != nil {
		return err
	}
	return t.writeLines(ctx, w, last-first, threads)
}

// lineChunk is the number of lines that a goroutine renders at once.
const lineChunk = 64

func (t *transposer) writeLines(ctx context.Context, w io.Writer, lines, threads int) error {
	for len(t.lines) < threads {
		t.lines = append(t.lines, nil)
	}
	for at := 0; at < lines; at += threads * lineChunk {
		g, gctx := errgroup.WithContext(ctx)
		for k := range threads {
			g.Go(func() error {
				b := t.lines[k][:0]
				for i := at + k*lineChunk; i < min(at+(k+1)*lineChunk, lines); i++ {
					b = t.appendLine(b, t.weights[i*t.classes:(i+1)*t.classes])
					b = append(b, '\n')
				}
				t.lines[k] = b
				return gctx.Err()
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for k := range threads {
			if _, err := w.Write(t.lines[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendLine appends the weights of one feature.
func (t *transposer) appendLine(b []byte, weights []float32) []byte {
	if len(weights) == 2 {
		return append(strconv.AppendFloat(b, float64(weights[1])-float64(weights[0]), 'g', -1, 64), ' ')
	}
	for _, v := range weights {
		if v == 0 {
			b = append(b, '0', ' ')
			continue
		}
		b = append(strconv.AppendFloat(b, float64(v), 'g', -1, 64), ' ')
	}
	return b
}
