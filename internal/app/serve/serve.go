package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"taxon/internal/cluster/metrics"
	"taxon/internal/cluster/secure"
	"taxon/internal/fs"
	"taxon/internal/model/parallel"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// Options configure a server.
type Options struct {
	// Models lists folders, each as FOLDER or NAME=FOLDER.
	Models []string
	// Listen is the address for HTTP.
	Listen string
	// GRPC is the address for the same calls over gRPC. If it is empty, there is no gRPC.
	GRPC     string
	Security secure.Options
	Version  string

	// MaxBytes bounds the size of a request's body, and of an answer over gRPC.
	MaxBytes int64
	// Memory is the memory that running requests may use together, in bytes. Zero means
	// DefaultMemory.
	Memory int64
	// MaxRows bounds the number of instances of a request.
	MaxRows int
	// Queue is the number of requests that may wait for a free core.
	Queue int
	// Rate bounds the number of requests per second. Zero means no bound.
	Rate float64
	// Threads is the number of requests that are scored at a time. Zero means one per core.
	Threads int
	// Reload is the interval at which folders are checked for changes.
	Reload time.Duration
	// Drain is how long running requests may take after the end of ctx.
	Drain time.Duration

	// Log is called with the error of a model that could not be replaced.
	Log func(error)
	// Ready is called once, when the server answers, with the addresses on which it listens.
	Ready func(addr, grpc string)
}

// Server answers requests to models.
type Server struct {
	o Options
	// models does not change after New.
	models map[string]*slot
	// slots has one token for each request that is being scored.
	slots   chan struct{}
	waiting atomic.Int64
	room    *memoryBudget
	// limit is nil if there is no bound.
	limit   *rate.Limiter
	figures *metrics.Serving
	// closing waits for models that were replaced.
	closing sync.WaitGroup
}

// slot holds the current version of a model.
type slot struct {
	name, dir string
	mu        sync.RWMutex
	in        *loaded
	// looked is the stamp of the folder when it was last checked.
	looked string
	// failed is the error of opening the folder then. It is nil if that succeeded.
	failed error
	// lastWarning is the last error that was logged. It is empty after a success.
	lastWarning string
}

// acquire returns the current version of the model. The caller must call its users.Done.
func (s *slot) acquire() *loaded {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.in.users.Add(1)
	return s.in
}

