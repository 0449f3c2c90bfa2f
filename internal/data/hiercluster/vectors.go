// Package hiercluster learns a tree over classes that have none, from their instances alone. Each
// class is represented by the mean of its instances. Similar classes are grouped by splitting the
// set again and again into halves of equal size. It is pure maths, and gives the same tree for
// any number of threads.
package hiercluster

import (
	"cmp"
	"context"
	"math"
	"runtime/debug"
	"slices"
	"sync"

	"taxon/internal/linalg/sparse"
)

// Vectors holds one sparse vector per class, of length 1 or empty. The entries of class c are at
// Begin[c] up to Begin[c+1].
type Vectors struct {
	Columns int
	Begin   []int
	Index   []uint32
	Value   []float32
}

// of returns the entries of a class.
func (v *Vectors) of(class int32) ([]uint32, []float32) {
	a, b := v.Begin[class], v.Begin[class+1]
	return v.Index[a:b], v.Value[a:b]
}

// Len returns the number of classes.
func (v *Vectors) Len() int { return len(v.Begin) - 1 }

// maxEntries bounds the number of entries of all vectors together, of 8 bytes each.
const maxEntries = 1 << 25

// minKept is the number of entries that each class may have at least, regardless of the number of
// classes.
const minKept = 64

// Data holds instances and their classes.
type Data struct {
	Rows   *sparse.Matrix
	Weight []float64 // weight of each row; nil gives each row weight 1
	Begin  []uint64  // rows of class c: Of[Begin[c]:Begin[c+1]]
	Of     []uint32
}

// Centroids returns the means of the classes' instances, where each instance and each mean is
// scaled to length 1. An instance of several classes counts in each of them. The vectors keep only
// the largest entries of a mean, as many as fit into memory for all classes. Rows are read one by
// one.
func Centroids(ctx context.Context, d *Data, threads int) (*Vectors, error) {
	classes := len(d.Begin) - 1
	kept := max(minKept, maxEntries/max(classes, 1))
	index, value := make([][]uint32, classes), make([][]float32, classes)
	share(threads, classes, func() func(int) {
		sum := make([]float64, d.Rows.Cols)
		return func(c int) {
			if ctx.Err() == nil {
				index[c], value[c] = d.centroid(c, sum, kept)
			}
		}
	})
	v := &Vectors{Columns: d.Rows.Cols, Begin: make([]int, 1, classes+1)}
	for c := range classes {
		v.Index, v.Value = append(v.Index, index[c]...), append(v.Value, value[c]...)
		v.Begin = append(v.Begin, len(v.Index))
		index[c], value[c] = nil, nil
	}
	return v, ctx.Err()
}

// centroid returns the mean of one class. sum must be zero before the call and is zero after it.
func (d *Data) centroid(class int, sum []float64, kept int) (index []uint32, value []float32) {
	for _, r := range d.Of[d.Begin[class]:d.Begin[class+1]] {
		columns, values := d.Rows.Row(int(r))
		square := 0.0
		for _, x := range values {
			square = float64(float64(x)*float64(x)) + square
		}
		if square == 0 {
			continue
		}
		scale := 1 / math.Sqrt(square)
		if d.Weight != nil {
			scale *= d.Weight[r]
		}
		for i, f := range columns {
			if sum[f] == 0 {
				index = append(index, f)
			}
			sum[f] = float64(float64(values[i])*scale) + sum[f]
		}
	}
	if len(index) > kept {
		slices.SortFunc(index, func(f, g uint32) int {
			return cmp.Or(cmp.Compare(math.Abs(sum[g]), math.Abs(sum[f])), cmp.Compare(f, g))
		})
		for _, f := range index[kept:] {
			sum[f] = 0
		}
		index = index[:kept:kept]
	}
	slices.Sort(index)
	// a sum may return to 0, so that its column is listed twice
	index = slices.Compact(index)
	square := 0.0
	for _, f := range index {
		square = float64(sum[f]*sum[f]) + square
	}
	length := math.Sqrt(square)
	value = make([]float32, len(index))
	for i, f := range index {
		if length > 0 {
			value[i] = float32(sum[f] / length)
		}
		sum[f] = 0
	}
	return index, value
}

// share calls the function that start returns for each of n items, in several goroutines. A panic
// in one of them, including a fault in mapped memory, is raised again in the caller.
func share(threads, n int, start func() func(int)) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := 0
	var panicked any
	for range max(1, min(threads, n)) {
		wg.Go(func() {
			debug.SetPanicOnFault(true)
			defer func() {
				if p := recover(); p != nil {
					mu.Lock()
					panicked = p
					mu.Unlock()
				}
			}()
			do := start()
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= n {
					return
				}
				do(i)
			}
		})
	}
	wg.Wait()
	if panicked != nil {
		panic(panicked)
	}
}
