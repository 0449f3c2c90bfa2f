// Package fsjournal keeps a coordinator's journal in a folder of any file system, in
// particular HDFS, so that the coordinator can be started again on another host. It implements
// journal.Journal.
//
// HDFS can append to a file, but flushed data are safe only as long as the same data nodes live.
// So each batch of records is a file of its own, which appears whole:
//
//	DIR/epoch-7/3/snapshot    what the coordinator knew when generation 3 began
//	DIR/epoch-7/3/00000001    records since then, in the format of journal.Decode
//	DIR/epoch-7/3/00000002
//
// Open renames the folder of the last epoch to the next one. A former owner of the journal that
// still lives, on a host that was cut off, finds no folder for its next record, and ends. So two
// coordinators never decide at the same time. One process must not open a folder twice.
package fsjournal

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"
	"strconv"
	"strings"

	"taxon/coordinator/journal"
	"taxon/internal/fs"
)

const (
	epochPrefix  = "epoch-"
	snapshotName = "snapshot"
	// segmentBytes is the number of bytes that a file adds to Size besides its own length, so that
	// the number of files is bounded as well. A name node copes with a thousand small files, but
	// each costs it something.
	segmentBytes = 16 << 10
)

// ErrFenced is wrapped by the errors of a journal that another coordinator has taken over.
var ErrFenced = errors.New("another coordinator has taken over the journal")

// Folder is a journal in a folder. It implements journal.Journal.
type Folder struct {
	*journal.Group
	// dir is the path DIR/epoch-N.
	dir        string
	epoch      uint64
	generation uint64
	// segment is the number of the last file.
	segment uint64
	disk    fs.FS
}

// Open takes over the journal in dir, or begins one. It returns the journal's snapshot and the
// records after it. The snapshot is nil if there is none.
func Open(ctx context.Context, dir string) (j *Folder, snapshot []byte, records [][]byte, err error) {
	if j, snapshot, records, err = take(fs.For(ctx, dir), dir); err != nil {
		return nil, nil, nil, fmt.Errorf("journal: %w", err)
	}
	disk, done := fs.Keep(context.WithoutCancel(ctx), dir)
	j.begin(disk, done)
	return j, snapshot, records, nil
}

// take takes over a journal and reads it.
func take(disk fs.FS, dir string) (j *Folder, snapshot []byte, records [][]byte, err error) {
	j = &Folder{disk: disk}
	if err = j.takeOver(dir); err == nil {
		snapshot, records, err = j.load()
	}
	return j, snapshot, records, err
}

// begin begins to write. done is called when the journal is closed.
func (j *Folder) begin(disk fs.FS, done func() error) {
	j.disk = disk
	j.Group = journal.NewGroup(journal.Medium{Write: j.write, Replace: j.replace, Close: done, Lead: journal.Encode(nil),
		Cost: segmentBytes}, int64(j.segment)*segmentBytes)
}

// Epoch returns how many coordinators have owned the journal, including this one.
func (j *Folder) Epoch() uint64 { return j.epoch }

// takeOver renames the last epoch's folder to this one's.
func (j *Folder) takeOver(dir string) error {
	last, err := j.largest(dir, epochPrefix)
	if err != nil {
		return err
	}
	j.epoch = last + 1
	j.dir = fs.Join(dir, epochPrefix+strconv.FormatUint(j.epoch, 10))
	if last == 0 {
		return j.disk.MkdirAll(fs.Join(j.dir, "0"))
	}
	err = j.disk.Rename(fs.Join(dir, epochPrefix+strconv.FormatUint(last, 10)), j.dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return fmt.Errorf("%s: %w in this moment", dir, ErrFenced)
	}
	return err
}

// largest returns the largest number after prefix among the names in dir. It is 0 if there is none.
func (j *Folder) largest(dir, prefix string) (n uint64, err error) {
	names, err := fs.NamesOn(j.disk, dir)
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return 0, err
	}
	for _, name := range names {
		digits, ok := strings.CutPrefix(name, prefix)
		if v, err := strconv.ParseUint(digits, 10, 64); ok && err == nil {
			n = max(n, v)
		}
	}
	return n, nil
}

