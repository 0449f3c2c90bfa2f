package metrics

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"

	"taxon/internal/cluster/secure"
)

// closing bounds how long a running scrape may delay the end of a process.
const closing = 2 * time.Second

// Options say where figures are served.
type Options struct {
	// Addr is the address, host:port. If it is empty, they are not served.
	Addr string
	// Flag is the name of the flag that gave Addr, for errors. If it is empty, it is metrics.
	Flag string
}

// AddFlags defines --metrics.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Addr, "metrics", o.Addr, "`ADDR` (host:port) of the figures /metrics, the probes /healthz and "+
		"/readyz, and the coordinator's page / (default none)")
}

// Refused counts a refused call.
func (p *Process) Refused(code codes.Code) { p.refused.WithLabelValues(code.String()).Inc() }

// Extra is a further path on a process's page.
type Extra struct {
	Routes func(*http.ServeMux)
	Policy secure.Policy // who may call them
}

// Page is a page that is being served.
type Page struct {
	Addr string // host:port that it is bound to
	URL  string // of the figures

	server *http.Server
	served sync.WaitGroup
	err    error
}

// Handler answers requests for the figures.
func (p *Process) Handler() http.Handler {
	return promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// Serve serves the figures at o.Addr, under the rules of sec. /metrics is for the roles that may
// read. /healthz (the process answers) and /readyz (ready returns nil) are for everyone, because
// probes have no credentials. A nil ready means always. Without an address Serve returns neither a
// Page nor an error. Close ends it.
func (p *Process) Serve(ctx context.Context, o Options, sec secure.Options, ready func() error,
	more ...Extra) (*Page, error) {
	if o.Addr == "" {
		return nil, nil
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", p.Handler())
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ready != nil {
			if err := ready(); err != nil {
				// The reason may name hosts and files, so it is only logged.
				http.Error(w, "not ready", http.StatusServiceUnavailable)
				return
			}
		}
		_, _ = fmt.Fprintln(w, "ok")
	})
	policy := secure.Policy{
		"/metrics": {secure.ReadOnly, secure.Submit},
		"/healthz": {secure.Anyone},
		"/readyz":  {secure.Anyone},
	}
	for _, e := range more {
		e.Routes(mux)
		maps.Copy(policy, e.Policy)
	}
	server, err := sec.HTTPServer(o.Addr, mux, policy)
	if err != nil {
		return nil, err
	}
	l, err := sec.Listen(ctx, o.Addr)
	if err != nil {
		return nil, fmt.Errorf("‹%s›: %w", cmp.Or(o.Flag, "metrics"), err)
	}
	page := &Page{Addr: l.Addr().String(), server: server}
	page.URL = "http://" + page.Addr + "/metrics"
	if server.TLSConfig != nil {
		page.URL = "https://" + page.Addr + "/metrics"
	}
	page.served.Go(func() { page.err = secure.ServeHTTP(server, l) })
	return page, nil
}

// Close ends the page. It returns the error that ended it earlier, if any. A nil Page may be
// closed.
func (p *Page) Close() error {
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	if err := p.server.Shutdown(ctx); err != nil {
		_ = p.server.Close() // its error is Shutdown's
	}
	p.served.Wait()
	return p.err
}
