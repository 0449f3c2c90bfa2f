package vfs

import (
	"bytes"
	"errors"
	"io"
	iofs "io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a file system in memory. It records which part of each file and folder is durable, so that
// Crash can drop the rest. It has hard links, but no symbolic links. The zero value is not usable:
// use NewMem.
type Mem struct {
	mu   sync.Mutex
	root *memNode
}

// memNode is a file or folder.
type memNode struct {
	mode   iofs.FileMode
	data   []byte              // content of a file
	synced []byte              // its durable content
	names  map[string]*memNode // entries of a folder, nil for a file
	kept   map[string]*memNode // its durable entries
	owner  *memFile            // the open file that holds the lock, or nil
}

// NewMem returns an empty file system.
func NewMem() *Mem { return &Mem{root: newMemFolder(iofs.ModeDir | 0o777)} }

func newMemFolder(mode iofs.FileMode) *memNode {
	return &memNode{mode: mode, names: map[string]*memNode{}, kept: map[string]*memNode{}}
}

// Loss says which changes a crash takes from a disk.
type Loss int

const (
	// LoseNothing is the loss when a process is killed and the machine continues. The process's
	// locks are released.
	LoseNothing Loss = iota

	// LoseUnsynced drops each change of a file or folder that was not synced.
	LoseUnsynced

	// LoseContent keeps all entries of folders and drops the content of files that was not synced.
	// Many file systems write the entries of folders earlier than the content of files.
	LoseContent

	// TearContent keeps all entries of folders and the sizes of files. About half of the unsynced
	// bytes are written, and the others are zero.
	TearContent
)

// String returns the name of the loss.
func (l Loss) String() string {
	return [...]string{"killed", "unsynced is lost", "unsynced content is lost", "unsynced content is torn"}[l]
}

// Losses lists all kinds of loss.
var Losses = []Loss{LoseNothing, LoseUnsynced, LoseContent, TearContent}

// Crash returns the file system after a crash at this moment. It does not change the receiver.
func (m *Mem) Crash(l Loss) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Mem{root: m.root.after(l, map[*memNode]*memNode{})}
}

// after returns the node after a crash. done maps nodes to those already created, because a file
// can have two names.
func (n *memNode) after(l Loss, done map[*memNode]*memNode) *memNode {
	if c := done[n]; c != nil {
		return c
	}
	c := &memNode{mode: n.mode}
	done[n] = c
	if n.names == nil {
		switch l {
		case LoseNothing:
			c.data = bytes.Clone(n.data)
		case TearContent:
			c.data = torn(n.synced, n.data)
		default:
			c.data = bytes.Clone(n.synced)
		}
		c.synced = bytes.Clone(c.data)
		return c
	}
	names := n.names
	if l == LoseUnsynced {
		names = n.kept
	}
	c.names = map[string]*memNode{}
	for name, child := range names {
		c.names[name] = child.after(l, done)
	}
	c.kept = maps.Clone(c.names)
	return c
}

// torn returns a file of the new size in which the first half of the changed bytes is written.
func torn(synced, data []byte) []byte {
	out := make([]byte, len(data))
	same := 0
	for same < min(len(synced), len(data)) && synced[same] == data[same] {
		same++
	}
	copy(out, synced)
	copy(out, data[:same+(len(data)-same)/2])
	return out
}

// String lists the files and their sizes, and the folders.
func (m *Mem) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	m.root.list(&b, "")
	return b.String()
}

func (n *memNode) list(b *strings.Builder, name string) {
	if n.names == nil {
		b.WriteString(name + " ")
		return
	}
	b.WriteString(name + "/ ")
	for _, child := range slices.Sorted(maps.Keys(n.names)) {
		n.names[child].list(b, name+"/"+child)
	}
}

// split returns the elements of a name below the root.
func split(name string) []string {
	parts := strings.FieldsFunc(filepath.ToSlash(filepath.Clean(name)), func(r rune) bool { return r == '/' })
	return slices.DeleteFunc(parts, func(p string) bool { return p == "." })
}

func pathError(op, name string, err error) error {
	return &iofs.PathError{Op: op, Path: name, Err: err}
}

