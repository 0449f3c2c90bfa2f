package yarn

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"slices"
	"strings"

	"taxon/internal/cluster/client"
	"taxon/internal/fs"
)

// clusterMark is the file that distinguishes a cluster's folder from a user's.
const clusterMark = ".taxon-cluster"

// placeName is the file with the address of the cluster's coordinator.
const placeName = "coordinator"

// place returns that file's path.
func (d *Deployment) place() string { return fs.Join(d.Dir, placeName) }

// ownNames lists the names that a cluster's processes, and the commands that start it, create in
// its folder. The mark is last.
func ownNames() []string {
	return []string{placeName, "journal", "snapshots", "bin", "conf", runName, "secrets", client.Folder, failuresName,
		clusterMark}
}

// inFolder returns the name of an entry of a folder that does not belong to a cluster. It is empty
// if the folder is empty or a cluster's.
func inFolder(dir string) (string, error) {
	names, err := fs.ReadDirNames(dir)
	if err != nil || len(names) == 0 || slices.Contains(names, clusterMark) {
		return "", err
	}
	return names[0], nil
}

// removeOwn removes the cluster's files from its folder, and the folder if it is empty then. It
// returns the names of other files, which stay.
func removeOwn(dir string) (left []string, err error) {
	names, err := fs.ReadDirNames(dir)
	if err != nil {
		return nil, err
	}
	own := ownNames()
	for _, name := range names {
		if !slices.Contains(own, name) && !unfinished(name, own) {
			left = append(left, name)
		} else if name != clusterMark {
			if err := fs.RemoveAll(fs.Join(dir, name)); err != nil {
				return nil, err
			}
		}
	}
	if len(left) > 0 {
		return left, fs.RemoveAll(fs.Join(dir, clusterMark))
	}
	return nil, fs.RemoveAll(dir)
}

// unfinished reports whether name belongs to a hidden file or folder that a killed process left.
func unfinished(name string, own []string) bool {
	return strings.HasSuffix(name, ".part") && slices.ContainsFunc(own,
		func(o string) bool { return strings.HasPrefix(name, "."+o+".") })
}

// purgeable returns an error if the folder to purge is not this cluster's. It is called before
// anything is ended.
func (d *Deployment) purgeable(ctx context.Context) error {
	other, err := inFolder(d.Dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return refuse("‹purge›: %s is not there, so nothing was ended: give the ‹name› and ‹dir› that "+
			"`taxon yarn up` was given", d.Dir)
	}
	if err != nil {
		return err
	}
	if other != "" {
		return refuse("‹purge›: %s is no cluster's folder, so nothing was ended: give the ‹dir› that "+
			"`taxon yarn up` was given", d.Dir)
	}
	file := fs.Join(d.Dir, runName)
	data, err := fs.ReadFile(ctx, file)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil // left by a killed `up`
	}
	if err != nil {
		return err
	}
	run, err := DecodeRun(file, data)
	if err != nil {
		return refuse("‹purge›: %w", err)
	}
	if run.Name != d.Name {
		return refuse("‹purge›: %s is the folder of cluster %s, so nothing was ended: give its ‹name›", d.Dir, run.Name)
	}
	return nil
}

// purge removes what purgeable has accepted.
func (d *Deployment) purge() error {
	left, err := removeOwn(d.Dir)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		d.UI.Note("%s: the cluster's files are removed; %s stays", d.Dir, strings.Join(left, ", "))
		return nil
	}
	d.UI.Note("%s: removed", d.Dir)
	return nil
}

// StaticProgram returns the path of a program that runs on any Linux host of its architecture. The
// empty path stands for this program. The error says why it would not run.
func StaticProgram(path string) (string, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("where is this program? %w: give ‹binary›", err)
		}
		path = self
	}
	static, err := IsStatic(path)
	if err != nil {
		return "", fmt.Errorf("%s is no Linux program (%w): give ‹binary=FILE›", path, err)
	}
	if !static {
		return "", fmt.Errorf("%s needs libraries that the hosts may not have: build it with CGO_ENABLED=0, or "+
			"give ‹binary=FILE›", path)
	}
	return path, nil
}

// IsStatic reports whether a Linux program needs no libraries of its host.
func IsStatic(path string) (bool, error) {
	f, err := elf.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return !slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), nil
}
