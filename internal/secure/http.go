package secure

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// HTTPServer makes a server of HTTP pages and calls under the same rules as the gRPC services.
// The policy lists the roles for each path; a path that ends in a slash covers everything below
// it. "POST /path" is for POST, others are for GET. A path that it does not name is not found.
// Serve it with ServeHTTP.
func (o Options) HTTPServer(h http.Handler, p Policy) (*http.Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	// A worker serves nothing else, so its file may have just the token with which it calls
	// others.
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

// ofPath returns the roles for a path; nil: there is no such path.
func (p Policy) ofPath(method, path string) []Role {
	switch method {
	case http.MethodGet, http.MethodHead:
		method = ""
	default:
		method += " "
	}
	if roles := p[method+path]; roles != nil {
		return roles
	}
	for end := strings.LastIndexByte(path, '/'); end > 0; end = strings.LastIndexByte(path[:end], '/') {
		if roles := p[method+path[:end+1]]; roles != nil {
			return roles
		}
	}
	return nil
}

func (g *guard) serveHTTP(w http.ResponseWriter, r *http.Request, h http.Handler) {
	allowed := g.policy.ofPath(r.Method, r.URL.Path)
	if allowed == nil {
		for _, other := range []string{http.MethodGet, http.MethodPost} {
			if g.policy.ofPath(other, r.URL.Path) != nil {
				http.Error(w, "only "+other, http.StatusMethodNotAllowed)
				return
			}
		}
		http.NotFound(w, r)
		return
	}
	if g.identified && !open(allowed) {
		var info credentials.TLSInfo
		if r.TLS != nil {
			info.State = *r.TLS
		}
		id, err := g.known(r.Header.Values("Authorization"), info)
		if err == nil && !id.May(allowed) {
			err = roleError(r.URL.Path, id, allowed)
		}
		if err != nil {
			g.note(err, r.Method+" "+r.URL.Path, id.Caller, r.RemoteAddr)
			code := http.StatusForbidden
			if status.Code(err) == codes.Unauthenticated {
				w.Header().Set("WWW-Authenticate", "Bearer")
				code = http.StatusUnauthorized
			}
			http.Error(w, status.Convert(err).Message(), code)
			return
		}
		r = r.WithContext(id.with(r.Context()))
	}
	h.ServeHTTP(w, r)
}