// New opens the models.
func New(ctx context.Context, o Options, p *metrics.Process) (*Server, error) {
	if len(o.Models) == 0 {
		return nil, option.Errorf("serve: name a model's folder, or several as NAME=FOLDER")
	}
	s := &Server{
		o: o, models: map[string]*slot{}, slots: make(chan struct{}, parallel.Threads(o.Threads)),
		figures: p.Serving(), room: newMemoryBudget(cmp.Or(o.Memory, DefaultMemory)),
	}
	if s.room.all < o.MaxBytes {
		return nil, option.Errorf("serve: ‹memory=%s› is less than ‹max-body=%s›: give more memory, or take smaller requests",
			format.Bytes(s.room.all), format.Bytes(o.MaxBytes))
	}
	if o.Rate > 0 {
		s.limit = rate.NewLimiter(rate.Limit(o.Rate), max(1, int(o.Rate)))
	}
	for _, given := range o.Models {
		name, dir, ok := strings.Cut(given, "=")
		if !ok || strings.ContainsAny(name, `/\`) {
			name, dir = filepath.Base(fs.Clean(given)), given
		}
		if strings.ContainsAny(name, ":/ ") || name == "" || name == "." {
			return nil, option.Errorf("serve: %q is no name for an address: give NAME=%s", name, dir)
		}
		if at := s.models[name]; at != nil {
			return nil, option.Errorf("serve: %s and %s are both called %s: give NAME=FOLDER", at.dir, dir, name)
		}
		looked := stampOf(dir)
		in, err := load(name, dir)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.figures.Loaded(name, true)
		s.models[name] = &slot{name: name, dir: dir, in: in, looked: looked}
	}
	return s, nil
}

// Close closes each model after its last request.
func (s *Server) Close() error {
	var errs []error
	for _, m := range s.models {
		errs = append(errs, m.in.retire())
	}
	s.closing.Wait()
	return errors.Join(errs...)
}

// Run serves until ctx ends, and then completes the running requests.
func Run(ctx context.Context, o Options) error {
	process := metrics.NewProcess("serve", o.Version)
	if o.Security.Cert != "" {
		process.Certificate(o.Security.CertificateExpiry)
	}
	o.Security.Refused = func(r secure.Refusal) { process.Refused(r.Code) }
	s, err := New(ctx, o, process)
	if err != nil {
		return err
	}
	return errors.Join(s.run(ctx, process), s.Close())
}

// run does what Run does, with the process's metrics.
func (s *Server) run(ctx context.Context, process *metrics.Process) error {
	web, err := s.o.Security.HTTPServer(s.o.Listen, s.handler(process), policy)
	if err != nil {
		return err
	}
	web.ReadTimeout, web.WriteTimeout = time.Minute, time.Minute
	rpc, err := s.grpcServer(process)
	if err != nil {
		return err
	}
	l, err := s.o.Security.Listen(ctx, s.o.Listen)
	if err != nil {
		return fmt.Errorf("‹listen›: %w", err)
	}
	ended, servers := make(chan error, 2), 1
	also := ""
	if s.o.GRPC != "" {
		second, err := s.o.Security.Listen(ctx, s.o.GRPC)
		if err != nil {
			return errors.Join(fmt.Errorf("‹grpc›: %w", err), l.Close())
		}
		also, servers = second.Addr().String(), 2
		go func() { ended <- rpc.Serve(second) }()
	}
	go func() { ended <- secure.ServeHTTP(web, l) }()
	if s.o.Ready != nil {
		s.o.Ready(l.Addr().String(), also)
	}
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	s.room.bound()
	every := time.NewTicker(s.o.Reload)
	defer every.Stop()
	for waiting := true; waiting; {
		select {
		case <-every.C:
			s.reload()
			s.room.tidy()
			continue
		case err = <-ended:
			servers--
		case <-ctx.Done():
		}
		waiting = false
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Drain)
	defer cancel()
	defer context.AfterFunc(bound, rpc.Stop)()
	var both sync.WaitGroup
	both.Go(rpc.GracefulStop)
	both.Go(func() {
		if web.Shutdown(bound) != nil {
			_ = web.Close() // Shutdown returns its error
		}
	})
	both.Wait()
	for range servers {
		err = errors.Join(err, <-ended)
	}
	return err
}

// policy lists which roles may make which calls.
var policy = secure.Policy{
	"POST /v1/models/": {secure.Submit, secure.ReadOnly},
	"/v1/models":       {secure.Submit, secure.ReadOnly},
	"/metrics":         {secure.Submit, secure.ReadOnly},
	"/healthz":         {secure.Anyone},
	"/readyz":          {secure.Anyone},
	"/openapi.json":    {secure.Anyone},
}

// reload opens the models whose folders changed. A folder that could not be opened is tried again
// when anything in it changes, because it may be incomplete.
func (s *Server) reload() {
	for _, m := range s.models {
		stamp := stampOf(m.dir)
		if stamp == m.looked {
			if m.failed != nil && m.lastWarning != m.failed.Error() { // nothing changes any more, so log it
				s.logFailure(m)
			}
			continue
		}
		m.looked = stamp
		debug.SetMemoryLimit(math.MaxInt64) // for both models
		in, err := load(m.name, m.dir)
		s.figures.Loaded(m.name, err == nil)
		if m.failed = err; err != nil {
			s.room.bound()
			if m.lastWarning == "" { // otherwise the folder is still changing
				s.logFailure(m)
			}
			continue
		}
		m.lastWarning = ""
		m.mu.Lock()
		old := m.in
		m.in = in
		m.mu.Unlock()
		s.closing.Go(func() {
			if err := old.retire(); err != nil {
				s.o.Log(fmt.Errorf("%s: closing the old model: %w", m.name, err))
			}
			s.room.bound()
		})
	}
}

// logFailure logs the reason why the model in a folder is not served.
func (s *Server) logFailure(m *slot) {
	m.lastWarning = m.failed.Error()
	s.o.Log(fmt.Errorf("%s: the new model can't be opened, the old one stays in use until it can: %w", m.name, m.failed))
}

// names lists the models.
func (s *Server) names() []string {
	var out []string
	for name := range s.models {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// statusGone is the status under which a request is counted if its caller left before the answer.
const statusGone = 499

// enter refuses a request beyond the rate before its body is read.
func (s *Server) enter() error {
	if s.limit != nil && !s.limit.Allow() {
		return refuse(http.StatusTooManyRequests, "more than %g requests a second: try again in a second", s.o.Rate)
	}
	return nil
}

// score calls do when a core is free. If too many requests are waiting it returns an error at once,
// unless the request has begun.
func (s *Server) score(ctx context.Context, begun bool, do func() error) error {
	if err := s.admit(ctx, begun); err != nil {
		return err
	}
	defer func() { <-s.slots }()
	return do()
}

// admit waits for a free core.
func (s *Server) admit(ctx context.Context, begun bool) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}
	if !begun {
		if s.waiting.Add(1) > int64(s.o.Queue) {
			s.waiting.Add(-1)
			return refuse(http.StatusTooManyRequests, "too many requests are waiting: try again in a second")
		}
		defer s.waiting.Add(-1)
	}
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return refuse(statusGone, "the caller is gone")
	}
}
