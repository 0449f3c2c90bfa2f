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

// describe turns the error of a verb into its exit status and its line, or a line for each of
// several mistakes in the command line (without the leading "taxon: "). Errors without a status
// of their own are failures of the run (1). A wrong path is an exception (2), because only the
// user can correct it.
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

// isPathError says whether the user named a path that can't be used. A full or broken disk does
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

// pathCause is the error without the path that it happened at.
func pathCause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// plainPath turns an error's "open F: no such file" into "F: no such file". The system call does
// not help the user.
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
