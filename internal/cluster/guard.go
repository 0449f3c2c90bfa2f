package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/store"

	taxonv1 "taxon/proto/taxon/v1"
)

// Guard makes the Jobs service that is registered through it refuse jobs whose data no
// worker would open: a path outside the roots, an id that is no key of the store.
// dataOf tells the data of a job that is to be restored, from its state.
func Guard(g grpc.ServiceRegistrar, roots Roots, dataOf func(state []byte) (string, *taxonv1.Data, error)) grpc.ServiceRegistrar {
	return &guarded{g, guardedJobs{roots: roots, dataOf: dataOf}}
}

type guarded struct {
	grpc.ServiceRegistrar
	guard guardedJobs
}

// RegisterService implements grpc.ServiceRegistrar.
func (g *guarded) RegisterService(desc *grpc.ServiceDesc, impl any) {
	if jobs, ok := impl.(taxonv1.JobsServer); ok && desc.ServiceName == taxonv1.Jobs_ServiceDesc.ServiceName {
		guard := g.guard
		guard.JobsServer = jobs
		impl = &guard
	}
	g.ServiceRegistrar.RegisterService(desc, impl)
}

type guardedJobs struct {
	taxonv1.JobsServer
	roots  Roots
	dataOf func(state []byte) (job string, d *taxonv1.Data, err error)
}

// Submit implements the Jobs service.
func (g *guardedJobs) Submit(ctx context.Context, r *taxonv1.SubmitRequest) (*taxonv1.SubmitResult, error) {
	if err := g.check(r.GetJob(), r.GetSpec().GetData()); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return g.JobsServer.Submit(ctx, r)
}

// Restore implements the Jobs service.
func (g *guardedJobs) Restore(ctx context.Context, r *taxonv1.RestoreRequest) (*taxonv1.JobStatus, error) {
	job, d, err := g.dataOf(r.GetState())
	if err == nil {
		err = g.check(job, d)
	}
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return g.JobsServer.Restore(ctx, r)
}

// maxShown bounds what an error repeats of a request.
const maxShown = 200

// check judges a job's wanted id ("": any) and its data.
func (g *guardedJobs) check(job string, d *taxonv1.Data) error {
	if job != "" {
		if err := store.ValidateJob(job); err != nil {
			return err
		}
	}
	if strings.HasPrefix(job, dataPrefix) {
		return fmt.Errorf("job %s: ids that begin with %s belong to uploaded data", job, dataPrefix)
	}
	if d == nil {
		return errors.New("the job names no data")
	}
	if !isSum(d.GetFingerprint()) {
		return fmt.Errorf("fingerprint %.*q of the job's data: must be a SHA-256 in hex", maxShown, d.GetFingerprint())
	}
	if d.GetFeatures() > math.MaxInt32 || d.GetInstances() > math.MaxUint32 {
		return fmt.Errorf("%d features, %d instances: more than can be trained on", d.GetFeatures(), d.GetInstances())
	}
	if len(d.GetPath()) > 4096 {
		return errors.New("the path of the job's data is too long")
	}
	if _, ok := manifestOf(d.GetPath()); ok {
		return nil
	}
	if Uploaded(d.GetPath()) {
		return fmt.Errorf("data %.*q: a manifest's SHA-256 must follow %s", maxShown, d.GetPath(), uploaded)
	}
	return g.roots.Check(d.GetPath())
}