// find returns the node of a name. The caller holds mu.
func (m *Mem) find(op, name string) (*memNode, error) {
	n := m.root
	for _, part := range split(name) {
		if n.names == nil {
			return nil, pathError(op, name, syscall.ENOTDIR)
		}
		if n = n.names[part]; n == nil {
			return nil, pathError(op, name, syscall.ENOENT)
		}
	}
	return n, nil
}

// parent returns the folder that holds, or will hold, a name, and the name in it.
func (m *Mem) parent(op, name string) (dir *memNode, base string, err error) {
	parts := split(name)
	if len(parts) == 0 {
		return nil, "", pathError(op, name, syscall.EINVAL)
	}
	last := len(parts) - 1
	dir, err = m.find(op, strings.Join(parts[:last], "/"))
	if err == nil && dir.names == nil {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, "", pathError(op, name, cause(err))
	}
	return dir, parts[last], nil
}

// cause returns the error number in an error of this file system.
func cause(err error) error {
	var p *iofs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) { return m.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile implements FS.
func (m *Mem) OpenFile(name string, flag int, mode iofs.FileMode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("open", name)
	writes := flag&(os.O_WRONLY|os.O_RDWR) != 0
	switch {
	case err == nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, pathError("open", name, syscall.EEXIST)
	case err == nil && n.names != nil && writes:
		return nil, pathError("open", name, syscall.EISDIR)
	case errors.Is(err, iofs.ErrNotExist) && flag&os.O_CREATE != 0:
		dir, base, err := m.parent("open", name)
		if err != nil {
			return nil, err
		}
		n = &memNode{mode: mode}
		dir.names[base] = n
	case err != nil:
		return nil, err
	}
	if flag&os.O_TRUNC != 0 {
		n.data = nil
	}
	return &memFile{fs: m, node: n, name: name, reads: flag&os.O_WRONLY == 0, writes: writes,
		appends: flag&os.O_APPEND != 0}, nil
}

// Mkdir implements FS.
func (m *Mem) Mkdir(name string, mode iofs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent("mkdir", name)
	if err != nil {
		return err
	}
	if dir.names[base] != nil {
		return pathError("mkdir", name, syscall.EEXIST)
	}
	dir.names[base] = newMemFolder(iofs.ModeDir | mode)
	return nil
}

// Rename implements FS.
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, base, err := m.parent("rename", from)
	if err != nil {
		return err
	}
	dir, name, err := m.parent("rename", to)
	if err != nil {
		return err
	}
	n, err := m.find("rename", from)
	if err != nil {
		return err
	}
	switch there := dir.names[name]; {
	case there == nil:
	case there.names != nil:
		return pathError("rename", to, syscall.EEXIST)
	case there == n:
		return nil
	case n.names != nil:
		return pathError("rename", to, syscall.ENOTDIR)
	}
	delete(old.names, base)
	dir.names[name] = n
	return nil
}

// Exchange implements FS.
func (m *Mem) Exchange(a, b string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range []string{a, b} {
		if _, err := m.find("exchange", name); err != nil {
			return err
		}
	}
	da, na, err := m.parent("exchange", a)
	if err != nil {
		return err
	}
	db, nb, err := m.parent("exchange", b)
	if err != nil {
		return err
	}
	da.names[na], db.names[nb] = db.names[nb], da.names[na]
	return nil
}

