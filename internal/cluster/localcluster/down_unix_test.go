//go:build unix

package localcluster

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"taxon/internal/ui/progress"
)

// A supervisor that was killed may hold its lock a moment longer. Down then waits for the lock, and
// ends what the supervisor has left.
func TestDownOfDyingSupervisor(t *testing.T) {
	dir := t.TempDir()
	start := func() *exec.Cmd {
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd
	}
	supervisor, worker := start(), start()
	state := State{Supervisor: supervisor.Process.Pid, Processes: []Process{{Role: Worker, ID: "worker-0",
		PID: worker.Process.Pid, Started: startOf(worker.Process.Pid)}}}
	if err := WriteWanted(dir, &Wanted{Workers: 1}); err != nil {
		t.Fatal(err)
	}
	if err := writeJSON(statePath(dir), &state); err != nil {
		t.Fatal(err)
	}
	lock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = supervisor.Wait(); time.Sleep(3 * stateEvery); lock.Close() }()
	ended := make(chan error, 1)
	go func() { ended <- worker.Wait() }()
	if err := Down(t.Context(), dir, progress.Discard{}); err != nil {
		t.Fatal(err)
	}
	if <-ended; worker.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the worker ended by itself: %v", worker.ProcessState)
	}
}
