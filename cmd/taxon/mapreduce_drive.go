package main

import (
	"encoding/json"
	"net"
	"os"
	"sync"

	"google.golang.org/grpc"

	"taxon/internal/engine"
	"taxon/internal/fs"
)

// driving is a training that was submitted: its driver answers questions about the job.
type driving struct {
	dir, id string
	out     string

	mu     sync.Mutex
	addr   string
	told   bool
	server *grpc.Server
}

// listen serves the job's state on loopback, to this machine's users as any coordinator
// there does. end ends it.
func (d *driving) listen(e *engine.Engine) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.server = grpc.NewServer()
	e.RegisterJobs(d.server)
	go func() { _ = d.server.Serve(l) }() // ends with end
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addr = l.Addr().String()
	return nil
}

// accepted tells whoever has submitted the job that Hadoop has taken it.
func (d *driving) accepted() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told {
		return
	}
	d.told = true
	b, err := json.MarshalIndent(driverDocument{Job: d.id, Coordinator: d.addr, PID: os.Getpid(), Log: driverLog(d.dir), Out: d.out}, "", "  ")
	if err == nil {
		_ = fs.WriteFile(driverFile(d.dir), append(b, '\n')) // else its submitter goes on waiting for it
	}
}

// rename takes over the id of the job that is gone on with.
func (d *driving) rename(id string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.id = id
}

func (d *driving) end() {
	if d.server != nil {
		d.server.Stop()
	}
}
