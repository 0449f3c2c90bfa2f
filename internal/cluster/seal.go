package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/coordinator/method/registry"
	"taxon/internal/fs"
	"taxon/internal/jobspec"
	"taxon/internal/model"
	"taxon/internal/pause"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker"
)

// Sealer is the Jobs service in front of a coordinator's own: it puts a seal on each
// finished job, the digest of its weights, as soon as the job has ended (Ended, and Catch
// for those of earlier lives). Until that is made, once, the job is shown as running, in
// phase seal: whoever sees a job done sees its digest. Close it before the service behind it.
type Sealer struct {
	taxonv1.JobsServer
	Dir   string // where seals are kept
	Store func(job string) (worker.Store, error)
	// JobOf tells the job of a state that is to be restored; nil: not told.
	JobOf func(state []byte) (string, error)
	// Lose is told of jobs whose weights turn out to be lost; nil: nobody.
	Lose func(job, reason string) error
	// Resident tells the most memory that this process has held, in bytes; nil: not told.
	Resident func() uint64
	Failed   func(error) // told what could not be done; nil: not told

	mu     sync.Mutex
	seals  map[string]*seal
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// Seal is what is kept of a finished job beside the coordinator's journal.
type Seal struct {
	WeightsSHA256 string `json:"weights_sha256"`
	EndedUnixMs   int64  `json:"ended_unix_ms,omitempty"` // which end of the job it is of; 0: not noted
	Nonzeros      uint64 `json:"nonzeros"`
	PeakRSSBytes  uint64 `json:"peak_rss_bytes"`
	Error         string `json:"error,omitempty"` // why there is no digest
}

// seal is one that is made or being made.
type seal struct {
	ended   int64                  // when the job did
	trouble atomic.Pointer[string] // why the last try failed; nil: it did not
	ready   chan struct{}          // closed when what follows is set
	Seal
}

// PhaseSeal is the phase of a job whose weights are all there and are being digested.
const PhaseSeal = "seal"

// Start lets it work; Close ends it.
func (s *Sealer) Start() {
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.seals = map[string]*seal{}
}

// Close waits for the work under way to end; what is not done will be done by the next life.
func (s *Sealer) Close() {
	s.cancel()
	s.work.Wait()
}

// Registrar makes a Sealer stand before the Jobs service that is registered through it.
func (s *Sealer) Registrar(g grpc.ServiceRegistrar) grpc.ServiceRegistrar { return &registrar{g, s} }

type registrar struct {
	grpc.ServiceRegistrar
	sealer *Sealer
}

// RegisterService implements grpc.ServiceRegistrar.
func (r *registrar) RegisterService(desc *grpc.ServiceDesc, impl any) {
	if jobs, ok := impl.(taxonv1.JobsServer); ok && desc.ServiceName == taxonv1.Jobs_ServiceDesc.ServiceName {
		r.sealer.JobsServer = jobs
		impl = r.sealer
	}
	r.ServiceRegistrar.RegisterService(desc, impl)
}

// Ended begins the seal of a job that is done. It does not wait.
func (s *Sealer) Ended(job string) {
	s.work.Go(func() {
		st, err := s.JobsServer.Status(s.ctx, &taxonv1.StatusRequest{Job: job})
		if err == nil {
			s.dress(st)
		}
	})
}

// Catch begins the seals of jobs that were done before this process began.
func (s *Sealer) Catch() {
	s.work.Go(func() { _, _ = s.ListJobs(s.ctx, &taxonv1.ListJobsRequest{}) })
}

// Resume implements the Jobs service.
func (s *Sealer) Resume(ctx context.Context, r *taxonv1.ResumeRequest) (*taxonv1.JobStatus, error) {
	if err := s.verify(ctx, r.GetJob()); err != nil {
		return nil, err
	}
	st, err := s.JobsServer.Resume(ctx, r)
	if err == nil {
		s.dress(st)
	}
	return st, err
}

// Submit implements the Jobs service.
func (s *Sealer) Submit(ctx context.Context, r *taxonv1.SubmitRequest) (*taxonv1.SubmitResult, error) {
	if r.GetJob() != "" {
		if err := s.verify(ctx, r.GetJob()); err != nil {
			return nil, err
		}
	}
	return s.JobsServer.Submit(ctx, r)
}

// Restore implements the Jobs service.
func (s *Sealer) Restore(ctx context.Context, r *taxonv1.RestoreRequest) (*taxonv1.JobStatus, error) {
	if s.JobOf != nil {
		if job, err := s.JobOf(r.GetState()); err == nil {
			if err := s.verify(ctx, job); err != nil {
				return nil, err
			}
		}
	}
	return s.JobsServer.Restore(ctx, r)
}

// verify reads the weights of a job that is done, if it is, and has it noted if they are
// lost. Errors are those of a store that is away.
func (s *Sealer) verify(ctx context.Context, job string) error {
	st, err := s.JobsServer.Status(ctx, &taxonv1.StatusRequest{Job: job})
	if err != nil || st.GetState() != taxonv1.JobState_JOB_STATE_DONE || st.GetResumable() {
		return nil // the service says what it is
	}
	_, err = s.digest(ctx, job)
	switch {
	case err == nil:
		return nil
	case passing(err) || ctx.Err() != nil:
		return status.Errorf(codes.Unavailable, "job %s is done; whether its weights are still there can't be told: %v", job, err)
	}
	return s.lose(job, err)
}

// lose has it noted that the weights of a job are lost.
func (s *Sealer) lose(job string, why error) error {
	if s.Lose == nil {
		return nil
	}
	return s.Lose(job, why.Error())
}

// passing says of an error that it need not come again: what is away comes back, and a disk
// that is full is emptied.
func passing(err error) bool { return Away(err) || errors.Is(err, worker.ErrSpool) }

// Status implements the Jobs service.
func (s *Sealer) Status(ctx context.Context, r *taxonv1.StatusRequest) (*taxonv1.JobStatus, error) {
	if r.GetVerify() {
		if err := s.verify(ctx, r.GetJob()); err != nil {
			return nil, err
		}
	}
	st, err := s.JobsServer.Status(ctx, r)
	if err == nil {
		s.dress(st)
	}
	return st, err
}

// Cancel implements the Jobs service.
func (s *Sealer) Cancel(ctx context.Context, r *taxonv1.CancelRequest) (*taxonv1.JobStatus, error) {
	st, err := s.JobsServer.Cancel(ctx, r)
	if err == nil {
		s.dress(st)
	}
	return st, err
}

// ListJobs implements the Jobs service.
func (s *Sealer) ListJobs(ctx context.Context, r *taxonv1.ListJobsRequest) (*taxonv1.ListJobsResult, error) {
	list, err := s.JobsServer.ListJobs(ctx, r)
	for _, j := range list.GetJobs() {
		if j.State == taxonv1.JobState_JOB_STATE_DONE && s.get(j.Job, j.EndedUnixMs) == nil {
			j.State, j.Phase, j.EndedUnixMs = taxonv1.JobState_JOB_STATE_RUNNING, PhaseSeal, 0
		}
	}
	return list, err
}

// Watch implements the Jobs service.
func (s *Sealer) Watch(r *taxonv1.StatusRequest, stream grpc.ServerStreamingServer[taxonv1.JobStatus]) error {
	return s.JobsServer.Watch(r, &sealedStream{stream, s})
}

type sealedStream struct {
	grpc.ServerStreamingServer[taxonv1.JobStatus]
	sealer *Sealer
}

// Send passes a status on; one of a job that has just ended waits for its seal.
func (w *sealedStream) Send(st *taxonv1.JobStatus) error {
	own := st.Error // without what was in the way of the seal
	if made := w.sealer.dress(st); made == nil {
		return w.ServerStreamingServer.Send(st)
	} else if err := w.ServerStreamingServer.Send(st); err != nil {
		return err
	} else {
		select {
		case <-made.ready:
		case <-w.Context().Done():
			return w.Context().Err()
		case <-w.sealer.ctx.Done():
			return w.sealer.ctx.Err()
		}
	}
	st.State, st.Phase, st.Error, st.Trace = taxonv1.JobState_JOB_STATE_DONE, "end", own, nil // the trace has gone already
	w.sealer.dress(st)
	return w.ServerStreamingServer.Send(st)
}

// dress puts the seal on the status of a finished job; one without a seal is shown as
// running, with what is in the way, and what is being made is returned.
func (s *Sealer) dress(st *taxonv1.JobStatus) (missing *seal) {
	if st.GetState() != taxonv1.JobState_JOB_STATE_DONE {
		return nil
	}
	made := s.get(st.Job, st.EndedUnixMs)
	if made == nil {
		st.State, st.Phase = taxonv1.JobState_JOB_STATE_RUNNING, PhaseSeal
		missing = s.entry(st.Job, st.EndedUnixMs)
		if trouble := missing.trouble.Load(); trouble != nil && st.Error == "" {
			st.Error = *trouble
		}
		return missing
	}
	st.WeightsSha256, st.Nonzeros, st.PeakRssBytes = made.WeightsSHA256, made.Nonzeros, made.PeakRSSBytes
	if made.Error != "" && st.Error == "" {
		st.Error = made.Error
	}
	return nil
}

// get is the seal of a finished job; nil: it is being made.
func (s *Sealer) get(job string, ended int64) *Seal {
	e := s.entry(job, ended)
	select {
	case <-e.ready:
		return &e.Seal
	default:
		return nil
	}
}

// entry finds the seal of a job that ended at a time, or begins to make it. That of an
// earlier end, of the job before it was resumed or of another of its id, is none.
func (s *Sealer) entry(job string, ended int64) *seal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.seals[job]; e != nil && e.ended == ended {
		return e
	}
	e := &seal{ended: ended, ready: make(chan struct{})}
	s.seals[job] = e
	if data, err := os.ReadFile(s.path(job)); err == nil {
		var kept Seal
		if json.Unmarshal(data, &kept) == nil && (kept.EndedUnixMs == 0 || kept.EndedUnixMs == ended) {
			e.Seal = kept
			close(e.ready)
			return e
		}
	}
	s.work.Go(func() { s.make(job, e) })
	return e
}

