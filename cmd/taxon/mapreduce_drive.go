package main

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"

	"taxon/internal/engine"
	"taxon/internal/fs"
	"taxon/internal/model"
	taxonv1 "taxon/proto/taxon/v1"
)

// driving is a training that was submitted: its driver answers questions about the job.
type driving struct {
	dir, id string
	out     string

	mu     sync.Mutex
	addr   string
	told   bool
	server *grpc.Server
	last   *taxonv1.JobStatus // nil: none seen
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
	if at, err := filepath.Abs(d.out); err == nil && !fs.IsRemote(d.out) { // who asks may be elsewhere
		d.out = at
	}
	b, err := json.MarshalIndent(driverDocument{Job: d.id, Coordinator: d.addr, PID: os.Getpid(), Log: driverLog(d.dir), Out: d.out}, "", "  ")
	if err == nil {
		noteDriver(d.addr, d.dir)
		_ = fs.WriteFile(driverFile(d.dir), append(b, '\n')) // else its submitter goes on waiting for it
	}
}

// saw keeps what is known of the job, for who asks when it has ended.
func (d *driving) saw(st *taxonv1.JobStatus) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = st
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

// end says how the training has ended, where its address is known, and answers no more.
func (d *driving) end(report *model.Report, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told {
		doc := documentOf(d.last)
		doc.Job, doc.State, doc.Error, doc.Report = d.id, stateName(taxonv1.JobState_JOB_STATE_DONE), "", report
		if err != nil {
			doc.State, doc.Error = stateName(taxonv1.JobState_JOB_STATE_FAILED), oneLine(err.Error())
		}
		var status *statusError
		if isCancelled(err) || errors.As(err, &status) && status.Code == exitInterrupted {
			doc.State, doc.Error = stateName(taxonv1.JobState_JOB_STATE_CANCELLED), ""
		}
		if b, err := json.MarshalIndent(doc, "", "  "); err == nil {
			_ = fs.WriteFile(endFile(d.dir), append(b, '\n')) // else it is taken for one that was killed
		}
	}
	if d.server != nil {
		d.server.Stop()
	}
}
