package recursive

import (
	"testing"

	"taxon/coordinator"
	"taxon/mapper"
)

// TestSampledFrom: the coordinator, which does not know the mapper, means its sample.
func TestSampledFrom(t *testing.T) {
	if coordinator.SampledFrom != 2*mapper.StartRows {
		t.Errorf("coordinator.SampledFrom %d, mapper.StartRows %d", coordinator.SampledFrom, mapper.StartRows)
	}
}