func (s *Sealer) path(job string) string { return filepath.Join(s.Dir, job+".json") }

// make digests the weights of a job, again and again while the store is away or the disk full.
func (s *Sealer) make(job string, e *seal) {
	var sealed Seal
	err := pause.Insist(s.ctx, 0, func() (err error) {
		sealed, err = s.digest(s.ctx, job)
		if err != nil && passing(err) {
			e.tell(fmt.Sprintf("the weights can't be digested yet: %v", err))
			if s.Failed != nil {
				s.Failed(fmt.Errorf("job %s: digest of its weights: %w", job, err))
			}
		}
		return err
	}, passing)
	if s.ctx.Err() != nil {
		return
	}
	sealed.EndedUnixMs = e.ended
	if err != nil {
		sealed.Error = fmt.Sprintf("the job is done, but its weights can't be read: %v", err)
		err = errors.Join(err, s.lose(job, err))
	} else {
		err = s.keep(job, sealed)
	}
	if err != nil && s.Failed != nil {
		s.Failed(fmt.Errorf("job %s: seal: %w", job, err))
	}
	e.Seal = sealed
	close(e.ready)
}

// tell has the job's status say what is in the way.
func (e *seal) tell(trouble string) { e.trouble.Store(&trouble) }

func (s *Sealer) keep(job string, sealed Seal) error {
	data, err := json.Marshal(sealed)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(s.Dir, 0o700), fs.WriteFile(s.path(job), append(data, '\n')))
}

