package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"taxon/internal/fs"
)

// A driver that `taxon submit --engine mapreduce` has left behind answers while it lives.
// Afterwards its folder says how the job ended; where that is, is kept by its address in the
// user's cache.

// driverEnd is the error of who asks a driver that has ended.
type driverEnd struct {
	verb   string
	driver driverDocument
	doc    *jobDocument // nil: it was killed
}

func (e *driverEnd) Error() string {
	d := e.driver
	if e.doc == nil {
		return fmt.Sprintf("%s: the driver of %s, process %d, has been killed: the same `taxon submit` goes on from the job's last whole sweep; its log is %s", e.verb, d.Job, d.PID, d.Log)
	}
	switch e.doc.State {
	case "done":
		return fmt.Sprintf("%s: the driver of %s has ended: the job is done, its model is %s", e.verb, d.Job, d.Out)
	case "cancelled":
		return fmt.Sprintf("%s: the driver of %s has ended: the job was cancelled; the same `taxon submit` goes on from its last whole sweep", e.verb, d.Job)
	}
	return fmt.Sprintf("%s: the driver of %s has ended: the job failed: %s; its log is %s", e.verb, d.Job, oneLine(e.doc.Error), d.Log)
}

// driversDir is where drivers' folders are found by their addresses.
func driversDir() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "taxon", "drivers"), err
}

// noteDriver keeps the folder of the driver at an address, and forgets those whose folders
// are gone. Without it a driver that has ended just does not answer.
func noteDriver(addr, dir string) {
	index, err := driversDir()
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

// endFile is where a driver says how its job ended.
func endFile(dir string) string { return filepath.Join(dir, "ended.json") }

// dialLimit bounds asking whether anybody listens on this machine.
const dialLimit = time.Second

// driverGone is the error of asking the driver at an address when it has ended; nil: there
// was none, or it lives.
func driverGone(ctx context.Context, verb, addr string) error {
	index, err := driversDir()
	if err != nil || addr == "" || filepath.Base(addr) != addr {
		return nil
	}
	dir, err := os.ReadFile(filepath.Join(index, addr))
	if err != nil {
		return nil
	}
	e := driverEnd{verb: verb}
	if readDocument(driverFile(string(dir)), &e.driver) != nil || e.driver.Coordinator != addr {
		return nil // another driver's by now
	}
	conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", addr)
	if err == nil { // it lives, or another process has its port by now
		return conn.Close()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var doc jobDocument
	if readDocument(endFile(string(dir)), &doc) == nil {
		e.doc = &doc
		return usagef("%w", &e)
	}
	return withStatus(exitFailed, "%w", &e)
}

// readDocument reads a small JSON file of this machine.
func readDocument(path string, into any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// showEnded shows how a job has ended whose driver is asked for it and has ended in order;
// any other error stays.
func showEnded(a *app, job string, err error) error {
	var e *driverEnd
	if !errors.As(err, &e) {
		return err
	}
	if e.doc == nil || e.driver.Job != job {
		return err
	}
	if a.json {
		return a.printJSON(e.doc)
	}
	row := func(name, format string, args ...any) {
		fmt.Fprintf(a.stdout, "  %-12s%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(a.stdout, a.style.bold(job))
	row("state", "%s; its driver has ended", e.doc.State)
	row("sweep", "%d", e.doc.Sweep)
	if r := e.doc.Report; r != nil {
		row("stopped by", "%s", r.StoppedBy)
		row("weights", "sha256 %s", r.WeightsSHA256)
	}
	if e.doc.State == "done" {
		row("model", "%s", e.driver.Out)
	} else {
		row("go on", "the same `taxon submit` goes on from the last whole sweep")
	}
	row("log", "%s", e.driver.Log)
	if e.doc.Error != "" {
		row("error", "%s", oneLine(e.doc.Error))
	}
	return nil
}
