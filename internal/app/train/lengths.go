package train

import (
	"math"

	"taxon/coordinator/method/registry"
	"taxon/internal/fs"
)

// longRows is the value of C ||x||^2 above which inner solvers converge slowly.
const longRows = 100

// maxSquaredLength is the largest squared length of a row for which float32 sums of products do not
// overflow.
const maxSquaredLength = 1e36

// CheckLengths warns if the rows are not normalised, and returns an error if products of the rows
// would overflow.
func (t *Training) CheckLengths() error {
	longest, bias, c := 0.0, registry.Number(t.o.Job, "bias"), registry.Number(t.o.Job, "C")
	for i := range t.Set.Matrix.Rows {
		_, values := t.Set.Matrix.Row(i)
		n := bias * bias
		for _, v := range values {
			n += float64(v) * float64(v)
		}
		if n > maxSquaredLength {
			return fs.Inputf(t.o.Data[0], 0, "instance %d has values too large to compute with (length %.3g): scale the data",
				i+1, math.Sqrt(n))
		}
		if t.Set.Weight != nil {
			n *= t.Set.Weight[i]
		}
		longest = max(longest, n)
	}
	if c*longest > longRows {
		of := "the squared length of an instance"
		if t.Set.Weight != nil {
			of = "the weight and the squared length of an instance"
		}
		t.ui.Warn("C times %s is up to %.3g: training may take many sweeps; scale instances to unit length, or lower C", of,
			c*longest)
	}
	return nil
}
