// Package node runs the processes of a cluster: coordinator, store and worker. It builds each
// from its parts, serves it until its context ends, and reports when it is ready.
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

// Process are the settings that coordinator, store and worker share.
type Process struct {
	Name     string
	Dir      string
	Listen   string
	ListenFD int      // a socket that the process inherited; below 0: none
	Roots    []string // folders in which jobs may name data
	Security secure.Options
	Metrics  metrics.Options
	Log      metrics.LogOptions
	LogTo    io.Writer
	Version  string
	Say      func(line string) // prints the lines that the process's starter waits for; not called if the log is JSON
}

// process is what a running coordinator, store or worker shares.
type process struct {
	role   string
	o      *Process
	log    *slog.Logger
	seldom *metrics.Seldom // for lines that strangers can cause
	figure *metrics.Process
	page   *metrics.Page
	pages  []metrics.Extra // shown beside the figures
	server *grpc.Server    // nil: it does not listen
	addr   string          // bound
	listen net.Listener
}

// newProcess opens the process's log and listener. Nothing is served yet. more are further
// options of its server.
func newProcess(ctx context.Context, role string, o *Process, listens bool, more ...grpc.ServerOption) (*process, error) {
	log, err := o.Log.Logger(o.LogTo)
	if err != nil {
		return nil, option.Errorf("%s: %w", role, err)
	}
	p := &process{role: role, o: o, log: log.With(slog.String("process", role), slog.String("name", o.Name)), figure: metrics.NewProcess(role, o.Version)}
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

// yieldCores lets a process that mostly waits for disks and callers run on a quarter of the
// cores. On more, idle threads that look for work take a fifth of its CPU time. GOMAXPROCS in the
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

// serve serves calls and figures and runs work, which calls p.ready, until ctx ends; that is a
// clean end. healthy decides /readyz; nil: always.
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

// ready prints the line that says that the process can be used. One that logs JSON says so in its log
// alone.
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

// stop ends the serving. Running calls may finish within shutdownGrace.
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

// hostName is the name of a process by default.
func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// explained returns a function that words errors of calls to the coordinator, then warns.
func explained(warn func(error), coordinator string) func(error) {
	return func(err error) {
		if plain := cluster.Explain(coordinator, err); plain != err {
			err = fmt.Errorf("%w: it is called again and again", plain)
		}
		warn(err)
	}
}

// denied is the error of a process that coordinator and process do not accept, or whose place
// another has.
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
	return fmt.Errorf("%s: ‹%s=%d›: must be %s or more: a number without a unit is bytes, write 4GiB", verb, flag, bytes, format.Bytes(least))
}
