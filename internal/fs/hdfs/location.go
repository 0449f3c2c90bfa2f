package hdfs

import (
	"path"
	"strconv"
	"strings"
)

// Scheme is the prefix of every path of this package.
const Scheme = "hdfs://"

// Location is a parsed path.
type Location struct {
	// User is the user to act as. If it is empty, it comes from the environment.
	User string

	// Host is a host, host:port or name service. If it is empty, it comes from the configuration.
	Host string

	// Path is absolute and clean.
	Path string
}

// Is reports whether a path lies on a Hadoop file system.
func Is(path string) bool { return strings.HasPrefix(path, Scheme) }

// Parse splits a path. Percent signs and question marks are ordinary characters, as in Hadoop's
// own tools.
func Parse(raw string) (Location, error) {
	rest, ok := strings.CutPrefix(raw, Scheme)
	if !ok {
		return Location{}, inputf("not a path of the form hdfs://host:port/path")
	}
	host, file, _ := strings.Cut(rest, "/")
	l := Location{Host: host, Path: path.Clean("/" + file)}
	if at := strings.LastIndex(host, "@"); at >= 0 {
		l.User, l.Host = host[:at], host[at+1:]
		if l.User == "" || strings.Contains(l.User, ":") {
			return Location{}, inputf("give the user as hdfs://user@host:port/path")
		}
	}
	if strings.ContainsAny(raw, "\x00\n\r") {
		return Location{}, inputf("not a usable path")
	}
	if !validHost(l.Host) {
		return Location{}, inputf("host %q: expected hdfs://host:port/path", l.Host)
	}
	return l, nil
}

// validHost accepts "", a name or address, and either with a port.
func validHost(host string) bool {
	name := host
	if i := strings.LastIndex(host, ":"); i >= 0 && !strings.HasSuffix(host, "]") {
		port, err := strconv.ParseUint(host[i+1:], 10, 16)
		if err != nil || port == 0 {
			return false
		}
		name = host[:i]
	}
	if in, ok := strings.CutPrefix(name, "["); ok {
		return strings.HasSuffix(in, "]") && strings.Contains(in, ":")
	}
	return (name != "" || host == "") && !strings.ContainsAny(name, ":[] \t\\")
}

// With returns the text for another path on the same file system.
func (l Location) With(file string) string {
	if l.User != "" {
		return Scheme + l.User + "@" + l.Host + file
	}
	return Scheme + l.Host + file
}

// Join appends names to a path of this package.
func Join(base string, names ...string) string {
	l, err := Parse(base)
	if err != nil {
		return strings.TrimRight(base, "/") + "/" + path.Join(names...)
	}
	return l.With(path.Join(append([]string{l.Path}, names...)...))
}

// Dir returns the folder that holds a path of this package.
func Dir(name string) string {
	l, err := Parse(name)
	if err != nil {
		return name
	}
	return l.With(path.Dir(l.Path))
}
