package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	iofs "io/fs"
	"regexp"
	"strings"

	"taxon/internal/fs"
	"taxon/store/backup"
)

// A folder of snapshots may hold other people's files, and several clusters may share one. So
// each folder that a cluster makes in it carries the cluster's id. A folder without an id, or
// with another's, is never replaced and never removed.

const (
	// identityName is the file beside a coordinator's journal with its cluster's id.
	identityName = "cluster.id"
	identityHead = "taxon-cluster 1 "
	// ownerName is the file that says which cluster owns the folder of a snapshot, or of its data.
	ownerName = "owner"
	ownerHead = "taxon snapshot of cluster "
)

// ErrForeign is wrapped by errors about a folder that this cluster did not write.
var ErrForeign = errors.New("is not this cluster's")

// Identity returns the id of the cluster whose coordinator keeps its journal in dir. The id is
// random, made on first use, and never changes.
func Identity(ctx context.Context, dir string) (string, error) {
	path := fs.Join(dir, identityName)
	b, err := fs.ReadFile(ctx, path)
	if errors.Is(err, iofs.ErrNotExist) {
		id := strings.ToLower(rand.Text())
		return id, fs.WriteFile(path, []byte(identityHead+id+"\n"))
	}
	if err != nil {
		return "", fs.Explain(path, err)
	}
	id, ok := strings.CutPrefix(strings.TrimSuffix(string(b), "\n"), identityHead)
	if !ok || !plainID.MatchString(id) {
		return "", fs.Inputf(path, 0, "is damaged: it must hold the cluster's id: put it back from a copy, or remove it "+
			"(snapshots that the cluster has taken stay where they are then)")
	}
	return id, nil
}

var (
	plainID = regexp.MustCompile(`^[a-z0-9]{16,64}$`)
	// snapshotFile matches the files of a snapshot's folder.
	snapshotFile = regexp.MustCompile(`^(manifest|state|owner|part-[0-9]+|` + regexp.QuoteMeta(fs.MarkName) + `)$`)
)

// sign writes the owner into a folder that is being made.
func (s *Snapshots) sign(dir backup.Dir) error {
	out, err := dir.Create(ownerName)
	if err != nil {
		return err
	}
	_, err = out.Write(ownerText(s.Cluster))
	return errors.Join(err, out.Close())
}

// ownerText returns the content of the owner's file.
func ownerText(id string) []byte { return []byte(ownerHead + id + "\n") }

// ownerOf returns the cluster that owns a folder. It is empty if the folder does not say.
func ownerOf(ctx context.Context, path string) (string, error) {
	b, err := fs.ReadFile(ctx, inFolder(path, ownerName))
	if errors.Is(err, iofs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fs.Explain(path, err)
	}
	id, ok := strings.CutPrefix(strings.TrimSuffix(string(b), "\n"), ownerHead)
	if !ok || !plainID.MatchString(id) {
		return "", nil
	}
	return id, nil
}

// contents lists a folder. It is empty if there is no such folder.
func contents(path string) ([]string, error) {
	names, err := fs.ReadDirNames(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	return names, fs.Explain(path, err)
}

// check says why the folder of a job's snapshot may not be written: ErrForeign.
func (s *Snapshots) check(ctx context.Context, job string) error {
	path := inFolder(s.Dir, job)
	names, err := contents(path)
	if err != nil || len(names) == 0 {
		return err
	}
	for _, name := range names {
		if !snapshotFile.MatchString(name) {
			return foreign(job, path, fmt.Sprintf("holds %.100q and", name))
		}
	}
	switch owner, err := ownerOf(ctx, path); {
	case err != nil:
		return err
	case owner == s.Cluster:
		return nil
	case owner != "":
		return foreign(job, path, "has another cluster's snapshot and")
	}
	return foreign(job, path, "")
}

// foreign returns an ErrForeign about the folder of a job's snapshot.
func foreign(job, path, why string) error {
	if why != "" {
		why += " "
	}
	return fmt.Errorf("job %s: the folder of its snapshots %s %s%w: submit it under another ‹id›, or give the "+
		"coordinator a ‹snapshots› folder of its own",
		job, path, why, ErrForeign)
}

// Reserve implements coordinator.Reserver. It returns an error if a job can't have snapshots here,
// because its folder is not this cluster's. A job that is restored from that very snapshot takes
// the folder over: confirm, called when the job is accepted, makes it this cluster's, and its
// former owner then leaves it alone.
func (s *Snapshots) Reserve(ctx context.Context, job string, state []byte) (confirm func() error, err error) {
	err = s.check(ctx, job)
	if !errors.Is(err, ErrForeign) || len(state) == 0 {
		return func() error { return nil }, err
	}
	saved, openErr := openSaved(ctx, s.Dir, job)
	if openErr != nil || string(saved.State) != string(state) {
		return nil, err
	}
	path := inFolder(s.Dir, job)
	if names, listErr := contents(path); listErr != nil {
		return nil, listErr
	} else if len(others(names)) > 0 {
		return nil, err
	}
	return func() error { return fs.WriteFile(inFolder(path, ownerName), ownerText(s.Cluster)) }, nil
}

// others returns the names that do not belong to a snapshot.
func others(names []string) (out []string) {
	for _, name := range names {
		if !snapshotFile.MatchString(name) {
			out = append(out, name)
		}
	}
	return out
}

// remove removes a job's snapshot if it is this cluster's, and leaves other files in its folder.
func (s *Snapshots) remove(ctx context.Context, job string) error {
	path := inFolder(s.Dir, job)
	names, err := contents(path)
	if err != nil || len(names) == 0 {
		return err
	}
	if owner, err := ownerOf(ctx, path); err != nil || owner != s.Cluster {
		return err
	}
	if len(others(names)) == 0 {
		return fs.RemoveAll(path)
	}
	for _, name := range names {
		if snapshotFile.MatchString(name) {
			err = errors.Join(err, fs.RemoveAll(inFolder(path, name)))
		}
	}
	return err
}
