package fs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

// OutFile is a file that appears under its name only when it is whole: it is written next to its
// place and renamed by Commit, here or on a Hadoop file system. A device or pipe is written
// directly.
type OutFile struct {
	out    io.WriteCloser // *os.File, or a file of a Hadoop file system, published by its Close
	path   string         // as the user gave it
	target string         // what the rename replaces; "": written directly
	done   bool
}

// CreateFile begins a file. Call Commit to publish it, and defer Abort to clean up.
func CreateFile(path string) (*OutFile, error) {
	if IsRemote(path) {
		return createRemoteFile(path)
	}
	target, direct, err := resolve(path)
	if err != nil {
		return nil, err
	}
	if direct {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, Explain(path, err)
		}
		return &OutFile{out: f, path: path}, nil
	}
	f, err := createBeside(target)
	if err != nil {
		return nil, explainNew(path, err)
	}
	return &OutFile{out: f, path: path, target: target}, nil
}

// resolve follows links and says whether the target is a device or pipe.
func resolve(path string) (target string, direct bool, err error) {
	if path == "" {
		return "", false, Inputf("", 0, "empty path: give a file to write")
	}
	info, err := os.Stat(path)
	if err != nil {
		return path, false, nil // most likely it is new; creating it shows
	}
	if info.IsDir() {
		return "", false, Inputf(path, 0, "is a directory: give a file to write")
	}
	if !info.Mode().IsRegular() {
		return path, true, nil
	}
	if target, err = filepath.EvalSymlinks(path); err != nil {
		return "", false, Explain(path, err)
	}
	return target, false, nil
}

// createBeside makes a new file next to target. Its name contains the process id, so that two
// processes never share one, and a number for several in one process. Living processes lock theirs;
// those that killed ones have left of the same target are removed first.
func createBeside(target string) (*os.File, error) {
	dir, base := filepath.Split(target)
	sweepHalves(dir, base)
	const tries = 1000
	for i := 0; ; i++ {
		name := filepath.Join(dir, fmt.Sprintf(".%s.%d-%d.part", base, os.Getpid(), i))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			if tryLock(f) == nil && stands(f, name) {
				return f, nil
			}
			f.Close() // before it was locked, another process took it for a killed one's
		} else if !os.IsExist(err) {
			return nil, err
		}
		if i == tries {
			return nil, err
		}
	}
}

// HalfWritten says whether a name is that of a file on its way to another name, which it returns.
func HalfWritten(name string) (target string, ok bool) {
	m := halfName.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	return m[1], true
}

var halfName = regexp.MustCompile(`^\.(.+)\.[0-9]+-[0-9]+\.part$`)

// sweepHalves removes what killed processes have left of files on their way to a name. What can't be
// removed stays.
func sweepHalves(dir, base string) {
	entries, _ := os.ReadDir(filepath.Clean(dir))
	for _, e := range entries {
		if target, ok := HalfWritten(e.Name()); !ok || target != base || !e.Type().IsRegular() {
			continue
		}
		name := filepath.Join(dir, e.Name())
		f, err := OpenRegular(name)
		if err != nil {
			continue
		}
		if abandoned(f) && stands(f, name) {
			os.Remove(name)
		}
		f.Close()
	}
}

// Write implements io.Writer. Errors name the path as the user gave it.
func (f *OutFile) Write(p []byte) (int, error) {
	n, err := f.out.Write(p)
	return n, Explain(f.path, err)
}

// Commit flushes the file to the disk and publishes it under its name.
func (f *OutFile) Commit() error {
	if f.done {
		return nil
	}
	if f.target == "" {
		f.done = true
		return Explain(f.path, f.out.Close())
	}
	defer f.Abort()
	file := f.out.(*os.File) // only a local file has a target
	if err := file.Sync(); err != nil {
		return Explain(f.path, err)
	}
	// The rename comes before Close, which gives up the lock: a file that is closed under its old
	// name would pass for a killed process's.
	if err := os.Rename(file.Name(), f.target); err != nil {
		return Explain(f.path, err)
	}
	f.done = true
	if err := file.Close(); err != nil {
		return Explain(f.path, err)
	}
	return Explain(f.path, syncDir(filepath.Dir(f.target)))
}

// Abort drops an uncommitted file; after Commit it does nothing.
func (f *OutFile) Abort() {
	if f.done {
		return
	}
	f.done = true
	switch out := f.out.(type) {
	case remoteOut:
		out.Abort()
	case *os.File:
		if f.target != "" {
			os.Remove(out.Name()) // while it is locked, so that the name is still this file's
		}
		out.Close()
	}
}

// WriteFile writes a whole file in one atomic step.
func WriteFile(path string, data []byte) error {
	f, err := CreateFile(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Commit()
}

// syncDir makes a rename within dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return ignoreUnsupported(d.Sync())
}
