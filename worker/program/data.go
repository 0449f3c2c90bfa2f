package program

import (
	"taxon/internal/data/dataset"
	taxonv1 "taxon/proto/taxon/v1"
)

// loadCells is the number of cells into which a job's description groups the features' loads. A
// cell holds the sum of its features' loads.
const loadCells = 4096

// DescribeData returns what the coordinator needs to know about a data set in memory.
func DescribeData(s *dataset.Set) *taxonv1.Data {
	d := &taxonv1.Data{
		Path: "embedded", Fingerprint: s.Fingerprint, Instances: uint64(s.Matrix.Rows), Features: uint64(s.Matrix.Cols),
		Nonzeros: uint64(s.Matrix.NNZ), Labels: s.Labels,
	}
	for l := range s.Labels {
		d.LabelInstances = append(d.LabelInstances, uint32(s.PosBegin[l+1]-s.PosBegin[l]))
	}
	if d.Terms = uint64(len(s.Terms)); d.Terms > 0 {
		d.LabelTerms = make([]uint32, len(s.Labels))
		for _, t := range s.Terms {
			d.LabelTerms[t.Label]++
		}
	}
	for i := range s.Matrix.Rows {
		switch s.LabelBegin[i+1] - s.LabelBegin[i] {
		case 0:
			d.NoLabel++
		case 1:
			continue
		default:
			d.SeveralLabels++
		}
		if d.FirstNotOne == 0 {
			d.FirstNotOne = uint64(i) + 1
		}
	}
	d.FeatureCountsLog = FeatureCounts(s.FeatureRows)
	return d
}

// FeatureCounts returns Data.feature_counts_log for features, given the number of rows in which
// each occurs, in the order of the columns, which is by falling number of rows.
func FeatureCounts(rows []uint32) (cumulative []uint32) {
	cells := min(loadCells, max(len(rows), 1))
	width := max((len(rows)+cells-1)/cells, 1)
	sum := uint64(0)
	for k := range cells {
		for f := k * width; f < min((k+1)*width, len(rows)); f++ {
			sum += uint64(rows[f])
		}
		cumulative = append(cumulative, uint32(sum))
	}
	return cumulative
}
