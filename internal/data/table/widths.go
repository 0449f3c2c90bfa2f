package table

import (
	"fmt"
	"math"
	"slices"
)

// fillFeatures reads the row's numbers. It sets or checks the widths of lists.
func (r *Reader) fillFeatures() (err error) {
	if len(r.schema.Widths) == 0 && len(r.features) > 0 {
		r.findWidths()
		defer func() {
			if err != nil {
				r.schema.Widths = nil // the next row sets it
			}
		}()
	}
	at := uint32(1)
	defer func() {
		if n := int64(at) - 1; err == nil && r.schema.Matrix > 0 && len(r.features) > 0 && n != r.schema.Matrix {
			err = fmt.Errorf("%d numbers, and the model's training data are a matrix of %d columns", n, r.schema.Matrix)
		}
	}()
	for i, k := range r.features {
		list, name := false, r.o.Features[i]
		r.values = r.values[:0]
		if k >= 0 {
			if r.values, list, err = r.in.numbers(k, r.values); err != nil {
				return fmt.Errorf("column %q: %w", name, err)
			}
		}
		want, those := r.schema.Widths[i], "rows before"
		if r.use.Schema != nil && !r.use.Weights {
			those = "the model's training data"
		}
		switch {
		case want == 0 && list && len(r.values) == 0:
			return fmt.Errorf("column %q: a list without numbers", name)
		case want == 0 && list && r.unknown[i]:
			return fmt.Errorf("column %q: a list, and no row before has a value there: the first row of a stream must", name)
		case want == 0 && list:
			return fmt.Errorf("column %q: a list where %s have a number", name, those)
		case want > 0 && list && len(r.values) != want:
			return fmt.Errorf("column %q: a list of %d numbers where %s have %d", name, len(r.values), those, want)
		case want > 0 && !list && len(r.values) > 0 && !math.IsNaN(r.values[0]):
			return fmt.Errorf("column %q: a number where %s have lists", name, those)
		}
		for j, v := range r.values {
			if math.IsNaN(v) {
				continue
			}
			if math.IsInf(float64(r.schema.Standardise(at+uint32(j), v)), 0) {
				return fmt.Errorf("column %q: %g is too large for float32, or not finite", name, v)
			}
			r.row.Index, r.row.Value = append(r.row.Index, at+uint32(j)), append(r.row.Value, v)
		}
		at += uint32(max(want, 1))
	}
	return nil
}

// findWidths sets the length of each column's lists from the first row with a value there. It reads
// the file ahead for it; in a stream it has only the current row.
func (r *Reader) findWidths() {
	widths := make([]int, len(r.features))
	r.unknown = slices.Repeat([]bool{true}, len(r.features))
	look := func(r *Reader, unknown []bool) {
		for i, k := range r.features {
			if k < 0 || !unknown[i] {
				continue
			}
			values, list, err := r.in.numbers(k, r.values[:0])
			if r.values = values; err != nil {
				continue
			}
			if list {
				widths[i] = len(values)
			}
			unknown[i] = !list && !slices.ContainsFunc(values, func(x float64) bool { return !math.IsNaN(x) })
		}
	}
	look(r, r.unknown)
	if r.schema.Widths = widths; slices.Contains(r.unknown, true) && r.size >= 0 && !r.file.Waits() {
		ahead, err := Open(r.ctx, r.src, r.name, Options{Columns: r.o.Columns, Format: r.o.Format, SkipBroken: math.MaxInt64},
			Use{Features: true})
		if err != nil {
			return // the reader will meet the same error
		}
		defer ahead.Close()
		ahead.learn = func() { look(ahead, r.unknown) }
		for err == nil && slices.Contains(r.unknown, true) {
			_, err = ahead.Read()
		}
	}
}
