package secure

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// HTTPServer makes the server of a small HTTP page (metrics, probes) under the same rules
// as the gRPC services. The policy names the roles of each path; paths that it does not
// name are not found. Serve it by ServeHTTP.
func (o Options) HTTPServer(h http.Handler, p Policy) (*http.Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	// A worker serves nothing else: its file may hold the one token that it calls others with.
	g, err := o.newGuard(p, o.Role)
	if err != nil {
		return nil, err
	}
	s := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serveHTTP(w, r, h) }),
		ReadHeaderTimeout: handshakeTime,
		ReadTimeout:       handshakeTime,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
	}
	if o.serverTLS() {
		files, err := o.watchPair()
		if err != nil {
			return nil, err
		}
		s.TLSConfig = serverConfig(files, []string{"http/1.1"})
	}
	return s, nil
}

// ServeHTTP serves until the server is shut down, which is no error.
func ServeHTTP(s *http.Server, l net.Listener) error {
	if s.TLSConfig != nil {
		l = tls.NewListener(l, s.TLSConfig)
	}
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (g *guard) serveHTTP(w http.ResponseWriter, r *http.Request, h http.Handler) {
	allowed := g.policy[r.URL.Path]
	switch {
	case allowed == nil:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	if g.identified && !open(allowed) {
		var info credentials.TLSInfo
		if r.TLS != nil {
			info.State = *r.TLS
		}
		id, err := g.known(r.Header.Values("Authorization"), info)
		switch {
		case status.Code(err) == codes.Unauthenticated:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, status.Convert(err).Message(), http.StatusUnauthorized)
			return
		case err != nil:
			http.Error(w, status.Convert(err).Message(), http.StatusForbidden)
			return
		case !id.May(allowed):
			http.Error(w, status.Convert(roleError(r.URL.Path, id, allowed)).Message(), http.StatusForbidden)
			return
		}
	}
	h.ServeHTTP(w, r)
}
