package program

import (
	"testing"

	params "taxon/internal/methods/rr/plan"
	"taxon/mapper"
)

// TestSampledFrom checks that the coordinator's constant for samples is the mapper's, which it
// cannot import.
func TestSampledFrom(t *testing.T) {
	if params.SampledFrom != 2*mapper.StartRows {
		t.Errorf("params.SampledFrom %d, mapper.StartRows %d", params.SampledFrom, mapper.StartRows)
	}
}
