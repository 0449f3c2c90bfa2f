package coordinator

import (
	"taxon/coordinator/method"
	"taxon/coordinator/method/recursive"
)

// figures are a task's sums by name.
type figures struct{ Primal, Dual, Restart, Visits float64 }

func (f figures) sums() method.Sums {
	out := make(method.Sums, recursive.SumVisits+1)
	out[recursive.SumPrimal], out[recursive.SumDual], out[recursive.SumRestart], out[recursive.SumVisits] = f.Primal, f.Dual, f.Restart, f.Visits
	return out
}