// digest reads the weights of a job and names them.
func (s *Sealer) digest(ctx context.Context, job string) (Seal, error) {
	r, err := s.JobsServer.Describe(ctx, &taxonv1.JobRequest{Job: job})
	if err != nil {
		return Seal{}, err
	}
	st, err := s.JobsServer.Status(ctx, &taxonv1.StatusRequest{Job: job})
	if err != nil {
		return Seal{}, err
	}
	tree, _, err := jobspec.Tree(r.GetSpec())
	if err != nil {
		return Seal{}, err
	}
	src, err := s.Store(job)
	if err != nil {
		return Seal{}, err
	}
	columns := int(r.GetSpec().GetData().GetFeatures())
	if r.GetSpec().GetOptions().GetBias() > 0 {
		columns++
	}
	d := model.NewDigest(tree, columns, registry.Form(r.GetSpec().GetOptions()))
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return Seal{}, fmt.Errorf("%w: %w", worker.ErrSpool, err)
	}
	if err := worker.StreamWeights(ctx, src, tree.Len(), st, s.Dir, d.WriteNode); err != nil {
		return Seal{}, err
	}
	sum, err := d.Sum()
	sealed := Seal{WeightsSHA256: sum, Nonzeros: r.GetSpec().GetData().GetNonzeros()}
	if s.Resident != nil {
		sealed.PeakRSSBytes = s.Resident()
	}
	return sealed, err
}

// Keeper carries a coordinator's orders to the shards of each job. Orders only free
// space, so a shard that is away is not waited for longer than Patience: what it keeps
// too long goes with the job.
type Keeper struct {
	// Of gives the store of a job; nil: nothing of it is left anywhere.
	Of func(job string) (store.Store, error)
	// Forget is told of jobs that are dropped whole; nil: nobody.
	Forget func(ctx context.Context, job string) error
}

// Commit implements coordinator.Store.
func (k *Keeper) Commit(ctx context.Context, job string, step uint32, attempts []uint32) error {
	st, err := k.Of(job)
	if err != nil || st == nil {
		return err
	}
	return st.Commit(ctx, job, step, attempts)
}

// Drop implements coordinator.Store.
func (k *Keeper) Drop(ctx context.Context, job string, keep []uint32, before uint32) error {
	st, err := k.Of(job)
	if err != nil {
		return err
	}
	if st != nil {
		if _, err = st.Drop(ctx, store.DropSpec{Job: job, Keep: keep, Before: before}); err != nil {
			return err
		}
	}
	if k.Forget != nil && before == math.MaxUint32 && len(keep) == 0 {
		return k.Forget(ctx, job)
	}
	return nil
}
