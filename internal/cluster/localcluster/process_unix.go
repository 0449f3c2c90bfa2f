//go:build unix

package localcluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
)

// ErrRunning is wrapped by the error of Lock while a supervisor lives.
var ErrRunning = errors.New("a cluster runs here already")

// Lock takes the supervisor's lock of dir, and makes the folder. The lock ends with the process
// or with Close.
func Lock(dir string) (io.Closer, error) {
	if err := fs.MkdirMode(dir, 0o755); err != nil {
		return nil, fs.Explain(dir, err)
	}
	f, err := vfs.LockFile(vfs.OS, lockPath(dir), 0o644)
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("%s: %w", dir, ErrRunning)
	}
	if err != nil {
		return nil, fs.Explain(dir, err)
	}
	return f, nil
}

// Running reports whether a supervisor lives in dir.
func Running(dir string) bool { return vfs.Locked(lockPath(dir)) }

// Detach starts a supervisor in a session of its own, without a terminal, with its output in the
// folder's logs. The caller may wait for the process.
func Detach(program, dir string, args ...string) (*exec.Cmd, error) {
	if err := fs.MkdirMode(LogDir(dir), 0o755); err != nil {
		return nil, fs.Explain(dir, err)
	}
	log, err := vfs.Output(filepath.Join(LogDir(dir), "supervisor.log"), os.O_APPEND)
	if err != nil {
		return nil, fs.Explain(dir, err)
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, cmd.Start()
}

// Reload tells the supervisor of dir to read the Wanted again.
func Reload(dir string) error { return signal(dir, unix.SIGHUP) }

// End tells the supervisor of dir to end its processes and itself.
func End(dir string) error { return signal(dir, unix.SIGTERM) }

// Kill kills the supervisor of dir; see Sweep.
func Kill(dir string) error { return signal(dir, unix.SIGKILL) }

func signal(dir string, s unix.Signal) error {
	st, err := ReadState(dir)
	if err != nil {
		return err
	}
	if err := unix.Kill(st.Supervisor, s); err != nil {
		return fmt.Errorf("signal the supervisor (process %d): %w", st.Supervisor, err)
	}
	return nil
}

// terminate asks a process to end. It works even if the process is stopped.
func terminate(pid int) {
	_ = unix.Kill(pid, unix.SIGTERM) // it may have ended
	_ = unix.Kill(pid, unix.SIGCONT)
}

func kill(pid int) { _ = unix.Kill(pid, unix.SIGKILL) }

// startOf returns when a process began, in clock ticks since the system's start. It is 0 if that is
// unknown, or if there is no such process.
func startOf(pid int) int64 {
	data, err := vfs.ReadFile(vfs.OS, fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:]) // the name may contain blanks
	const startField = 19                                           // field 22, counted from after the name
	if len(fields) <= startField || string(fields[0]) == "Z" {
		return 0
	}
	n, _ := strconv.ParseInt(string(fields[startField]), 10, 64)
	return n
}

// Exited lists the processes that have ended although the state lists them as running. If that
// persists, the supervisor can't write the state.
func (s *State) Exited() []Process {
	var gone []Process
	for _, p := range s.Processes {
		if p.PID > 0 && p.Started != 0 && !same(p.PID, p.Started) {
			gone = append(gone, p)
		}
	}
	return gone
}

// same reports whether a pid is still the process that began then.
func same(pid int, started int64) bool {
	return pid > 0 && started != 0 && startOf(pid) == started
}
