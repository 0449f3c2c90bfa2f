// Package driver is the process that `taxon submit --engine mapreduce` leaves behind. While it
// lives it answers questions about its job, on loopback. Afterwards its folder says how the job
// ended. The user's cache keeps the place of that folder, by the driver's address.
package driver

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"

	"taxon/internal/fs"
	taxonv1 "taxon/proto/taxon/v1"
)

// Info is what a driver says of itself: `taxon submit --engine mapreduce --json`.
type Info struct {
	Job         string `json:"job"`
	Coordinator string `json:"coordinator"` // answers status, jobs and cancel, on this machine
	PID         int    `json:"pid"`
	Log         string `json:"log"`
	Out         string `json:"out"`
}

// Driver is the driver's own side: a training that was submitted. One without a folder, which
// nobody submitted, tells nobody anything.
type Driver struct {
	Dir string // its folder
	Job string
	Out string // where the model goes

	mu     sync.Mutex
	addr   string
	told   bool
	server *grpc.Server
	last   *taxonv1.JobStatus // nil: none seen
}

// Listen serves the job's state, as an engine registers it, on loopback: to this machine's users
// as any coordinator there does. End ends it.
func (d *Driver) Listen(register func(grpc.ServiceRegistrar)) error {
	if d.Dir == "" {
		return nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.server = grpc.NewServer()
	register(d.server)
	go func() { _ = d.server.Serve(l) }() // ends with End
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addr = l.Addr().String()
	return nil
}

// Accepted tells whoever has submitted the job that Hadoop has taken it.
func (d *Driver) Accepted() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told || d.Dir == "" {
		return
	}
	d.told = true
	if at, err := filepath.Abs(d.Out); err == nil && !fs.IsRemote(d.Out) { // who asks may be elsewhere
		d.Out = at
	}
	b, err := json.MarshalIndent(Info{Job: d.Job, Coordinator: d.addr, PID: os.Getpid(), Log: logFile(d.Dir), Out: d.Out}, "", "  ")
	if err == nil {
		keep(d.addr, d.Dir)
		_ = fs.WriteFile(infoFile(d.Dir), append(b, '\n')) // else its submitter goes on waiting for it
	}
}

// Saw keeps what is known of the job, for who asks when it has ended.
func (d *Driver) Saw(st *taxonv1.JobStatus) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = st
}

// Rename takes over the id of the job that is gone on with.
func (d *Driver) Rename(job string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Job = job
}

// End answers no more. Where the driver's address is known, its folder says how the training
// has ended: by a document with the fields state and error, of the job's id and last status.
func (d *Driver) End(document func(job string, last *taxonv1.JobStatus) any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told {
		if b, err := json.MarshalIndent(document(d.Job, d.last), "", "  "); err == nil {
			_ = fs.WriteFile(endFile(d.Dir), append(b, '\n')) // else it is taken for one that was killed
		}
	}
	if d.server != nil {
		d.server.Stop()
	}
}
