package fs

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"

	"taxon/internal/fs/vfs"
)

// MarkName is the name of a file that marks a folder, such as NAME.part or NAME.train, as taxon's
// own while it is incomplete. It distinguishes the folder from a user's folder of the same name.
const MarkName = ".taxon-unfinished"

// markText is the content of the mark, for people who find it.
const markText = "taxon makes something in this folder, and removes the folder when it is done.\n"

// Mark marks a folder as taxon's own.
func Mark(dir string) error { return mark(vfs.OS, dir) }

// mark writes or rewrites the mark. A crash may leave it empty, which is harmless.
func mark(disk vfs.FS, dir string) error {
	f, err := disk.OpenFile(filepath.Join(dir, MarkName), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(markText))
	return errors.Join(err, f.Close())
}

// Claimable returns nil if taxon may fill and remove the folder dir, whose name taxon chose: if it
// does not exist, is empty or has the mark. Anything else belongs to the user; the InputError then
// names dir, which the user has not typed.
func Claimable(dir string) error { return claimable(vfs.OS, dir) }

func claimable(disk vfs.FS, dir string) error {
	info, err := disk.Lstat(dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return Explain(dir, err)
	}
	if !info.IsDir() {
		return Inputf(dir, 0, "is not one of taxon's folders, and would be in the way: choose another ‹out›, or move it away")
	}
	names, err := namesIn(disk, dir)
	if err != nil {
		return Explain(dir, err)
	}
	if len(names) == 0 {
		return nil
	}
	if info, err := disk.Lstat(filepath.Join(dir, MarkName)); err == nil && info.Mode().IsRegular() {
		return nil
	}
	return Inputf(dir, 0, "holds %q, which is not unfinished work of taxon's, and would be in the way: choose another "+
		"‹out›, or move it away", names[0])
}

// RemoveOwn removes a folder that Claimable allows. It removes the mark last and renames each folder before
// it removes it. If the process is killed, the rest is therefore still marked, and each folder in it is
// either complete or gone.
func RemoveOwn(dir string) error { return removeOwn(vfs.OS, dir) }

func removeOwn(disk vfs.FS, dir string) error {
	if err := claimable(disk, dir); err != nil {
		return err
	}
	if err := emptyOwn(disk, dir); err != nil {
		return err
	}
	return removeAll(disk, dir)
}

// EmptyOwn removes everything but the mark from a folder that Claimable allows.
func EmptyOwn(dir string) error { return emptyOwn(vfs.OS, dir) }

func emptyOwn(disk vfs.FS, dir string) error {
	if err := claimable(disk, dir); err != nil {
		return err
	}
	names, err := namesIn(disk, dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		if err == nil && name != MarkName {
			err = discard(disk, filepath.Join(dir, name))
		}
	}
	return err
}

// goneSuffix marks the name of a file or folder that is being removed from one of taxon's folders.
const goneSuffix = ".gone"

// Discard removes a file or folder within one of taxon's folders. A folder is renamed first, so
// that the remains of an interrupted removal are not taken for the original. A missing file is no
// error.
func Discard(path string) error { return discard(vfs.OS, path) }

func discard(disk vfs.FS, path string) error {
	if info, err := disk.Lstat(path); err != nil || !info.IsDir() {
		return disk.RemoveAll(path)
	}
	gone := path + goneSuffix
	if err := removeAll(disk, gone); err != nil { // left by a killed process
		return err
	}
	if err := disk.Rename(path, gone); err != nil {
		return err
	}
	return removeAll(disk, gone)
}

// removeAll removes a folder. Tests replace it to interrupt the removal.
var removeAll = func(disk vfs.FS, path string) error { return disk.RemoveAll(path) }

// namesIn lists the names in a folder, sorted.
func namesIn(disk vfs.FS, dir string) (names []string, err error) {
	list, err := disk.ReadDir(dir)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names, err
}