// load reads the newest complete generation and removes the others.
func (j *Folder) load() (snapshot []byte, records [][]byte, err error) {
	names, err := fs.NamesOn(j.disk, j.dir)
	if err != nil {
		return nil, nil, err
	}
	var generations []uint64
	for _, name := range names {
		if g, err := strconv.ParseUint(name, 10, 64); err == nil {
			generations = append(generations, g)
		}
	}
	slices.Sort(generations)
	for _, g := range slices.Backward(generations) {
		files, err := fs.NamesOn(j.disk, j.folder(g))
		if err != nil {
			return nil, nil, err
		}
		if g > 0 && !slices.Contains(files, snapshotName) {
			continue // it was incomplete
		}
		j.generation = g
		if snapshot, records, err = j.read(files); err != nil {
			return nil, nil, err
		}
		break
	}
	for _, g := range generations {
		if g != j.generation {
			_ = j.disk.RemoveAll(j.folder(g)) // only wastes space
		}
	}
	if len(generations) == 0 {
		return nil, nil, j.disk.MkdirAll(j.folder(0))
	}
	return snapshot, records, nil
}

// folder returns the path of a generation.
func (j *Folder) folder(generation uint64) string {
	return fs.Join(j.dir, strconv.FormatUint(generation, 10))
}

// read decodes the files of the generation.
func (j *Folder) read(files []string) (snapshot []byte, records [][]byte, err error) {
	if slices.Contains(files, snapshotName) {
		if snapshot, _, err = j.readFile(snapshotName); err != nil {
			return nil, nil, err
		}
	}
	for _, name := range files { // sorted by name, so by number
		n, err := strconv.ParseUint(name, 10, 64)
		if err != nil {
			continue
		}
		if n != j.segment+1 {
			return nil, nil, fmt.Errorf("%s: %w: file %d follows file %d", j.folder(j.generation), journal.ErrDamaged, n,
				j.segment)
		}
		_, more, err := j.readFile(name)
		if err != nil {
			return nil, nil, err
		}
		records = append(records, more...)
		j.segment = n
	}
	return snapshot, records, nil
}

// readFile decodes a file, which must be complete.
func (j *Folder) readFile(name string) (snapshot []byte, records [][]byte, err error) {
	path := fs.Join(j.folder(j.generation), name)
	data, err := fs.ReadFileOn(j.disk, path)
	if err != nil {
		return nil, nil, err
	}
	snapshot, records, whole, err := journal.Decode(data)
	if err == nil && (whole != int64(len(data)) || whole == 0) {
		err = fmt.Errorf("%w: it is cut short", journal.ErrDamaged)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return snapshot, records, nil
}

// write is the medium's Write. It writes everything that waits into one file.
func (j *Folder) write(entries []byte) error {
	if err := j.disk.WriteFile(fs.Join(j.folder(j.generation), fmt.Sprintf("%08d", j.segment+1)), entries); err != nil {
		return j.explain(err)
	}
	j.segment++
	return nil
}

// explain distinguishes a folder that another coordinator has renamed from other failures.
func (j *Folder) explain(err error) error {
	if errors.Is(err, iofs.ErrNotExist) {
		return fmt.Errorf("%s: %w", j.dir, ErrFenced)
	}
	return err
}

// replace is the medium's Replace. It begins a generation.
func (j *Folder) replace(snapshot []byte) error {
	next := j.generation + 1
	// MkdirAll alone would recreate the folder of an epoch that is gone.
	_, err := j.disk.Stat(j.folder(j.generation))
	if err == nil {
		err = j.disk.MkdirAll(j.folder(next))
	}
	if err == nil {
		err = j.disk.WriteFile(fs.Join(j.folder(next), snapshotName), journal.Encode(snapshot))
	}
	if err != nil {
		return j.explain(err)
	}
	_ = j.disk.RemoveAll(j.folder(j.generation)) // only wastes space: Open would remove it, too
	j.generation, j.segment = next, 0
	return nil
}
