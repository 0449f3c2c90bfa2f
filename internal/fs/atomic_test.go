package fs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func TestCreateFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if err := WriteFile(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	f, err := CreateFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g, err := CreateFile(path) // concurrent writers have a file each
	if err != nil {
		t.Fatal(err)
	}
	g.Abort()
	fmt.Fprint(f, "new")
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("visible before Commit: %q", b)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Abort()
	if b, _ := os.ReadFile(path); string(b) != "new" || names(t, dir) != "out" {
		t.Errorf("%q, folder holds %s", b, names(t, dir))
	}
}

func TestCreateFileThroughLink(t *testing.T) {
	dir := t.TempDir()
	if err := WriteFile(filepath.Join(dir, "real"), []byte("old")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Skip(err)
	}
	if err := WriteFile(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(filepath.Join(dir, "real"))
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 || string(b) != "new" {
		t.Errorf("the link was replaced, its target holds %q", b)
	}
}

func TestCreateFileErrors(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"", dir, filepath.Join(dir, "none", "x"), "hdfs://127.0.0.1:1/out"} {
		if err := WriteFile(path, nil); !IsInput(err) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestFullDisk checks that a full disk is a failure of the machine, not of the input.
func TestFullDisk(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	err := WriteFile(full, []byte("x"))
	if !IsDiskFull(err) || IsInput(err) || !strings.HasPrefix(err.Error(), full+": the disk is full") {
		t.Errorf("got %v", err)
	}
	if info, err := os.Stat(full); err != nil || info.Mode().IsRegular() {
		t.Errorf("the device was replaced: %v", err)
	}
}

func TestCreateDir(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "deep", "set")
	d, err := CreateDir(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := CreateDir(path, false); !IsInput(err) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second writer: %v", err)
	}
	if err := os.WriteFile(d.Join("a"), []byte("1"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("visible before Commit: %v", err)
	}
	if err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	d.Abort()
	if got := names(t, filepath.Dir(path)); got != "set" || names(t, path) != "a" {
		t.Errorf("folder holds %s", got)
	}
	if _, err := CreateDir(path, false); !IsInput(err) || !strings.Contains(err.Error(), "‹force") {
		t.Errorf("existing folder: %v", err)
	}
	d, err = CreateDir(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Join("b"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := d.Commit(); err != nil || names(t, path) != "b" || names(t, filepath.Dir(path)) != "set" {
		t.Errorf("replaced: %v, %s, %s", err, names(t, path), names(t, filepath.Dir(path)))
	}
}

func TestCreateDirAbort(t *testing.T) {
	root := t.TempDir()
	stale := filepath.Join(root, "set.part")
	if err := os.MkdirAll(filepath.Join(stale, "left"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Mark(stale); err != nil {
		t.Fatal(err)
	}
	d, err := CreateDir(filepath.Join(root, "set"), false)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(t, d.Path()); got != MarkName {
		t.Errorf("a killed writer's files are still there: %s", got)
	}
	d.Abort()
	if got := names(t, root); got != "" {
		t.Errorf("left behind: %s", got)
	}
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "-", "hdfs://127.0.0.1:1/out", file, filepath.Join(file, "x")} {
		if _, err := CreateDir(path, true); !IsInput(err) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestCreateDirSparesOthers checks that a folder that is not taxon's is kept, although it has
// taxon's working name.
func TestCreateDirSparesOthers(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"folder":   func(path string) error { return os.MkdirAll(filepath.Join(path, "thesis"), 0o777) },
		"file":     func(path string) error { return os.WriteFile(path, []byte("thesis"), 0o666) },
		"link":     func(path string) error { return os.Symlink(filepath.Dir(path), path) },
		"dangling": func(path string) error { return os.Symlink("nowhere", path) },
	} {
		out := filepath.Join(t.TempDir(), "set")
		if err := make(out + ".part"); err != nil {
			t.Fatal(err)
		}
		for _, replace := range []bool{false, true} {
			if _, err := CreateDir(out, replace); !IsInput(err) || !strings.Contains(err.Error(), "in the way") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := names(t, filepath.Dir(out)); got != "set.part" {
			t.Errorf("%s: %s is left", name, got)
		}
		if RemoveOwn(out+".part") == nil || names(t, filepath.Dir(out)) != "set.part" {
			t.Errorf("%s: removed", name)
		}
	}
}

// TestCreateDirAfterKill kills a writer between any two steps of a publication. The next writer
// must be able to take over.
func TestCreateDirAfterKill(t *testing.T) {
	out := filepath.Join(t.TempDir(), "set")
	for range 2 { // as a new folder, and replacing an older one
		d, err := CreateDir(out, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(d.Join("a"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		d.lock.Close() // as the kernel does
		if d, err = CreateDir(out, true); err != nil {
			t.Fatal(err)
		}
		if got := names(t, d.Path()); got != MarkName {
			t.Errorf("left in the working folder: %s", got)
		}
		if err := os.WriteFile(d.Join("a"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := d.Commit(); err != nil || names(t, out) != "a" || names(t, filepath.Dir(out)) != "set" {
			t.Errorf("%v: %s in %s", err, names(t, out), names(t, filepath.Dir(out)))
		}
	}
}

// TestAtLineOfCutStream checks that the error of a stream that broke before its first line has no
// line number.
func TestAtLineOfCutStream(t *testing.T) {
	cut := &InputError{Path: "a.xz", Msg: "cut short", Err: io.ErrUnexpectedEOF}
	for line, want := range map[int64]string{1: "a.xz: cut short", 2: "a.xz:2: cut short"} {
		if got := AtLine(cut, line).Error(); got != want {
			t.Errorf("line %d: %q, want %q", line, got, want)
		}
	}
	if got := AtLine(Inputf("a", 0, "index 0"), 1).Error(); got != "a:1: index 0" {
		t.Error(got)
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("why")
	err := Inputf("a.svm", 17, "index 0: %w", cause)
	if err.Error() != "a.svm:17: index 0: why" || !errors.Is(err, cause) || !IsInput(fmt.Errorf("x: %w", err)) {
		t.Errorf("got %v", err)
	}
	if got := AtLine(err, 3); got != err {
		t.Errorf("a line was replaced: %v", got)
	}
	if got := AtLine(Inputf("a.gz", 0, "cut"), 3).Error(); got != "a.gz:3: cut" {
		t.Errorf("got %s", got)
	}
	if got := AtLine(cause, 3); got != cause {
		t.Errorf("got %v", got)
	}
	if got := Inputf("", 0, "no input").Error(); got != "no input" {
		t.Errorf("got %s", got)
	}
	for errno, input := range map[syscall.Errno]bool{syscall.ENOSPC: false, syscall.EIO: false, syscall.EROFS: true,
		syscall.ENAMETOOLONG: true, syscall.ELOOP: true, syscall.EACCES: true, syscall.ENOTDIR: true, syscall.EEXIST: true} {
		err := Explain("p", &os.PathError{Op: "write", Path: "q", Err: errno})
		if IsInput(err) != input || !errors.Is(err, errno) || !strings.HasPrefix(err.Error(), "p: ") {
			t.Errorf("%v: %v", errno, err)
		}
	}
	for in, want := range map[error]string{err: "a.svm:17: index 0: why", Inputf("", 0, "no name node"): "p: no name node",
		Inputf("", 3, "cut"): "p:3: cut"} {
		if got := Explain("p", in); got.Error() != want || !errors.Is(got, in) {
			t.Errorf("%v, want %s", got, want)
		}
	}
	if Explain("p", nil) != nil {
		t.Error("no error became one")
	}
}

// TestCheckFolder checks that a path without a last element is refused, because no working folder
// can be next to it.
func TestCheckFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{".", "..", "./", "sub/..", "/"} {
		if _, err := CreateDir(path, true); err == nil || !strings.Contains(err.Error(), "give the name of a new one") {
			t.Errorf("%s: error %v", path, err)
		}
	}
	if left := names(t, "."); left != "" {
		t.Errorf("left %s", left)
	}
}
