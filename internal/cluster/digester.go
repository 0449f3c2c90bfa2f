package cluster

import (
	"context"
	"errors"
	"fmt"

	"taxon/coordinator/machine"
	"taxon/coordinator/method/registry"
	"taxon/internal/fs"
	"taxon/internal/model"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker"
)

// Digester computes the digests of finished jobs' weights. It implements coordinator.Digester.
type Digester struct {
	// Dir is the folder of the temporary file in which the weights are sorted.
	Dir string
	// Store returns the store of a job.
	Store func(job string) (worker.Store, error)
}

// Digest implements coordinator.Digester.
func (d *Digester) Digest(ctx context.Context, job *taxonv1.JobResult,
	st *taxonv1.JobStatus) (out machine.Digest, err error) {
	tree, _, err := registry.Tree(job.GetSpec())
	if err != nil {
		return out, err
	}
	src, err := d.Store(st.GetJob())
	if err != nil {
		return out, err
	}
	columns := int(job.GetSpec().GetData().GetFeatures())
	if registry.Number(job.GetSpec().GetOptions(), "bias") > 0 {
		columns++
	}
	digest := model.NewDigest(tree, columns, registry.Form(job.GetSpec().GetOptions()))
	if err := fs.MkdirMode(d.Dir, 0o700); err != nil {
		return out, fmt.Errorf("%w: %w", worker.ErrWeightBuffer, err)
	}
	if err := worker.StreamWeights(ctx, src, tree.Len(), st, d.Dir, digest.WriteNode); err != nil {
		return out, err
	}
	out.WeightsSHA256, err = digest.Sum()
	return out, err
}

// Passing implements coordinator.Digester. A shard that is away and a full disk are transient.
func (d *Digester) Passing(err error) bool {
	return Away(err) || errors.Is(err, worker.ErrWeightBuffer)
}
