package fs

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"taxon/internal/fs/vfs"
)

// OutDir is a folder that appears under its name only when it is complete. It is filled at Path
// (the name with the suffix .part) under a lock, then renamed by Commit. A folder on a Hadoop file
// system is filled in a temporary folder of this machine and copied by Commit.
type OutDir struct {
	disk          vfs.FS // file system of work, and of target unless that is remote
	name          string // name as the user gave it
	target        string
	work          string
	lock          vfs.File
	replace       bool
	remote        bool // target is on a Hadoop file system, work on this machine
	done          bool
	removeParents func() // removes the parents that were created
}

// CreateDirOn is like CreateDir, for a folder of disk.
func CreateDirOn(disk vfs.FS, path string, replace bool) (*OutDir, error) {
	if path == "" {
		return nil, Inputf("", 0, "empty path: give a folder to write")
	}
	if path == Stdin {
		return nil, Inputf(path, 0, "a folder cannot go to standard output: give its path")
	}
	if err := CheckFolder(path); err != nil {
		return nil, err
	}
	d := &OutDir{disk: disk, name: path, target: filepath.Clean(path), replace: replace}
	if real, err := disk.RealPath(d.target); err == nil {
		d.target = real
	}
	d.work = d.target + ".part"
	if err := d.checkTarget(); err != nil {
		return nil, err
	}
	var err error
	if d.removeParents, err = makeParents(disk, d.target); err != nil {
		return nil, Explain(path, err)
	}
	if err := d.claim(); err != nil {
		d.removeParents()
		return nil, err
	}
	return d, nil
}

// CheckFolder returns an error if a path has no last element. The name of the working folder is
// that element with the suffix .part or .train.
func CheckFolder(path string) error {
	switch filepath.Base(filepath.Clean(path)) {
	case ".", "..", string(filepath.Separator):
		if !Shared(path) {
			return Inputf(path, 0, "is a folder that cannot be replaced: give the name of a new one, such as %s",
				filepath.Join(path, "new"))
		}
	}
	return nil
}

// MakeParents creates the missing folders above path. undo removes those that are still empty, for
// a caller that fails later. If MakeParents fails, it leaves no new folder.
func MakeParents(path string) (undo func(), err error) {
	if Shared(path) { // made by whoever writes there
		return func() {}, nil
	}
	return makeParents(vfs.OS, path)
}

func makeParents(disk vfs.FS, path string) (undo func(), err error) {
	var made []string // created folders, innermost first
	for dir := filepath.Dir(filepath.Clean(path)); ; dir = filepath.Dir(dir) {
		if _, err := disk.Lstat(dir); !os.IsNotExist(err) {
			break
		}
		made = append(made, dir)
	}
	undo = func() {
		for _, dir := range made {
			_ = disk.Remove(dir) // fails if a folder is not empty
		}
	}
	if err := vfs.MkdirAll(disk, filepath.Dir(path), 0o777); err != nil {
		undo()
		return nil, err
	}
	return undo, nil
}

// checkTarget returns an error if Commit cannot, or must not, replace the target.
func (d *OutDir) checkTarget() error {
	info, err := d.disk.Stat(d.target)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return Explain(d.name, err)
	}
	if !info.IsDir() {
		return Inputf(d.name, 0, "is a file: give a folder to write")
	}
	entries, err := d.disk.ReadDir(d.target)
	if err != nil {
		return Explain(d.name, err)
	}
	if len(entries) > 0 && !d.replace {
		return Inputf(d.name, 0, "exists already: choose another place, or use ‹force› to replace it")
	}
	return nil
}

// claim creates and locks the working folder. It holds only the mark.
func (d *OutDir) claim() error {
	if err := claimable(d.disk, d.work); err != nil { // before it is opened, because it may be a pipe
		return err
	}
	if err := d.disk.Mkdir(d.work, 0o777); err != nil && !os.IsExist(err) {
		return Explain(d.name, err)
	}
	lock, err := d.disk.Open(d.work)
	if err != nil {
		return Explain(d.name, err)
	}
	if vfs.Busy(lock) {
		lock.Close()
		return Inputf(d.name, 0, "another process is writing it (%s): wait for it or choose another place: %w", d.work,
			vfs.ErrLocked)
	}
	d.lock = lock
	if err := errors.Join(emptyOwn(d.disk, d.work), mark(d.disk, d.work)); err != nil {
		lock.Close()
		return Explain(d.name, firstOf(err))
	}
	return nil
}

// Path returns the working folder, into which files are written.
func (d *OutDir) Path() string { return d.work }

// Name returns the folder's name as the user gave it.
func (d *OutDir) Name() string { return d.name }

// Join returns a path within the working folder.
func (d *OutDir) Join(name string) string { return filepath.Join(d.work, name) }

