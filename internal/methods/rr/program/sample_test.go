package program

import (
	"testing"

	params "taxon/internal/methods/rr/plan"
	"taxon/mapper"
)

// TestSampledFrom: the coordinator, which does not know the mapper, means its sample.
func TestSampledFrom(t *testing.T) {
	if params.SampledFrom != 2*mapper.StartRows {
		t.Errorf("params.SampledFrom %d, mapper.StartRows %d", params.SampledFrom, mapper.StartRows)
	}
}
