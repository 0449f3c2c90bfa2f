package fs

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"testing"

	"taxon/internal/fs/vfs"
	"taxon/internal/fs/vfs/vfstest"
)

// noExchange is a disk that cannot exchange two names.
type noExchange struct{ vfs.FS }

func (noExchange) Exchange(a, b string) error { return errors.ErrUnsupported }

// publishSet publishes a folder with two files of the same content.
func publishSet(disk vfs.FS, content string) error {
	d, err := CreateDirOn(disk, "/deep/deeper/set", true)
	if err != nil {
		return err
	}
	defer d.Abort()
	for _, name := range []string{"a", "b"} {
		if err := d.Write(name, []byte(content)); err != nil {
			return err
		}
	}
	return d.Commit()
}

// readSet reads the content of the published folder. It is empty if there is none.
func readSet(disk vfs.FS) (string, error) {
	names, err := namesIn(disk, "/deep/deeper/set")
	if errors.Is(err, iofs.ErrNotExist) {
		return "", nil
	}
	a, errA := vfs.ReadFile(disk, "/deep/deeper/set/a")
	b, errB := vfs.ReadFile(disk, "/deep/deeper/set/b")
	if err := errors.Join(err, errA, errB); err != nil {
		return "", err
	}
	for _, name := range names {
		if name != "a" && name != "b" && name != MarkName {
			return "", fmt.Errorf("the folder holds %s", name)
		}
	}
	if string(a) != string(b) || len(a) == 0 {
		return "", fmt.Errorf("a holds %q and b %q", a, b)
	}
	return string(a), nil
}

// TestFolderOnAnyDisk lets each call to the disk fail while a folder is published, and crashes the
// disk afterwards. The name always refers to a complete folder, and to the new one if Commit has
// succeeded; the next writer can continue.
func TestFolderOnAnyDisk(t *testing.T) {
	for _, c := range []struct {
		name     string
		old      string
		exchange bool
	}{{"new", "", true}, {"exchanged", "old", true}, {"renamed", "old", false}} {
		t.Run(c.name, func(t *testing.T) {
			on := func(disk vfs.FS) vfs.FS {
				if c.exchange {
					return disk
				}
				return noExchange{disk}
			}
			prepare := func(disk vfs.FS) error {
				if c.old == "" {
					return vfs.MkdirAll(disk, "/deep", 0o777)
				}
				return publishSet(disk, c.old)
			}
			publish := func(disk vfs.FS) error { return publishSet(on(disk), "new") }
			vfstest.Sweep(t, prepare, publish, func(disk vfs.FS, err error) error {
				got, broken := readSet(disk)
				if broken != nil {
					return broken
				}
				_, aside := disk.Stat("/deep/deeper/set.old.part")
				switch {
				case got == "new" || got == c.old && err != nil:
				case got == "" && err != nil && !c.exchange && aside == nil: // between the two renames
				default:
					return fmt.Errorf("the folder holds %q after %v", got, err)
				}
				if err := publishSet(on(disk), "next"); err != nil {
					return fmt.Errorf("the next writer: %w", err)
				}
				if got, err := readSet(disk); got != "next" {
					return fmt.Errorf("after the next writer the folder holds %q, %v", got, err)
				}
				return nil
			})
		})
	}
}
