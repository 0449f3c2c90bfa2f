package fs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"

	"taxon/internal/fs/hdfs"
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

// Shared reports whether other hosts see the same file at a path, because it lies in HDFS.
func Shared(path string) bool { return hdfs.Is(path) }

// Join appends names to a path, as filepath.Join does.
func Join(base string, names ...string) string {
	if Shared(base) {
		return hdfs.Join(base, names...)
	}
	return filepath.Join(append([]string{base}, names...)...)
}

// Clean returns the shortest equivalent path.
func Clean(path string) string { return Join(path) }

// Dir returns the folder that holds a path.
func Dir(path string) string {
	if Shared(path) {
		return hdfs.Dir(path)
	}
	return filepath.Dir(path)
}

// IsAbs reports whether a path names the same file whatever the process's folder is.
func IsAbs(path string) bool { return Shared(path) || filepath.IsAbs(path) }

// Abs returns an absolute, clean path for the file that path names in the folder of this process.
func Abs(path string) (string, error) {
	if Shared(path) {
		return Clean(path), nil
	}
	return filepath.Abs(path)
}

// Beside returns the path of a folder of this machine for work on a path. For a local path it is
// the path followed by ext. For a path in HDFS it is a folder in the user's cache, whose name is
// made from path and ext.
func Beside(path, ext string) (string, error) {
	at := Clean(path) + ext
	if !Shared(path) {
		return at, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(at))
	return filepath.Join(cache, "taxon", hex.EncodeToString(sum[:8])+ext), nil
}

// hasGlob reports whether a path is a pattern. It ignores the brackets that the host of an HDFS
// path may have.
func hasGlob(path string) bool {
	if rest, ok := strings.CutPrefix(path, Scheme); ok {
		_, path, _ = strings.Cut(rest, "/")
	}
	return strings.ContainsAny(path, "*?[")
}

// Within reports whether one path in HDFS is another or is below it.
func Within(path, root string) bool {
	a, b := Clean(path), Clean(root)
	return Shared(a) && Shared(b) && (a == b || strings.HasPrefix(a, strings.TrimSuffix(b, "/")+"/"))
}

// explainNew is like Explain, for a file to be created: only its folder can be missing.
func explainNew(disk FS, path string, err error) error {
	if errors.Is(err, iofs.ErrNotExist) {
		if dir := Dir(path); !there(disk, dir) {
			return &InputError{Path: path, Err: err, Msg: "no such directory as " + dir + ": make it first, or " +
				"choose another place"}
		}
	}
	return Explain(path, err)
}

// there reports whether the disk has a file or folder of this name. It returns false if that can't
// be found out.
func there(disk FS, name string) bool {
	_, err := disk.Stat(name)
	return err == nil
}
