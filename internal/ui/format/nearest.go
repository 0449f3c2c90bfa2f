package format

import (
	"math"
	"strings"
)

// Nearest returns the name that s was probably meant to be, or "". It is the name with the smallest
// edit distance, if that is at most a third of the longer name's length. Ties go to the first.
func Nearest(s string, names []string) string {
	best, bestCost := "", math.MaxInt
	for _, name := range names {
		cost := editDistance(s, name)
		if len(s) >= 3 && strings.HasPrefix(name, s) {
			cost = 1 // an unfinished word
		}
		if len(name) >= 3 && strings.HasPrefix(s, name+"-") {
			cost = 1 // an additional word
		}
		if 3*cost <= max(len(s), len(name)) && cost < bestCost {
			best, bestCost = name, cost
		}
	}
	return best
}

// editDistance counts the insertions, deletions, replacements and transpositions of neighbours that
// turn a into b (optimal string alignment), in bytes, ignoring case.
func editDistance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	const limit = 64 // names are short, so a longer word is no misspelling
	if len(a) > limit || len(b) > limit {
		return limit
	}
	var d [limit + 1][limit + 1]int
	for i := 0; i <= len(a); i++ {
		for j := 0; j <= len(b); j++ {
			switch {
			case i == 0 || j == 0:
				d[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				d[i][j] = d[i-1][j-1]
			default:
				d[i][j] = 1 + min(d[i-1][j-1], d[i-1][j], d[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
