package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"taxon/internal/cluster/supervise"
	"taxon/internal/fs"
	"taxon/internal/human"
)

// Ended is the error of asking a driver that has ended.
type Ended struct {
	Info
	State    string          // of the job; "": the driver was killed
	Why      string          // the job failed
	Document json.RawMessage // that End was given; nil: the driver was killed
}

func (e *Ended) Error() string {
	switch e.State {
	case "":
		return fmt.Sprintf("the driver of %s, process %d, has been killed: the same `taxon submit` goes on from the job's last whole sweep; its log is %s", e.Job, e.PID, e.Log)
	case "done":
		return fmt.Sprintf("the driver of %s has ended: the job is done, its model is %s", e.Job, e.Out)
	case "cancelled":
		return fmt.Sprintf("the driver of %s has ended: the job was cancelled; the same `taxon submit` goes on from its last whole sweep", e.Job)
	}
	return fmt.Sprintf("the driver of %s has ended: the job failed: %s; its log is %s", e.Job, human.OneLine(e.Why), e.Log)
}

// infoFile is where a driver says where it answers, endFile how its job ended.
func infoFile(dir string) string { return filepath.Join(dir, "driver.json") }
func endFile(dir string) string  { return filepath.Join(dir, "ended.json") }
func logFile(dir string) string  { return filepath.Join(supervise.LogDir(dir), "supervisor.log") }

// indexDir is where drivers' folders are found by their addresses.
func indexDir() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "taxon", "drivers"), err
}

// keep keeps the folder of the driver at an address, and forgets those whose folders
// are gone. Without it a driver that has ended just does not answer.
func keep(addr, dir string) {
	index, err := indexDir()
	if err != nil || os.MkdirAll(index, 0o755) != nil {
		return
	}
	names, _ := fs.ReadDirNames(index) // nothing to forget
	for _, name := range names {
		if at, err := os.ReadFile(filepath.Join(index, name)); err == nil && !fs.Exists(string(at)) {
			_ = os.Remove(filepath.Join(index, name))
		}
	}
	_ = fs.WriteFile(filepath.Join(index, addr), []byte(dir))
}

// dialLimit bounds asking whether anybody listens on this machine.
const dialLimit = time.Second

// Gone tells how the driver at an address has ended; nil: there was none, or it lives. The
// error is the context's.
func Gone(ctx context.Context, addr string) (*Ended, error) {
	index, err := indexDir()
	if err != nil || addr == "" || filepath.Base(addr) != addr {
		return nil, nil
	}
	dir, err := os.ReadFile(filepath.Join(index, addr))
	if err != nil {
		return nil, nil
	}
	e := &Ended{}
	if readJSON(infoFile(string(dir)), &e.Info) != nil || e.Coordinator != addr {
		return nil, nil // another driver's by now
	}
	conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", addr)
	if err == nil { // it lives, or another process has its port by now
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
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}
