package fs

import (
	"errors"
	iofs "io/fs"
	"strings"
)

// Canonical converts a path to the form that the rest of the program uses: hdfs://HOST/PATH, or a
// local path. It accepts the forms that Hadoop's tools accept: schemes in any case, hdfs:/PATH for
// hdfs:///PATH, and file:///PATH. It refuses schemes of other file systems, which would otherwise
// be taken for names of local folders.
func Canonical(path string) (string, error) {
	scheme, rest, ok := strings.Cut(path, ":")
	if !ok || !isScheme(scheme) {
		return path, nil
	}
	switch name := strings.ToLower(scheme); {
	case name == "hdfs" && strings.HasPrefix(rest, "//"):
		return Scheme + rest[2:], nil
	case name == "hdfs" && strings.HasPrefix(rest, "/"):
		return Scheme + rest, nil
	case name == "hdfs" && rest != "":
		return "", Inputf(path, 0, "paths in HDFS begin at the root: give hdfs:///path or hdfs://host:port/path")
	case name == "file" && strings.HasPrefix(rest, "///"):
		return rest[2:], nil
	case name == "file" && strings.HasPrefix(rest, "/") && !strings.HasPrefix(rest, "//"):
		return rest, nil
	case strings.HasPrefix(rest, "//"):
		return "", Inputf(path, 0, "%s:// is not read or written here: give hdfs://host:port/path, or a path of this machine",
			scheme)
	}
	return path, nil // a local name with a colon
}

// isScheme reports whether s may precede the colon of a URL (RFC 3986, 3.1).
func isScheme(s string) bool {
	for i, c := range []byte(s) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.')) {
			return false
		}
	}
	return s != ""
}

// explainNew is like Explain, for a file to be created: only its folder can be missing.
func explainNew(path string, err error) error {
	if dir := Dir(path); errors.Is(err, iofs.ErrNotExist) && !Exists(dir) {
		return &InputError{Path: path, Err: err, Msg: "no such directory as " + dir + ": make it first, or " +
			"choose another place"}
	}
	return Explain(path, err)
}
