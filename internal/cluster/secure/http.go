package secure

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"taxon/internal/ui/option"
)

// HTTPServer makes a server of HTTP pages and calls under the same rules as the gRPC services. The
// policy lists the roles for each path; a path that ends in a slash covers everything below it.
// "POST /path" is for POST, others are for GET. A path that the policy does not name is not found.
// ServeHTTP serves the result. addr is the address on which it will listen. Callers without an
// identity must address the server by one of the names in hosts.
func (o Options) HTTPServer(addr string, h http.Handler, p Policy) (*http.Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	// A worker serves nothing else, so its file may have just the token with which it calls
	// others.
	g, err := o.newGuard(p, o.Role)
	if err != nil {
		return nil, err
	}
	named := newHosts(addr, o.Hosts)
	s := &http.Server{
		Handler: lingering(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			g.serveHTTP(w, r, h,
				named)
		})),
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

// lingerTime bounds how long a connection is read after an answer that came before the request's end.
const lingerTime = 5 * time.Second

// smallBody is about the number of bytes that net/http itself reads of such a request.
const smallBody = 256 << 10

// lingering reads on after an answer that came before the request's end, such as a refusal, and drops
// what it reads. A connection that is closed with bytes unread is reset, and a caller who is still
// sending never sees the answer.
func lingering(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength >= 0 && r.ContentLength <= smallBody {
			h.ServeHTTP(w, r)
			return
		}
		body := &endedBody{ReadCloser: r.Body}
		r = r.WithContext(r.Context()) // a copy
		r.Body = body
		h.ServeHTTP(w, r)
		waits := !body.begun && r.Header.Get("Expect") != "" // it sends nothing before it is told to
		if body.ended || waits || w.Header().Get("Content-Length") == "" {
			return
		}
		w.Header().Set("Connection", "close")
		control := http.NewResponseController(w)
		if errors.Join(control.EnableFullDuplex(), control.Flush(),
			control.SetReadDeadline(time.Now().Add(lingerTime))) == nil {
			_, _ = io.Copy(io.Discard, body) // the answer is out
		}
	})
}

// endedBody is the body of a request. It counts what was read and records whether the end was
// reached.
type endedBody struct {
	io.ReadCloser
	begun, ended bool
}

func (b *endedBody) Read(p []byte) (int, error) {
	b.begun = true
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err != nil
	return n, err
}

// refuse answers with a line of text whose length is known, so that its end is, too.
func refuse(w http.ResponseWriter, text string, code int) {
	text = option.Names(text)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // a caller that is gone wants no answer
}

// ofPath returns the roles that may call a path, or nil if there is no such path.
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

func (g *guard) serveHTTP(w http.ResponseWriter, r *http.Request, h http.Handler, named hosts) {
	allowed := g.policy.ofPath(r.Method, r.URL.Path)
	if allowed == nil {
		for _, other := range []string{http.MethodGet, http.MethodPost} {
			if g.policy.ofPath(other, r.URL.Path) != nil {
				refuse(w, "only "+other, http.StatusMethodNotAllowed)
				return
			}
		}
		refuse(w, "404 page not found", http.StatusNotFound)
		return
	}
	if !g.identified && !open(allowed) && !named.allow(r.Host) {
		refuse(w, fmt.Sprintf("nothing is served here for the host %q: use an address or localhost, or let callers use the "+
			"name by ‹allow-host›", r.Host), http.StatusForbidden)
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
			refuse(w, status.Convert(err).Message(), code)
			return
		}
		r = r.WithContext(id.with(r.Context()))
	}
	h.ServeHTTP(w, r)
}
