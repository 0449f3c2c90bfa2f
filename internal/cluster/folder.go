package cluster

import (
	"regexp"
	"slices"
	"strings"

	"taxon/internal/fs"
)

// Folder is what a process keeps in a folder of its own.
type Folder struct {
	of   string
	mark []string       // names of which one tells that the folder is such a one
	own  *regexp.Regexp // what may lie there before it is marked
}

// The folders that processes of a cluster keep.
var (
	coordinatorFolder = Folder{"a coordinator", []string{identityName, "journal"}, regexp.MustCompile(`^(journal\.lock|seals|spool)$`)} // seals: of earlier versions
	storeFolder       = Folder{"a store's shard", []string{"shard.id"}, regexp.MustCompile(`^values$`)}
	clusterFolder     = Folder{"`taxon cluster up`", []string{"cluster.json"}, regexp.MustCompile(`^(supervisor\.lock|state\.json|logs|cache|coordinator|store-[0-9]+)$`)}
	// anywhere are names that an empty disk, or one who places a process, leaves in a folder.
	anywhere = regexp.MustCompile(`^(\..*|lost\+found|tmp)$`)
)

// CoordinatorFolder refuses a folder that a coordinator can't have: one of another process,
// or one that holds what is nobody's of a cluster. A new or empty one, and its own, it can.
func CoordinatorFolder(dir string) error { return coordinatorFolder.check(dir, true) }

// StoreFolder is the same for a store.
func StoreFolder(dir string) error { return storeFolder.check(dir, true) }

// SupervisorFolder is the same for a cluster on one machine.
func SupervisorFolder(dir string) error { return clusterFolder.check(dir, true) }

// WorkerFolder refuses a folder of another process for a worker's cache, which may lie
// among other things.
func WorkerFolder(dir string) error { return Folder{}.check(dir, false) }

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
			return fs.Inputf(dir, 0, "is the folder of %s: take another --dir", other.of)
		}
	}
	for _, name := range names {
		if alone && !f.own.MatchString(name) && !anywhere.MatchString(name) {
			return fs.Inputf(dir, 0, "holds %q and is no folder of %s: take a new --dir, or an empty one", name, strings.Trim(f.of, "`"))
		}
	}
	return nil
}
