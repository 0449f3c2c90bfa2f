package fs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"taxon/internal/fs/hdfs"
)

// errNotDir is the error for a file where a folder is needed.
var errNotDir error = syscall.ENOTDIR

// Scheme is the prefix of paths of a Hadoop file system.
const Scheme = hdfs.Scheme

// Negotiate adds a Kerberos ticket to a request of one of Hadoop's web services.
func Negotiate(r *http.Request) error { return hdfs.Negotiate(r) }

// successName is the file that marks a folder as complete for Hadoop's tools.
const successName = "_SUCCESS"

// copyBytes is the buffer of a copy between file systems.
const copyBytes = 1 << 20

// readAll reads size bytes and checks that the stream ends there.
func readAll(r io.Reader, size int64) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err := buf.ReadFrom(r)
	return buf.Bytes(), err
}

// Fetch returns a local folder with the files of a folder, for callers that map files into memory:
// the path itself if it is local, or a copy of a remote folder in TMPDIR. The caller calls done
// when the files are mapped or read; it removes the copy.
func Fetch(ctx context.Context, path string) (local string, done func(), err error) {
	if !Shared(path) {
		return path, func() {}, nil
	}
	temp, done, err := TempDir("hdfs")
	if err != nil {
		return "", nil, err
	}
	if err := FetchInto(ctx, path, temp); err != nil {
		done()
		return "", nil, err
	}
	return temp, done, nil
}

// FetchInto copies the files of a remote folder to an existing local one, except those that
// Hadoop's tools ignore.
func FetchInto(ctx context.Context, path, dir string) error {
	names, err := NamesOn(For(ctx, path), path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if hdfs.Hidden(name) {
			continue
		}
		if err := fetchFile(ctx, Join(path, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func fetchFile(ctx context.Context, from, to string) error {
	in, err := For(ctx, from).Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return Explain(to, err)
	}
	defer out.Close()
	if _, err := io.CopyBuffer(struct{ io.Writer }{out}, in, make([]byte, copyBytes)); IsDiskFull(err) {
		return &InputError{Path: from, Msg: "no room for its copy in " + filepath.Dir(to) + ": set TMPDIR, or a worker's " +
			"‹dir›, to a larger disk", Err: err}
	} else if err != nil {
		return Explain(from, err)
	}
	return Explain(to, out.Close())
}

// Renamed replaces the copy's path in an error by the path that the user gave.
func Renamed(err error, local, path string) error {
	var in *InputError
	if local == path || !errors.As(err, &in) || !strings.HasPrefix(in.Path, local) {
		return err
	}
	named := *in
	named.Path = path + strings.TrimPrefix(in.Path, local)
	return &named
}

// upload copies the files of a local folder, with its subfolders, to a new remote one.
func upload(f *hdfs.FS, from, to string) error {
	if err := f.MkdirAll(to); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		src, dst := filepath.Join(from, e.Name()), to+"/"+e.Name()
		if e.IsDir() {
			err = upload(f, src, dst)
		} else {
			err = f.Put(src, dst)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
