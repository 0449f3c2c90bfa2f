package reducer

import (
	"container/heap"
	"slices"
)

// factor is the symbolic LDL' factorisation of a symmetric positive definite matrix: a
// fill-reducing order (minimum degree) and the pattern of L, found once (T. Davis, LDL, ACM TOMS
// 31(4), 2005). factored holds numbers.
type factor struct {
	order  []int32 // position -> unknown
	place  []int32 // unknown -> position
	parent []int32 // elimination tree, by position; -1: root
	begin  []int64 // columns of L, by position
	work   float64 // multiplications of one numeric factorisation
	dense  bool    // the fill is too large: conjugate gradients instead
}

// mostFill bounds the entries of L: beyond it a feature's factor costs more than some
// dozens of products with the matrix.
const mostFill = 4_000_000

// newFactor orders and analyses the pattern: adjacent[i] lists i's neighbours, ascending.
func newFactor(adjacent [][]int32) *factor {
	f := &factor{}
	var ok bool
	if f.order, ok = minimumDegree(adjacent); !ok {
		f.dense = true
		return f
	}
	n := len(adjacent)
	f.place, f.parent, f.begin = make([]int32, n), make([]int32, n), make([]int64, n+1)
	for k, i := range f.order {
		f.place[i] = int32(k)
	}
	seen := make([]int32, n)
	for k, i := range f.order {
		f.parent[k], seen[k] = -1, int32(k)
		for _, m := range adjacent[i] {
			for j := f.place[m]; j < int32(k) && seen[j] != int32(k); j = f.parent[j] {
				if f.parent[j] < 0 {
					f.parent[j] = int32(k)
				}
				f.begin[j+1]++
				seen[j] = int32(k)
			}
		}
	}
	for k := range n {
		f.work += float64(f.begin[k+1]) * float64(f.begin[k+1])
		f.begin[k+1] += f.begin[k]
	}
	return f
}

// fill is the number of entries of L below its diagonal.
func (f *factor) fill() int64 { return f.begin[len(f.begin)-1] }

// degrees is a heap of (degree, unknown) with stale entries.
type degrees [][2]int32

func (d degrees) Len() int           { return len(d) }
func (d degrees) Less(a, b int) bool { return slices.Compare(d[a][:], d[b][:]) < 0 }
func (d degrees) Swap(a, b int)      { d[a], d[b] = d[b], d[a] }
func (d *degrees) Push(x any)        { *d = append(*d, x.([2]int32)) }
func (d *degrees) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

// minimumDegree eliminates unknowns by least degree, ties by number, joining each one's
// neighbours; not ok when the fill passes mostFill.
func minimumDegree(adjacent [][]int32) (order []int32, ok bool) {
	n := len(adjacent)
	near := make([]map[int32]struct{}, n)
	var h degrees
	for i, list := range adjacent {
		near[i] = make(map[int32]struct{}, len(list))
		for _, m := range list {
			near[i][m] = struct{}{}
		}
		h = append(h, [2]int32{int32(len(near[i])), int32(i)})
	}
	heap.Init(&h)
	gone := make([]bool, n)
	fill := 0
	for len(order) < n {
		top := heap.Pop(&h).([2]int32)
		i := top[1]
		if gone[i] || int(top[0]) != len(near[i]) {
			continue
		}
		if fill += len(near[i]); fill > mostFill {
			return nil, false
		}
		gone[i] = true
		order = append(order, i)
		list := make([]int32, 0, len(near[i]))
		for m := range near[i] {
			list = append(list, m)
		}
		slices.Sort(list)
		for _, a := range list {
			delete(near[a], i)
			for _, b := range list {
				if a != b {
					near[a][b] = struct{}{}
				}
			}
		}
		for _, a := range list {
			heap.Push(&h, [2]int32{int32(len(near[a])), a})
		}
		near[i] = nil
	}
	return order, true
}
