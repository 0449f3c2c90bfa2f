package cluster

import (
	"regexp"
	"slices"
	"strings"

	"taxon/internal/fs"
)

// Folder describes the folder that a kind of process keeps.
type Folder struct {
	// of names the kind of process.
	of string
	// mark lists names, one of which shows that a folder is of this kind.
	mark []string
	// own matches the names that may be in the folder before it is marked.
	own *regexp.Regexp
}

// These are the kinds of folders.
var (
	coordinatorFolder = Folder{"a coordinator", []string{identityName, "journal"},
		regexp.MustCompile(`^(journal\.lock|spool)$`)}
	storeFolder   = Folder{"a store's shard", []string{"shard.id"}, regexp.MustCompile(`^values$`)}
	clusterFolder = Folder{"`taxon cluster up`", []string{"cluster.json"},
		regexp.MustCompile(`^(supervisor\.lock|state\.json|logs|cache|coordinator|store-[0-9]+)$`)}
	// anywhere matches the names of files that may be in an otherwise empty folder: lost+found,
	// which an empty disk has, hidden files, and the files that a process's installer makes.
	anywhere = regexp.MustCompile(`^(\..*|lost\+found|tmp)$`)
)

// CoordinatorFolder refuses a folder that a coordinator can't use, because it is the folder of
// another process or has foreign content. It accepts a new folder, an empty one, and a
// coordinator's own.
func CoordinatorFolder(dir string) error { return coordinatorFolder.check(dir, true) }

// StoreFolder does the same check as CoordinatorFolder, for a store.
func StoreFolder(dir string) error { return storeFolder.check(dir, true) }

// SupervisorFolder does the same check as CoordinatorFolder, for the supervisor of a cluster on one
// machine.
func SupervisorFolder(dir string) error { return clusterFolder.check(dir, true) }

// WorkerFolder refuses another process's folder for a worker's cache. The folder may hold other
// things.
func WorkerFolder(dir string) error { return Folder{}.check(dir, false) }

// check refuses a folder of another kind. If alone is true, it also refuses a folder with foreign
// content.
func (f Folder) check(dir string, alone bool) error {
	names, err := contents(dir)
	if err != nil {
		return err
	}
	has := func(mark string) bool { return slices.Contains(names, mark) }
	if slices.ContainsFunc(f.mark, has) {
		return nil
	}
	for _, other := range []Folder{coordinatorFolder, storeFolder, clusterFolder} {
		if other.of != f.of && slices.ContainsFunc(other.mark, has) {
			return fs.Inputf(dir, 0, "is the folder of %s: take another ‹dir›", other.of)
		}
	}
	for _, name := range names {
		if alone && !f.own.MatchString(name) && !anywhere.MatchString(name) {
			return fs.Inputf(dir, 0, "holds %q and is not a folder of %s: take a new ‹dir›, or an empty one", name,
				strings.Trim(f.of, "`"))
		}
	}
	return nil
}
