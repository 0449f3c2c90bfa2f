package main

import (
	"taxon/internal/dataset"
	"taxon/internal/model"
	"taxon/internal/train"
	taxonv1 "taxon/proto/taxon/v1"
)

// describeModel says what a job's model has beside its weights.
func describeModel(spec *taxonv1.JobSpec, names *dataset.Set) (model.Meta, func(*model.Report), error) {
	t, err := train.Of(spec)
	if err != nil {
		return model.Meta{}, nil, err
	}
	t.Set = names
	return t.Meta(), t.Complete, nil
}
