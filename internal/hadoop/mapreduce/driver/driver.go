// Package driver is the process that `taxon submit --engine mapreduce` leaves running. While it
// lives it answers questions about its job, on loopback. Afterwards its folder says how the job
// ended. An index in the user's cache maps the driver's address to that folder.
package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"taxon/internal/cluster/localcluster"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/retry"
	"taxon/internal/ui/format"
	taxonv1 "taxon/proto/taxon/v1"
)

// Info is what a driver says about itself: `taxon submit --engine mapreduce --json`.
type Info struct {
	Job string `json:"job"`
	// address on this machine that answers status, jobs and cancel
	Coordinator string `json:"coordinator"`
	PID         int    `json:"pid"`
	Log         string `json:"log"`
	Out         string `json:"out"`
}

// Driver is the driver's own side: a training that was submitted. Without a folder, for a
// training that nobody submitted, it reports nothing.
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

// Listen serves the job's state, as an engine registers it, on loopback, to this machine's users.
// End ends it.
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

// Accepted tells the submitter that Hadoop has accepted the job.
func (d *Driver) Accepted() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told || d.Dir == "" {
		return
	}
	d.told = true
	if at, err := fs.Abs(d.Out); err == nil { // the reader may be in another folder
		d.Out = at
	}
	b, err := json.MarshalIndent(Info{Job: d.Job, Coordinator: d.addr, PID: os.Getpid(), Log: logFile(d.Dir), Out: d.Out},
		"", "  ")
	if err == nil {
		keep(d.addr, d.Dir)
		_ = fs.WriteFile(infoFile(d.Dir), append(b, '\n')) // if it fails the submitter waits in vain
	}
}

// Saw keeps the job's last status, for questions after its end.
func (d *Driver) Saw(st *taxonv1.JobStatus) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = st
}

// Rename sets the id of the job that is continued.
func (d *Driver) Rename(job string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Job = job
}

// End stops answering. If the driver's address is known, its folder then says how the training
// ended: a document with the fields state and error, made from the job's id and last status.
func (d *Driver) End(document func(job string, last *taxonv1.JobStatus) any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told {
		if b, err := json.MarshalIndent(document(d.Job, d.last), "", "  "); err == nil {
			_ = fs.WriteFile(endFile(d.Dir), append(b, '\n')) // if it fails, the driver looks like one that was killed
		}
	}
	if d.server != nil {
		d.server.Stop()
	}
}

// Dir is the folder of the log and address of the driver that makes the model out.
func Dir(out string) (string, error) {
	dir, err := fs.Beside(out, ".driver")
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// EarlyEnd is the error of a driver that ended before Hadoop accepted a job.
type EarlyEnd struct {
	Line   string // last line of its log
	Status int    // exit status
	Err    error  // nil: the model existed already, or was made at once
}

func (e *EarlyEnd) Error() string {
	if e.Err == nil {
		return "the driver ended: " + e.Line
	}
	return fmt.Sprintf("the driver ended (%v): %s", e.Err, e.Line)
}

// pollEvery is how often the driver's answer is looked for.
const pollEvery = 50 * time.Millisecond

// Start starts this program as a driver in a folder, which is emptied, and waits until Hadoop has
// accepted its first job. If ctx ends the driver goes on.
func Start(ctx context.Context, dir string, args []string) (*Info, error) {
	if err := renew(dir); err != nil {
		return nil, fs.Explain(dir, err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	process, err := localcluster.Detach(self, dir, args...)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	for {
		var d Info
		if readJSON(infoFile(dir), &d) == nil {
			return &d, nil
		}
		select {
		case err := <-ended:
			e := &EarlyEnd{Line: strings.TrimPrefix(localcluster.LastLine(logFile(dir)), "taxon: "), Err: err}
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				e.Status = exit.ExitCode()
			}
			return nil, e
		default:
		}
		if err := retry.For(ctx, pollEvery); err != nil {
			return nil, err
		}
	}
}

// renew empties the folder of a driver and marks it as taxon's.
func renew(dir string) error {
	if err := fs.RemoveOwn(dir); err != nil {
		return err
	}
	if err := fs.MkdirMode(dir, 0o755); err != nil {
		return err
	}
	return fs.Mark(dir)
}

// Ended is the error of asking a driver that has ended.
type Ended struct {
	Info
	State    string          // of the job; "": the driver was killed
	Why      string          // the job failed
	Document json.RawMessage // what End was given; nil: the driver was killed
}

func (e *Ended) Error() string {
	switch e.State {
	case "":
		return fmt.Sprintf("the driver of %s, process %d, has been killed: the same `taxon submit` continues from the "+
			"job's last whole sweep; its log is %s", e.Job, e.PID, e.Log)
	case "done":
		return fmt.Sprintf("the driver of %s has ended: the job is done, its model is %s", e.Job, e.Out)
	case "cancelled":
		return fmt.Sprintf("the driver of %s has ended: the job was cancelled; the same `taxon submit` continues from "+
			"its last whole sweep", e.Job)
	}
	return fmt.Sprintf("the driver of %s has ended: the job failed: %s; its log is %s", e.Job, format.OneLine(e.Why),
		e.Log)
}

// infoFile says where a driver answers; endFile how its job ended.
func infoFile(dir string) string { return filepath.Join(dir, "driver.json") }
func endFile(dir string) string  { return filepath.Join(dir, "ended.json") }
func logFile(dir string) string  { return filepath.Join(localcluster.LogDir(dir), "supervisor.log") }

// indexDir is the index from addresses to drivers' folders.
func indexDir() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "taxon", "drivers"), err
}

// keep adds the folder of the driver at an address to the index, and removes entries whose
// folders are gone. Without an entry, a driver that has ended simply does not answer.
func keep(addr, dir string) {
	index, err := indexDir()
	if err != nil || fs.MkdirMode(index, 0o755) != nil {
		return
	}
	names, _ := fs.ReadDirNames(index) // nothing to remove
	for _, name := range names {
		if at, err := vfs.ReadFile(vfs.OS, filepath.Join(index, name)); err == nil && !fs.Exists(string(at)) {
			_ = fs.RemoveAll(filepath.Join(index, name))
		}
	}
	_ = fs.WriteFile(filepath.Join(index, addr), []byte(dir))
}

// dialLimit bounds the check whether anybody listens at an address of this machine.
const dialLimit = time.Second

// Gone says how the driver at an address ended; nil: there was none, or it lives. An error is the
// context's.
func Gone(ctx context.Context, addr string) (*Ended, error) {
	index, err := indexDir()
	if err != nil || addr == "" || filepath.Base(addr) != addr {
		return nil, nil
	}
	dir, err := vfs.ReadFile(vfs.OS, filepath.Join(index, addr))
	if err != nil {
		return nil, nil
	}
	e := &Ended{}
	if readJSON(infoFile(string(dir)), &e.Info) != nil || e.Coordinator != addr {
		return nil, nil // the folder is another driver's by now
	}
	conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", addr)
	if err == nil { // it lives, or another process has its port
		return nil, conn.Close()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var end struct{ State, Error string }
	if readJSON(endFile(string(dir)), &end) == nil && readJSON(endFile(string(dir)), &e.Document) == nil {
		e.State, e.Why = end.State, end.Error
	}
	return e, nil
}

// readJSON reads a small JSON file of this machine.
func readJSON(path string, into any) error {
	b, err := vfs.ReadFile(vfs.OS, path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}
