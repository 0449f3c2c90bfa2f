package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"taxon/internal/fs"
	"taxon/internal/metrics"
	"taxon/internal/secure"
)

// processOptions are the flags that coordinator, store and worker share.
type processOptions struct {
	name     string
	dir      string
	listen   string
	listenFD int
	roots    []string
	security secure.Options
	metrics  metrics.Options
	log      metrics.LogOptions
}

// envCoordinator stands in for --coordinator.
const envCoordinator = "TAXON_COORDINATOR"

// coordinatorFlag defines --coordinator.
func coordinatorFlag(f *pflag.FlagSet, p *string) {
	f.StringVar(p, "coordinator", os.Getenv(envCoordinator), "`ADDR` (host:port) of the coordinator, or the hdfs:// file in which it says where it is (default "+envCoordinator+")")
	f.Lookup("coordinator").DefValue = "" // the environment's value belongs in no help text
}

// needCoordinator refuses a command line without the coordinator's address.
func needCoordinator(verb, addr string) error {
	if fs.IsRemote(addr) {
		return nil // read when it is called
	}
	if addr == "" {
		return usagef("%s: which cluster? give --coordinator HOST:PORT or set %s", verb, envCoordinator)
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return usagef("%s: --coordinator %s: must be HOST:PORT", verb, quoteIfOdd(addr))
	}
	return nil
}

// listenFlags defines where a process listens.
func (o *processOptions) listenFlags(f *pflag.FlagSet, addr string) {
	f.StringVar(&o.listen, "listen", addr, "`ADDR` (host:port) to listen on; beyond loopback it needs TLS, see `taxon help certs`; port 0: any")
	f.IntVar(&o.listenFD, "listen-fd", -1, "listening socket `N` that the process was given")
	f.Lookup("listen-fd").Hidden = true // for `taxon cluster`
}

// frameFlags defines the groups that all processes share.
func (o *processOptions) frameFlags(cmd *cobra.Command) {
	flagGroup(cmd, "Security", o.security.AddFlags)
	flagGroup(cmd, "Watching", func(f *pflag.FlagSet) {
		o.metrics.AddFlags(f)
		o.log.AddFlags(f)
	})
}

// process is what a running coordinator, store or worker has in common.
type process struct {
	role   string
	o      *processOptions
	log    *slog.Logger
	figure *metrics.Process
	page   *metrics.Page
	server *grpc.Server // nil: it does not listen
	addr   string       // bound
	listen net.Listener
}

// newProcess opens the process's log and listener; nothing is served yet. more are options
// of its server beside those that all have.
func newProcess(ctx context.Context, a *app, role string, o *processOptions, listens bool, more ...grpc.ServerOption) (*process, error) {
	log, err := o.log.Logger(a.stderr)
	if err != nil {
		return nil, usagef("%s: %w", role, err)
	}
	p := &process{role: role, o: o, log: log.With(slog.String("process", role), slog.String("name", o.name)), figure: metrics.NewProcess(role, readVersion().Version)}
	o.security.Warn = metrics.Warner(p.log, "security files")
	o.security.Refused = p.figure.Refused
	o.security.Role = secure.Role(role)
	if err := o.security.Validate(); err != nil {
		return nil, usagef("%s: %w", role, err)
	}
	if !listens {
		return p, nil
	}
	options, err := o.security.ServerOptions(secure.DefaultPolicy())
	if err != nil {
		return nil, usagef("%s: %w", role, err)
	}
	p.server = grpc.NewServer(slices.Concat(options, p.figure.GRPC(), more)...)
	if p.listen, err = o.listener(ctx); err != nil {
		return nil, usagef("%s: %w", role, err)
	}
	p.addr = p.listen.Addr().String()
	return p, nil
}

// yieldCores lets a process whose work is waiting for disks and callers run on a quarter
// of the cores: on more, idle threads look for work, which takes a fifth of what such a
// process takes. GOMAXPROCS in the environment overrides it.
func yieldCores() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/4))
	}
}

// listener opens the address, or takes the socket that the process was given.
func (o *processOptions) listener(ctx context.Context) (net.Listener, error) {
	if o.listenFD < 0 {
		return o.security.Listen(ctx, o.listen)
	}
	f := os.NewFile(uintptr(o.listenFD), "listener")
	if f == nil {
		return nil, fmt.Errorf("--listen-fd %d: no such file", o.listenFD)
	}
	defer f.Close() // the listener has a copy
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("--listen-fd %d: %w", o.listenFD, err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("--listen-fd %d: a socket of loopback is needed", o.listenFD), l.Close())
	}
	return l, nil
}

// serve runs until ctx ends, which is a good end: it serves, shows the figures, and does
// work, if there is any; work calls p.ready. healthy is what /readyz asks; nil: nothing.
func (p *process) serve(ctx context.Context, a *app, healthy func() error, work func(ctx context.Context) error, extra string) error {
	page, err := p.figure.Serve(ctx, p.o.metrics, p.o.security, healthy)
	if err != nil {
		return usagef("%s: %w", p.role, err)
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
			cancel() // a process that can't serve ends
		}()
	} else {
		ended <- nil
	}
	if work != nil {
		err = work(serving) // says itself when it is ready
	} else {
		p.ready(a, extra)
		<-serving.Done()
	}
	return errors.Join(err, p.stop(ended))
}

// ready prints the one line that says that the process can be used.
func (p *process) ready(a *app, extra string) {
	where := p.addr
	if where == "" {
		where = p.o.name
	}
	line := fmt.Sprintf("taxon %s: ready on %s", p.role, where)
	if p.page != nil {
		extra += ", metrics on " + p.page.URL
	}
	fmt.Fprintln(a.stdout, line+extra)
	p.log.Info("ready", slog.String("addr", p.addr), slog.Int("pid", os.Getpid()))
}

// farewell bounds how long calls under way may hold up the end of a process.
const farewell = 2 * time.Second

// stop ends the serving: calls under way may finish for a little while.
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
		case <-time.After(farewell):
			p.server.Stop()
			<-done
		}
		// Stopped before it began to serve is a good end, too.
		if err = <-ended; errors.Is(err, grpc.ErrServerStopped) {
			err = nil
		}
	}
	p.log.Info("ended")
	return errors.Join(err, p.page.Close())
}

// hostName is what a process calls itself where no name is given.
func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}