// Link implements FS.
func (m *Mem) Link(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("link", from)
	if err != nil {
		return err
	}
	dir, base, err := m.parent("link", to)
	switch {
	case err != nil:
		return err
	case dir.names[base] != nil:
		return pathError("link", to, syscall.EEXIST)
	case n.names != nil:
		return pathError("link", from, syscall.EPERM)
	}
	dir.names[base] = n
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error { return m.remove(name, false) }

// RemoveAll implements FS.
func (m *Mem) RemoveAll(name string) error {
	if err := m.remove(name, true); !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	return nil
}

func (m *Mem) remove(name string, all bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("remove", name)
	if err != nil {
		return err
	}
	dir, base, err := m.parent("remove", name)
	if err != nil {
		return err
	}
	if len(n.names) > 0 && !all {
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	delete(dir.names, base)
	return nil
}

// ReadDir implements FS.
func (m *Mem) ReadDir(name string) (out []iofs.DirEntry, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.names == nil {
		return nil, pathError("readdir", name, syscall.ENOTDIR)
	}
	for _, base := range slices.Sorted(maps.Keys(n.names)) {
		out = append(out, iofs.FileInfoToDirEntry(n.names[base].info(base)))
	}
	return out, nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (iofs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("stat", name)
	if err != nil {
		return nil, err
	}
	return n.info(filepath.Base(name)), nil
}

// Lstat implements FS.
func (m *Mem) Lstat(name string) (iofs.FileInfo, error) { return m.Stat(name) }

// RealPath implements FS.
func (m *Mem) RealPath(name string) (string, error) {
	_, err := m.Stat(name)
	return filepath.Clean(name), err
}

// memInfo describes a node at one moment.
type memInfo struct {
	name string
	size int64
	node *memNode
}

func (n *memNode) info(name string) memInfo { return memInfo{name, int64(len(n.data)), n} }

func (i memInfo) Name() string        { return i.name }
func (i memInfo) Size() int64         { return i.size }
func (i memInfo) Mode() iofs.FileMode { return i.node.mode }
func (i memInfo) ModTime() time.Time  { return time.Time{} }
func (i memInfo) IsDir() bool         { return i.node.names != nil }
func (i memInfo) Sys() any            { return i.node }

// memFile is an open file or folder of a Mem.
type memFile struct {
	fs                     *Mem
	node                   *memNode
	name                   string
	at                     int64 // position of the next Read or Write
	reads, writes, appends bool
	closed                 bool
}

// Name implements File.
func (f *memFile) Name() string { return f.name }

// use returns an error if the operation is invalid for the file. The caller holds the file system's
// mu.
func (f *memFile) use(op string, ok bool) error {
	switch {
	case f.closed:
		return pathError(op, f.name, os.ErrClosed)
	case !ok:
		return pathError(op, f.name, syscall.EBADF)
	case f.node.names != nil && (op == "read" || op == "write"):
		return pathError(op, f.name, syscall.EISDIR)
	}
	return nil
}

// Read implements File.
func (f *memFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.at)
	f.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// ReadAt implements File.
func (f *memFile) ReadAt(p []byte, at int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.use("read", f.reads); err != nil {
		return 0, err
	}
	n := copy(p, f.node.data[min(at, int64(len(f.node.data))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Write implements File.
func (f *memFile) Write(p []byte) (int, error) {
	if f.appends {
		info, err := f.Stat()
		if err != nil {
			return 0, err
		}
		f.at = info.Size()
	}
	n, err := f.WriteAt(p, f.at)
	f.at += int64(n)
	return n, err
}

// WriteAt implements File.
func (f *memFile) WriteAt(p []byte, at int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.use("write", f.writes); err != nil {
		return 0, err
	}
	f.node.resize(max(int64(len(f.node.data)), at+int64(len(p))))
	return copy(f.node.data[at:], p), nil
}

func (n *memNode) resize(size int64) {
	if size <= int64(len(n.data)) {
		n.data = n.data[:size:size]
		return
	}
	n.data = append(n.data, make([]byte, size-int64(len(n.data)))...)
}

// Stat implements File.
func (f *memFile) Stat() (iofs.FileInfo, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.use("stat", true); err != nil {
		return nil, err
	}
	return f.node.info(filepath.Base(f.name)), nil
}

// Truncate implements File.
func (f *memFile) Truncate(size int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.use("truncate", true); err != nil {
		return err
	}
	if !f.writes {
		return pathError("truncate", f.name, syscall.EINVAL)
	}
	f.node.resize(size)
	return nil
}

// Sync implements File.
func (f *memFile) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.use("sync", true); err != nil {
		return err
	}
	if f.node.names != nil {
		f.node.kept = maps.Clone(f.node.names)
	} else {
		f.node.synced = bytes.Clone(f.node.data)
	}
	return nil
}

// SyncData implements File.
func (f *memFile) SyncData() error { return f.Sync() }

// Lock implements File.
func (f *memFile) Lock() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.use("lock", true); err != nil {
		return err
	}
	if f.node.owner != nil && f.node.owner != f {
		return ErrLocked
	}
	f.node.owner = f
	return nil
}

// Close implements File.
func (f *memFile) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if err := f.use("close", true); err != nil {
		return err
	}
	if f.node.owner == f {
		f.node.owner = nil
	}
	f.closed = true
	return nil
}
