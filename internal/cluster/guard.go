package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/fs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Rules are checks on jobs that are submitted or restored.
type Rules struct {
	// Roots are the folders from which jobs may read data.
	Roots Roots
	// DataOf returns the job and the data of a state that is to be restored.
	DataOf func(state []byte) (job string, d *taxonv1.Data, err error)
	// Submitting calls take if the job's data are where the job says (Collector.Submitting). A nil
	// Submitting accepts every job.
	Submitting func(ctx context.Context, d *taxonv1.Data, take func() error) error
	// Strays answers the call Strays (see Collector.Strays). If it is nil, the call is not served.
	Strays func(ctx context.Context, drop []string) ([]*taxonv1.Stray, error)
}

// Guard returns a registrar. A Jobs service that is registered through it refuses jobs whose data
// no worker would open: a path outside the roots, or an id that is not a key of the store.
func Guard(g grpc.ServiceRegistrar, r Rules) grpc.ServiceRegistrar {
	return &guarded{g, r}
}

// guarded replaces the Jobs service at its registration.
type guarded struct {
	grpc.ServiceRegistrar
	rules Rules
}

// RegisterService implements grpc.ServiceRegistrar.
func (g *guarded) RegisterService(desc *grpc.ServiceDesc, impl any) {
	if jobs, ok := impl.(taxonv1.JobsServer); ok && desc.ServiceName == taxonv1.Jobs_ServiceDesc.ServiceName {
		impl = &guardedJobs{jobs, g.rules}
	}
	g.ServiceRegistrar.RegisterService(desc, impl)
}

// guardedJobs is a Jobs service under rules.
type guardedJobs struct {
	taxonv1.JobsServer
	rules Rules
}

// take calls take under the rules for a job's data.
func (g *guardedJobs) take(ctx context.Context, d *taxonv1.Data, take func() error) error {
	if g.rules.Submitting == nil {
		return take()
	}
	return g.rules.Submitting(ctx, d, take)
}

// Submit implements the Jobs service.
func (g *guardedJobs) Submit(ctx context.Context, r *taxonv1.SubmitRequest) (out *taxonv1.SubmitResult, err error) {
	if err := g.check(r.GetJob(), r.GetSpec().GetData()); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	err = g.take(ctx, r.GetSpec().GetData(), func() (err error) {
		out, err = g.JobsServer.Submit(ctx, r)
		return err
	})
	return out, err
}

// Restore implements the Jobs service.
func (g *guardedJobs) Restore(ctx context.Context, r *taxonv1.RestoreRequest) (out *taxonv1.JobStatus, err error) {
	job, d, err := g.rules.DataOf(r.GetState())
	switch {
	case err != nil:
	case job == "":
		err = errors.New("the state names no job")
	default:
		err = g.check(job, d)
	}
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	err = g.take(ctx, d, func() (err error) {
		out, err = g.JobsServer.Restore(ctx, r)
		return err
	})
	return out, err
}

// Strays implements the Jobs service.
func (g *guardedJobs) Strays(ctx context.Context, r *taxonv1.StraysRequest) (*taxonv1.StraysResult, error) {
	if g.rules.Strays == nil {
		return g.JobsServer.Strays(ctx, r)
	}
	jobs, err := g.rules.Strays(ctx, r.GetDrop())
	return &taxonv1.StraysResult{Jobs: jobs}, err
}

// maxShown bounds how much of a request an error repeats.
const maxShown = 200

// check checks a job's wanted id, which may be empty, and its data.
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
	if _, ok := indexOf(d.GetPath()); ok {
		return nil
	}
	if Uploaded(d.GetPath()) {
		return fmt.Errorf("data %.*q: an index's SHA-256 must follow %s", maxShown, d.GetPath(), uploaded)
	}
	return g.rules.Roots.Check(d.GetPath())
}

// Roots are the folders, besides the store, from which jobs may read data. Jobs are submitted over
// the network, so their paths are not trusted. Links are followed before a path is judged, both for
// the folder and for the paths in it. A path in HDFS, which has no links unless its administrator
// allows them, is judged by its text.
type Roots []string

// MakeRoots resolves folders that an operator has given. Local folders must exist; those in HDFS
// are checked when a job names them.
func MakeRoots(dirs []string) (Roots, error) {
	var r Roots
	for _, d := range dirs {
		if fs.Shared(d) {
			r = append(r, fs.Clean(d))
			continue
		}
		real, err := resolve(d)
		if err != nil {
			return nil, fmt.Errorf("data root %s: %w", d, err)
		}
		if info, err := fs.Stat(real); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("data root %s: must be a folder", d)
		}
		r = append(r, real)
	}
	return r, nil
}

func resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// Check returns an error if data at a path may not be read. For a path outside the roots the error
// does not tell whether it exists.
func (r Roots) Check(path string) error {
	if len(r) == 0 {
		return fmt.Errorf("%s: data may not be read in place here: start the processes with ‹data-root›, or submit "+
			"without ‹in-place›", path)
	}
	outside := fmt.Errorf("%s: lies outside the data roots %s", path, strings.Join(r, ", "))
	if fs.Shared(path) {
		if fs.Clean(path) != path || !slices.ContainsFunc(r, func(root string) bool { return fs.Within(path, root) }) {
			return outside
		}
		return nil
	}
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return fmt.Errorf("%s: data read in place needs an absolute path, without \"..\" in it", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil && r.hold(path) {
		return err
	}
	if err != nil || !r.hold(real) {
		return outside
	}
	names, err := fs.ReadDirNames(real)
	if err != nil {
		return err
	}
	for _, name := range names {
		file, err := filepath.EvalSymlinks(filepath.Join(real, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // a dangling link
		}
		if err != nil || !r.hold(file) {
			return fmt.Errorf("%s: a link leads outside the data roots", filepath.Join(path, name))
		}
	}
	return nil
}

// hold reports whether a resolved path is one of the roots or below one.
func (r Roots) hold(real string) bool {
	return slices.ContainsFunc(r, func(root string) bool {
		return real == root || strings.HasPrefix(real, strings.TrimSuffix(root, "/")+"/")
	})
}
