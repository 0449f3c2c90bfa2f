package secure

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// hosts are the names under which callers may address a server that asks for no identity. A web page
// can have its own name resolve to this machine's address, and would then call the server through a
// visitor's browser. The browser sends that name, which is none of these.
type hosts map[string]bool

// newHosts returns the given names, this machine's name, and the host of the address to listen on.
func newHosts(addr string, given []string) hosts {
	h := hosts{"localhost": true}
	if own, err := os.Hostname(); err == nil {
		h[strings.ToLower(own)] = true
	}
	for _, name := range append([]string{addr}, given...) {
		h[hostOf(name)] = true
	}
	return h
}

// hostOf returns the host of "host:port" or "host".
func hostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		addr = host
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(addr, "[]")), ".")
}

// allow reports whether a request may name this host. Addresses may be named: none of them resolves to
// another.
func (h hosts) allow(addr string) bool {
	host := hostOf(addr)
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host != "" && (h[host] || strings.HasSuffix(host, ".localhost"))
}

// SameOrigin reports whether a request comes from a page of this server, or from no page. A browser sends
// the page's origin with each request that may change something.
func SameOrigin(r *http.Request) bool {
	origin := r.Header.Values("Origin")
	if len(origin) == 0 {
		return true
	}
	u, err := url.Parse(origin[0])
	return err == nil && len(origin) == 1 && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}
