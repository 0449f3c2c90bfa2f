package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"taxon/internal/cluster/jobs"
	taxonfs "taxon/internal/fs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// describe returns the exit status of a verb's error and its text, without the leading "taxon: ".
// The text is one line, or a line for each mistake in the command line. An error without a status
// of its own is a failure of the run (1), except that a wrong path gives 2, because only the user
// can correct it.
func describe(ctx context.Context, err error) (code int, line string) {
	line = format.OneLine(plainPath(err))
	var s *exitError
	var o *option.Error
	switch {
	case errors.As(err, &s):
		return s.code, line
	case errors.As(err, &o) && len(o.Lines) > 1:
		lines := make([]string, len(o.Lines))
		for i, l := range o.Lines {
			lines[i] = format.OneLine(l)
		}
		return exitUsage, strings.Join(lines, "\n")
	case errors.As(err, &o):
		return exitUsage, line
	case errors.Is(err, jobs.ErrInterrupted):
		return exitInterrupted, line
	case jobs.IsCancelled(err) && errors.Is(context.Cause(ctx), jobs.ErrInterrupted):
		return exitInterrupted, "interrupted"
	case taxonfs.IsInput(err), isPathError(err):
		return exitUsage, line
	}
	return exitFailed, line
}

// isPathError reports whether the user named a path that cannot be used. A full or broken disk does
// not count.
func isPathError(err error) bool {
	var p *fs.PathError
	if !errors.As(err, &p) {
		return false
	}
	for _, e := range []error{fs.ErrNotExist, fs.ErrPermission, fs.ErrExist, syscall.EISDIR,
		syscall.ENOTDIR, syscall.EROFS, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.ENOTEMPTY} {
		if errors.Is(p.Err, e) {
			return true
		}
	}
	return false
}

// pathCause returns the error without its path.
func pathCause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// plainPath removes the name of the system call from an error: "open F: no such file" becomes "F:
// no such file".
func plainPath(err error) string {
	msg := err.Error()
	var p *fs.PathError
	if errors.As(err, &p) {
		short := p.Path + ": " + p.Err.Error()
		msg = strings.Replace(msg, p.Error(), short, 1)
		msg = strings.Replace(msg, p.Path+": "+p.Path+": ", p.Path+": ", 1)
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		msg = strings.Replace(msg, l.Error(), l.New+": "+l.Err.Error(), 1)
	}
	return msg
}
