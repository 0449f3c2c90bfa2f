package hadoop

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKeeper checks that a cluster's processes are not in the process group of its starter, so that
// Ctrl-C stops them in order, and that they end with the shell that keeps them, or with the shell's
// input.
func TestKeeper(t *testing.T) {
	for name, end := range map[string]func(c *Cluster, d *daemon){
		"input":     func(c *Cluster, _ *daemon) { c.Kill("d") },
		"interrupt": func(_ *Cluster, d *daemon) { _ = d.cmd.Process.Signal(os.Interrupt) },
		"term":      func(_ *Cluster, d *daemon) { _ = d.cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{dir: t.TempDir(), running: map[string]*daemon{}}
			if err := os.Mkdir(filepath.Join(c.dir, "logs"), 0o777); err != nil {
				t.Fatal(err)
			}
			pidFile := filepath.Join(c.dir, "pid")
			if err := c.start("d", exec.Command("sh", "-c", keeper, "sh", "sh", "-c", `echo $$ >"$0"; exec sleep 60`,
				pidFile)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Stop)
			d := c.running["d"]
			if group, err := syscall.Getpgid(d.cmd.Process.Pid); err != nil || group == syscall.Getpgrp() {
				t.Errorf("group %d is this process's (%v)", group, err)
			}
			pid := 0
			await(t, "the daemon to start", func() bool {
				b, err := os.ReadFile(pidFile)
				if err == nil {
					pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
				}
				return err == nil
			})
			end(c, d)
			await(t, "the daemon to end", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
		})
	}
}

// await waits up to half a minute, for machines under load, until a condition holds.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 3000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("still waiting for %s", what)
}
