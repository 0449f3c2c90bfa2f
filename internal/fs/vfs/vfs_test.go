package vfs

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// steps runs n random calls on a few names below dir, and returns the result of each.
func steps(fs FS, dir string, seed uint64, n int) (out []string) {
	random := rand.New(rand.NewPCG(seed, 0))
	var files []File
	name := func() string {
		return filepath.Join(dir, []string{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "a/b"}[random.IntN(8)])
	}
	say := func(what string, value any, err error) {
		var number syscall.Errno
		if errors.As(err, &number) {
			err = number
		} else if err != nil && err != io.EOF && !errors.Is(err, ErrLocked) {
			err = errors.New("other")
		}
		out = append(out, fmt.Sprint(what, " ", value, " ", err))
	}
	for range n {
		if random.IntN(2) == 0 && len(files) > 0 {
			f := files[random.IntN(len(files))]
			p := make([]byte, 1+random.IntN(4))
			switch random.IntN(7) {
			case 0:
				n, err := f.Read(p)
				say("read", p[:n], err)
			case 1:
				n, err := f.ReadAt(p, random.Int64N(12))
				say("read at", p[:n], err)
			case 2:
				n, err := f.Write([]byte("write")[:len(p)])
				say("write", n, err)
			case 3:
				n, err := f.WriteAt([]byte("WRITE")[:len(p)], random.Int64N(12))
				say("write at", n, err)
			case 4:
				say("truncate", nil, f.Truncate(random.Int64N(12)))
			case 5:
				info, err := f.Stat()
				if err == nil && !info.IsDir() {
					say("stat", info.Size(), err)
				}
			case 6:
				say("lock", nil, f.Lock())
			}
			continue
		}
		a, b := name(), name()
		switch random.IntN(10) {
		case 0:
			f, err := fs.Open(a)
			say("open", nil, err)
			if err == nil {
				files = append(files, f)
			}
		case 1, 2:
			f, err := fs.OpenFile(a, os.O_RDWR|[]int{0, os.O_CREATE, os.O_CREATE | os.O_EXCL, os.O_TRUNC}[random.IntN(4)], 0o666)
			say("open file", nil, err)
			if err == nil {
				files = append(files, f)
			}
		case 3:
			say("mkdir", nil, fs.Mkdir(a, 0o777))
		case 4:
			if len(b) > len(a) && b[:len(a)] == a {
				continue // into itself
			}
			say("rename "+a+" "+b, nil, fs.Rename(a, b))
		case 5:
			say("link", nil, fs.Link(a, b))
		case 6:
			say("remove", nil, fs.Remove(a))
		case 7:
			say("remove all", nil, fs.RemoveAll(a))
		case 8:
			list, err := fs.ReadDir(a)
			var names []string
			for _, e := range list {
				names = append(names, fmt.Sprint(e.Name(), e.IsDir()))
			}
			say("list", names, err)
		case 9:
			info, err := fs.Stat(a)
			if err == nil {
				again, e := fs.Lstat(a)
				say("stat", info.IsDir() == again.IsDir() && SameFile(info, again), e)
			} else {
				say("stat", nil, err)
			}
		}
	}
	for _, f := range files {
		say("close", nil, f.Close())
		say("close again", nil, f.Close())
	}
	return out
}

// TestMemIsLikeOS runs the same calls on a disk in memory and on the machine's.
func TestMemIsLikeOS(t *testing.T) {
	for seed := range uint64(100) {
		dir := t.TempDir()
		mem := NewMem()
		if err := MkdirAll(mem, dir, 0o777); err != nil {
			t.Fatal(err)
		}
		want, got := steps(OS, dir, seed, 100), steps(mem, dir, seed, 100)
		for i := range want {
			if want[i] != got[i] {
				t.Fatalf("seed %d, call %d: %s in memory, %s on this machine", seed, i, got[i], want[i])
			}
		}
	}
}

// write writes a file and leaves it open.
func write(t *testing.T, fs FS, name, data string) File {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err == nil {
		_, err = f.WriteAt([]byte(data), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCrash(t *testing.T) {
	disk := NewMem()
	f := write(t, disk, "synced", "12345678")
	if err := errors.Join(f.Sync(), SyncDir(disk, "/"), f.Lock()); err != nil {
		t.Fatal(err)
	}
	write(t, disk, "synced", "1234abcd")
	write(t, disk, "new", "12345678")
	if err := disk.Rename("synced", "renamed"); err != nil {
		t.Fatal(err)
	}
	for loss, want := range map[Loss]string{
		LoseNothing:  "/ /new=12345678 /renamed=1234abcd",
		LoseUnsynced: "/ /synced=12345678",
		LoseContent:  "/ /new= /renamed=12345678",
		TearContent:  "/ /new=1234\x00\x00\x00\x00 /renamed=1234ab78",
	} {
		found := disk.Crash(loss)
		got := "/"
		list, err := found.ReadDir("/")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			data, err := ReadFile(found, e.Name())
			if err != nil {
				t.Fatal(err)
			}
			got += " /" + e.Name() + "=" + string(data)
			if lock, err := LockFile(found, e.Name(), 0); err != nil {
				t.Errorf("%v: a lock is held after the crash: %v", loss, err)
			} else if _, err := LockFile(found, e.Name(), 0); !errors.Is(err, ErrLocked) || lock.Close() != nil {
				t.Errorf("%v: a second lock: %v", loss, err)
			}
		}
		if got != want {
			t.Errorf("%v: %q, want %q", loss, got, want)
		}
	}
	if list, err := disk.ReadDir("/"); err != nil || len(list) != 2 {
		t.Errorf("the disk itself has changed: %s", disk)
	}
}

func TestFaulty(t *testing.T) {
	use := func(fs FS) (n int, err error) {
		f, err := fs.OpenFile("file", os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return 0, err
		}
		if n, err = f.Write([]byte("1234")); err != nil {
			return n, err
		}
		return n, errors.Join(f.Sync(), fs.Remove("none"))
	}
	for at, want := range []struct {
		written int
		full    bool
	}{{4, false}, {0, true}, {2, true}, {4, true}, {4, false}} { // none, open, write, sync; a removal needs no room
		n, err := use(NewFaulty(NewMem(), Fault{At: at, Err: syscall.ENOSPC, Short: true, Ever: true}))
		if n != want.written || errors.Is(err, syscall.ENOSPC) != want.full {
			t.Errorf("the disk is full from call %d on: %d bytes, %v", at, n, err)
		}
	}
	f := NewFaulty(NewMem(), Fault{At: 2, Err: syscall.EIO})
	if _, err := use(f); !errors.Is(err, syscall.EIO) || !f.Met() {
		t.Errorf("a write that fails: %v", err)
	}
	if _, err := use(f); !errors.Is(err, iofs.ErrNotExist) {
		t.Errorf("a call after the one that failed: %v", err)
	}
}
