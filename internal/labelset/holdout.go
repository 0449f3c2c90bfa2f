package labelset

import "math/rand/v2"

// HoldOut chooses the rows to hold out of a training: at most a share of all, and at most
// `most`, in a random order of the seed, leaving each class at least `least` rows, or as
// many as it has, to be trained on. labels gives the classes of a row, count the rows of each class. The result ascends.
func HoldOut(rows int, labels func(row int) []uint32, count []int, share float64, most, least int, seed uint64) []uint32 {
	want := min(int(share*float64(rows)), most)
	left := append([]int(nil), count...)
	held := make([]bool, rows)
	for _, row := range rand.New(rand.NewPCG(seed, 0x6c6162656c)).Perm(rows) {
		if want == 0 {
			break
		}
		if free(labels(row), left, least) {
			for _, l := range labels(row) {
				left[l]--
			}
			held[row] = true
			want--
		}
	}
	var out []uint32
	for row, h := range held {
		if h {
			out = append(out, uint32(row))
		}
	}
	return out
}

// free says whether every class of a row keeps enough rows without it.
func free(labels []uint32, left []int, least int) bool {
	for _, l := range labels {
		if left[l] <= least {
			return false
		}
	}
	return true
}