// Create creates a file in the working folder. The caller closes it by vfs.CloseSynced.
func (d *OutDir) Create(name string) (vfs.File, error) {
	f, err := d.disk.OpenFile(d.Join(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	return f, Explain(d.name, err)
}

// Write writes a new file in the working folder. The file is durable when Write returns.
func (d *OutDir) Write(name string, data []byte) error {
	return Explain(d.name, vfs.WriteNew(d.disk, d.Join(name), data, 0o666))
}

// Open opens a file of the working folder for reading.
func (d *OutDir) Open(name string) (vfs.File, error) {
	f, err := d.disk.Open(d.Join(name))
	return f, Explain(d.name, err)
}

// Remove removes a file of the working folder.
func (d *OutDir) Remove(name string) error { return Explain(d.name, d.disk.Remove(d.Join(name))) }

// Names lists the names in the working folder, sorted.
func (d *OutDir) Names() ([]string, error) {
	names, err := namesIn(d.disk, d.work)
	return names, Explain(d.name, err)
}

// Commit publishes the folder. The files in it must be closed and synced.
func (d *OutDir) Commit() error {
	if d.done {
		return nil
	}
	defer d.Abort()
	if d.remote {
		return Explain(d.name, d.publishRemote()) // Abort removes the copies
	}
	if err := vfs.IgnoreUnsupported(d.lock.Sync()); err != nil {
		return Explain(d.name, err)
	}
	old, err := d.publish()
	if err = firstOf(err); err != nil {
		return Explain(d.name, err)
	}
	d.done = true
	defer d.lock.Close()
	if err := vfs.SyncDir(d.disk, filepath.Dir(d.target)); err != nil {
		// before the old one is removed, because a crash may undo the rename
		return Explain(d.name, err)
	}
	err = d.unmark()
	if err == nil && old != "" {
		err = removeOwn(d.disk, old)
	}
	return Explain(d.name, firstOf(err))
}

// publish renames the working folder and replaces an old one, which is then at the path old. old is
// empty if there was none. If the system can exchange two names, a complete folder has the name at
// every instant. Otherwise the old folder is renamed first, because rename does not replace a
// folder that is not empty. A folder with the working name always has the mark, so that the next
// process recognises the remains of a killed one. In the published folder the mark is harmless.
func (d *OutDir) publish() (old string, err error) {
	if _, err := d.disk.Lstat(d.target); os.IsNotExist(err) {
		return "", d.disk.Rename(d.work, d.target)
	}
	if err := mark(d.disk, d.target); err != nil {
		return "", err
	}
	// a crash may preserve the renames without the mark, and the next writer would refuse an
	// unmarked folder
	if err := vfs.SyncDir(d.disk, d.target); err != nil {
		return "", err
	}
	if d.disk.Exchange(d.work, d.target) == nil {
		return d.work, nil
	}
	old = d.target + ".old.part"
	err = removeOwn(d.disk, old)
	if err == nil {
		err = d.disk.Rename(d.target, old)
	}
	if err != nil {
		return "", errors.Join(err, d.unmark())
	}
	if err := d.disk.Rename(d.work, d.target); err != nil {
		return "", errors.Join(err, d.disk.Rename(old, d.target), d.unmark())
	}
	return old, nil
}

// unmark removes the mark from the published folder.
func (d *OutDir) unmark() error {
	err := d.disk.Remove(filepath.Join(d.target, MarkName))
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// Abort removes an uncommitted folder. After Commit it does nothing.
func (d *OutDir) Abort() {
	if d.done {
		return
	}
	d.done = true
	if d.remote {
		_ = d.disk.RemoveAll(d.work) // a temporary folder with a unique name
	} else {
		_ = removeOwn(d.disk, d.work)
	}
	if d.lock != nil {
		d.lock.Close()
	}
	d.removeParents()
}

// Fill adds the files of a local folder whose names keep accepts to the working folder: as links if
// both are on one disk, else as copies. They must not be changed afterwards.
func (d *OutDir) Fill(from string, keep func(name string) bool) error {
	entries, err := d.disk.ReadDir(from)
	if err != nil {
		return Explain(from, err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == MarkName || !keep(e.Name()) {
			continue
		}
		path, to := filepath.Join(from, e.Name()), filepath.Join(d.work, e.Name())
		if d.disk.Link(path, to) == nil {
			continue
		}
		if err := copyFile(d.disk, path, to); err != nil {
			return Explain(d.name, err)
		}
	}
	return nil
}

// copyFile copies a file to a new one, which is durable when copyFile returns.
func copyFile(disk vfs.FS, from, to string) error {
	in, err := disk.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := disk.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return vfs.CloseSynced(out, err)
}
