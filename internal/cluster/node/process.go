// Package node runs the processes of a cluster: coordinator, store and worker. It builds each from
// its parts, serves it until its context ends, and reports when it is ready. The Run methods of
// Coordinator, Store and Worker are the entry points.
package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/cluster"
	"taxon/internal/cluster/metrics"
	"taxon/internal/cluster/secure"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// Process configures what coordinator, store and worker have in common.
type Process struct {
	// Name is the name of the process in lists and logs. A store's name is the id of a new shard.
	Name string

	// Dir is the folder in which the process keeps its files.
	Dir string

	// Listen is the address to listen on, host:port.
	Listen string

	// ListenFD is the file descriptor of a socket that the process inherited, in place of Listen. A
	// negative number means that there is none.
	ListenFD int

	// Roots are the folders in which jobs may name data.
	Roots []string

	// Security says how calls are protected.
	Security secure.Options

	// Metrics says where figures and probes are served.
	Metrics metrics.Options

	// Log is the format and level of the log.
	Log metrics.LogOptions

	// LogTo is where the log is written.
	LogTo io.Writer

	// Version is the version of taxon.
	Version string

	// Say prints the lines that the process's starter waits for. It is not called if the log is
	// JSON.
	Say func(line string)
}

// process is what a running coordinator, store or worker has in common.
type process struct {
	role string
	o    *Process
	log  *slog.Logger
	// seldom logs what strangers can cause.
	seldom *metrics.Seldom
	figure *metrics.Process
	page   *metrics.Page
	// pages are served in addition to the figures.
	pages []metrics.Extra
	// server is nil if the process does not listen.
	server *grpc.Server
	// addr is the address that is bound.
	addr   string
	listen net.Listener
}

// newProcess opens the process's log and listener. It serves nothing yet. more are further options
// of the server.
func newProcess(ctx context.Context, role string, o *Process, listens bool,
	more ...grpc.ServerOption) (*process, error) {
	log, err := o.Log.Logger(o.LogTo)
	if err != nil {
		return nil, option.Errorf("%s: %w", role, err)
	}
	p := &process{role: role, o: o, log: log.With(slog.String("process", role), slog.String("name", o.Name)),
		figure: metrics.NewProcess(role, o.Version)}
	if o.Security.Cert != "" {
		p.figure.Certificate(o.Security.CertificateExpiry)
	}
	o.Security.Warn = metrics.Warner(p.log, "security files")
	p.seldom = &metrics.Seldom{Log: p.log}
	o.Security.Refused = p.tellRefusal
	o.Security.Role = secure.Role(role)
	if err := o.Security.Validate(); err != nil {
		return nil, option.Errorf("%s: %w", role, err)
	}
	if !listens {
		return p, nil
	}
	options, err := o.Security.ServerOptions(secure.DefaultPolicy())
	if err != nil {
		return nil, option.Errorf("%s: %w", role, err)
	}
	p.server = grpc.NewServer(slices.Concat(options, p.figure.GRPC(), more)...)
	if p.listen, err = o.listener(ctx); err != nil {
		return nil, option.Errorf("%s: %w", role, err)
	}
	p.addr = p.listen.Addr().String()
	return p, nil
}

// yieldCores lets a process that mostly waits for disks and callers run on a quarter of the cores.
// On more, idle threads that look for work take a fifth of its CPU time. GOMAXPROCS in the
// environment overrides it.
func yieldCores() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/4))
	}
}

// listener opens the address, or takes the inherited socket.
func (o *Process) listener(ctx context.Context) (net.Listener, error) {
	if o.ListenFD < 0 {
		return o.Security.Listen(ctx, o.Listen)
	}
	f := os.NewFile(uintptr(o.ListenFD), "listener")
	if f == nil {
		return nil, fmt.Errorf("‹listen-fd=%d›: no such file", o.ListenFD)
	}
	defer f.Close() // the listener has a copy
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("‹listen-fd=%d›: %w", o.ListenFD, err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("‹listen-fd=%d›: a socket of loopback is needed", o.ListenFD), l.Close())
	}
	return l, nil
}

// serve serves calls and figures, and runs work, until ctx ends. It returns nil then. work must
// call p.ready. healthy decides the answer of /readyz. A nil healthy means always.
func (p *process) serve(ctx context.Context, healthy func() error, work func(ctx context.Context) error) error {
	page, err := p.figure.Serve(ctx, p.o.Metrics, p.o.Security, healthy, p.pages...)
	if err != nil {
		return option.Errorf("%s: %w", p.role, err)
	}
	p.page = page
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	if p.server != nil {
		health := secure.Register(p.server)
		if err := secure.DefaultPolicy().Check(p.server); err != nil {
			return err
		}
		defer health.Shutdown()
		go func() {
			ended <- p.server.Serve(p.listen)
			cancel() // a process that can't serve must end
		}()
	} else {
		ended <- nil
	}
	err = work(serving)
	return errors.Join(err, p.stop(ended))
}

// ready prints the line that says that the process can be used. A process that logs JSON says so in
// its log alone.
func (p *process) ready(extra string) {
	where := cmp.Or(p.addr, p.o.Name)
	line := fmt.Sprintf("taxon %s: ready on %s", p.role, where)
	attrs := []any{slog.String("addr", p.addr), slog.Int("pid", os.Getpid())}
	if p.page != nil {
		extra += ", metrics on " + p.page.URL
		attrs = append(attrs, slog.String("metrics", p.page.URL))
	}
	p.say(line + extra)
	p.log.Info("ready", attrs...)
}

// say prints a line that the process's starter waits for.
func (p *process) say(line string) {
	if !p.o.Log.JSON() {
		p.o.Say(line)
	}
}

// shutdownGrace bounds how long running calls may delay the end of a process.
const shutdownGrace = 2 * time.Second

// stop stops serving. Running calls have the time shutdownGrace to finish.
func (p *process) stop(ended <-chan error) error {
	var err error
	if p.server != nil {
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.server.GracefulStop()
		}()
		select {
		case <-done:
		case <-time.After(shutdownGrace):
			p.server.Stop()
			<-done
		}
		// It was stopped before it began to serve: a clean end, too.
		if err = <-ended; errors.Is(err, grpc.ErrServerStopped) {
			err = nil
		}
	}
	p.log.Info("ended")
	return errors.Join(err, p.page.Close())
}

// hostName returns the default name of a process.
func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// explained returns a function that rephrases errors of calls to the coordinator and passes them to
// warn.
func explained(warn func(error), coordinator string) func(error) {
	return func(err error) {
		if plain := cluster.Explain(coordinator, err); plain != err {
			err = fmt.Errorf("%w: it is called again and again", plain)
		}
		warn(err)
	}
}

// denied returns the error of a process that the coordinator does not accept, or that another
// process has replaced.
func denied(role, coordinator string, err error) error {
	if secure.Denied(err) {
		return option.Errorf("%s: %w", role, cluster.Explain(coordinator, err))
	}
	if status.Code(err) == codes.AlreadyExists {
		return option.Errorf("%s: %s", role, status.Convert(err).Message())
	}
	return err
}

// sizeFrom refuses a size that is surely a mistake, such as 4 for 4GiB.
func sizeFrom(verb, flag string, bytes, least int64) error {
	if bytes == 0 || bytes >= least {
		return nil
	}
	return fmt.Errorf("%s: ‹%s=%d›: must be %s or more: a number without a unit is bytes, write 4GiB", verb, flag, bytes,
		format.Bytes(least))
}
