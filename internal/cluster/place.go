package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	iofs "io/fs"
	"net"
	"sync"
	"time"

	"taxon/internal/cluster/secure"
	"taxon/internal/fs"
	"taxon/internal/retry"
)

// ServerName is the name in servers' certificates in a cluster whose coordinator is found by a
// file. In such a cluster nobody knows beforehand where a process will run, and the certificate
// authority is the cluster's own.
const ServerName = "cluster.taxon.internal"

// Place says where a coordinator is. It is the content of a file, usually in HDFS, which the
// coordinator replaces atomically whenever it starts.
type Place struct {
	// Version is the version of the format, 1.
	Version int `json:"version"`
	// Coordinator is its address, host:port.
	Coordinator string `json:"coordinator"`
	// Page is the URL of its page. It is empty if there is none.
	Page string `json:"page,omitempty"`
	// Epoch rises with each start of the coordinator.
	Epoch uint64 `json:"epoch"`
}

// ErrMoved means that a newer coordinator has announced itself.
var ErrMoved = errors.New("another coordinator has announced itself")

const placeVersion = 1

// maxPlaceBytes is far above the size of any place. It protects against a mistyped path.
const maxPlaceBytes = 64 << 10

// IsPlace reports whether the address of a coordinator is the path of a file in HDFS that holds its Place.
func IsPlace(addr string) bool { return fs.Shared(addr) }

// ReadPlace reads a place's file. If it is missing, the error wraps os.ErrNotExist.
func ReadPlace(ctx context.Context, path string) (Place, error) {
	info, err := fs.Stat(path)
	if err != nil {
		return Place{}, fs.Explain(path, err)
	}
	if info.IsDir() || info.Size() > maxPlaceBytes {
		return Place{}, fs.Inputf(path, 0, "is not the file in which a coordinator says where it is")
	}
	data, err := fs.ReadFile(ctx, path)
	if err != nil {
		return Place{}, fs.Explain(path, err)
	}
	var p Place
	if err := json.Unmarshal(data, &p); err != nil || p.Version != placeVersion {
		return Place{}, fs.Inputf(path, 0, "is not the file in which a coordinator of this version says where it is")
	}
	if _, _, err := net.SplitHostPort(p.Coordinator); err != nil {
		return Place{}, fs.Inputf(path, 0, "names no HOST:PORT: %w", err)
	}
	return p, nil
}

// Announcer writes the address of a coordinator to a file.
type Announcer struct {
	// Path is the path of the file.
	Path string
	// Addr is the coordinator's address, host:port.
	Addr string
	// Page is the URL of its page. It is empty if there is none.
	Page string
	// Epoch is the epoch of the coordinator's journal. Zero means one more than the file has.
	Epoch uint64
	// Every is how often Watch reads the file. By default it is watchEvery.
	Every time.Duration
}

// Announce writes the file, unless a newer coordinator has written it.
func (a *Announcer) Announce(ctx context.Context) error {
	old, err := ReadPlace(ctx, a.Path)
	if err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return err
	}
	if a.Epoch == 0 {
		a.Epoch = old.Epoch + 1
	}
	if old.Epoch > a.Epoch {
		return fmt.Errorf("%s: %w (epoch %d, this one has %d); remove the file if that one is gone for good, and "+
			"its journal with it", a.Path, ErrMoved, old.Epoch, a.Epoch)
	}
	data, err := json.Marshal(Place{Version: placeVersion, Coordinator: a.Addr, Page: a.Page, Epoch: a.Epoch})
	if err != nil {
		return err
	}
	return fs.WriteFile(a.Path, append(data, '\n'))
}

// watchEvery is how often a coordinator checks that it is still the newest.
const watchEvery = 5 * time.Second

// Watch returns ErrMoved when a newer coordinator has announced itself, and nil when ctx ends. It
// ignores a file that can't be read at the moment.
func (a *Announcer) Watch(ctx context.Context) error {
	every := cmp.Or(a.Every, watchEvery)
	for retry.For(ctx, every) == nil {
		if p, err := ReadPlace(ctx, a.Path); err == nil && p.Epoch > a.Epoch {
			return fmt.Errorf("%s: %w: at %s", a.Path, ErrMoved, p.Coordinator)
		}
	}
	return nil
}

// placeAge is how long a place is cached. It bounds the load of thousands of workers on a name node
// while a coordinator is away.
const placeAge = 500 * time.Millisecond

// finder finds a coordinator by its file, which it caches for placeAge.
type finder struct {
	path string

	mu    sync.Mutex
	place Place
	err   error
	read  time.Time
}

// dial connects to where the coordinator is now. gRPC calls it whenever a connection breaks.
func (f *finder) dial(ctx context.Context, _ string) (net.Conn, error) {
	addr, err := f.addr(ctx)
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
}

// addr returns the coordinator's address.
func (f *finder) addr(ctx context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.read) >= placeAge {
		f.place, f.err = ReadPlace(ctx, f.path)
		f.read = time.Now()
	}
	return f.place.Coordinator, f.err
}

// NameServers sets the name that servers' certificates must have to ServerName, if the coordinator
// is found by a file.
func NameServers(o *secure.Options, coordinator string) {
	if IsPlace(coordinator) && o.ServerName == "" {
		o.ServerName = ServerName
	}
}
