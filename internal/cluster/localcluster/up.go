package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"taxon/internal/cluster"
	"taxon/internal/fs"
	"taxon/internal/retry"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
)

// Up starts a cluster in dir, with a supervisor in a session of its own, and returns when
// everything is ready. It gives up after wait. In the folder of an earlier cluster, settings that
// were not given stay as they were; given takes the names of `taxon cluster up`'s flags.
func Up(ctx context.Context, dir string, o Settings, given func(flag string) bool, wait time.Duration,
	ui progress.Reporter) (*State, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := cluster.SupervisorFolder(dir); err != nil {
		return nil, err
	}
	if err := o.keep(dir, given); err != nil {
		return nil, err
	}
	if _, err := cluster.MakeRoots(o.Roots); err != nil {
		return nil, option.Errorf("cluster up: %w", err)
	}
	if err := takeFolder(ctx, dir, ui); err != nil {
		return nil, err
	}
	w, err := o.wanted()
	if err != nil {
		return nil, err
	}
	if err := WriteWanted(dir, w); err != nil {
		return nil, err
	}
	cmd, err := Detach(w.Program, dir, "cluster", "supervise", "--dir", dir)
	if err != nil {
		return nil, fmt.Errorf("cluster up: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s, err := await(ctx, dir, w.Version, wait, ended, ui)
	if err != nil {
		_ = cmd.Process.Signal(syscall.SIGTERM) // leave nothing half started
		select {
		case <-ended:
		case <-time.After(downWait):
		}
	}
	return s, err
}

// Scale changes the number of workers of the cluster in dir, and returns when the wanted ones are
// ready.
func Scale(ctx context.Context, dir string, workers int, wait time.Duration, ui progress.Reporter) (*State, error) {
	dir, err := running(dir, "scale")
	if err != nil {
		return nil, err
	}
	w, err := ReadWanted(dir)
	if err != nil {
		return nil, err
	}
	w.Workers = workers
	w.Version++
	if err := WriteWanted(dir, w); err != nil {
		return nil, err
	}
	if err := Reload(dir); err != nil {
		return nil, err
	}
	return await(ctx, dir, w.Version, wait, nil, ui)
}

// stateWait is how long the supervisor may take to record an event.
const stateWait = time.Second

// Status returns the state of the cluster in dir; see Exited for processes that have ended unnoticed.
func Status(ctx context.Context, dir string) (*State, error) {
	dir, err := running(dir, "status")
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		s, err := ReadState(dir)
		if err != nil {
			return nil, fs.Explain(dir, err)
		}
		if len(s.Exited()) == 0 || time.Since(began) >= stateWait {
			return s, nil
		}
		if err := retry.For(ctx, stateWait/10); err != nil {
			return nil, err
		}
	}
}

// downWait is how long a cluster may take to end.
const downWait = 30 * time.Second

// Down ends the processes of the cluster in dir, including those that a killed supervisor left.
func Down(ctx context.Context, dir string, ui progress.Reporter) error {
	dir, err := started(dir, "down")
	if err != nil {
		return err
	}
	if !Running(dir) {
		n, err := Sweep(ctx, dir)
		if err == nil && n == 0 {
			ui.Note("%s: the cluster does not run", dir)
		} else if err == nil {
			ui.Note("%s: ended %s that a killed cluster had left behind", dir, format.Counted(int64(n), "process", "processes"))
		}
		return err
	}
	before, err := ReadState(dir)
	if err != nil {
		return err
	}
	if err := End(dir); err != nil {
		return err
	}
	for deadline := time.Now().Add(downWait); Running(dir); {
		if err := retry.For(ctx, stateEvery); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			_ = Kill(dir)
			if err := retry.For(ctx, stateEvery); err != nil {
				return err
			}
			_, err := Sweep(ctx, dir)
			return err
		}
	}
	if _, err := Sweep(ctx, dir); err != nil { // it may have been killed, and was still holding its lock
		return err
	}
	ui.Note("%s: %s ended", dir, format.Counted(int64(len(before.Processes)), "process", "processes"))
	return nil
}

// started returns the absolute path of a folder in which a cluster was started before.
func started(dir, verb string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if _, err := ReadWanted(dir); errors.Is(err, os.ErrNotExist) {
		return "", option.Errorf("cluster %s: %s: no cluster was ever started here: `taxon cluster up ‹dir=%s›` starts one",
			verb, dir, dir)
	}
	return dir, nil
}

// running returns the absolute path of a folder in which a cluster runs.
func running(dir, verb string) (string, error) {
	dir, err := started(dir, verb)
	if err == nil && !Running(dir) {
		err = fmt.Errorf("cluster %s: %s: the cluster does not run: `taxon cluster up ‹dir=%s›` starts it again", verb, dir,
			dir)
	}
	return dir, err
}

// lockWait is how long a killed supervisor may take to disappear.
const lockWait = 300 * time.Millisecond

// takeFolder refuses a folder in which a cluster runs, and ends what a killed one has left.
func takeFolder(ctx context.Context, dir string, ui progress.Reporter) error {
	var lock io.Closer
	err := retry.Retry(ctx, lockWait, func() (err error) {
		lock, err = Lock(dir)
		return err
	}, func(err error) bool { return errors.Is(err, ErrRunning) })
	if errors.Is(err, ErrRunning) {
		where := ""
		if s, err := ReadState(dir); err == nil {
			where = " (coordinator at " + s.Coordinator + ")"
		}
		return option.Errorf("cluster up: a cluster runs in %s already%s: `taxon cluster status ‹dir=%s›` shows it, `taxon "+
			"cluster down ‹dir=%s›` ends it", dir, where, dir, dir)
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	n, err := Sweep(ctx, dir)
	if n > 0 {
		ui.Note("ended %s that a killed cluster had left behind", format.Counted(int64(n), "process", "processes"))
	}
	return err
}

// stateEvery is how often the state is read while waiting for it.
const stateEvery = 20 * time.Millisecond

// await waits until the cluster has reached the Wanted and everything is ready. ended receives the
// error with which the supervisor ended. It may be nil.
func await(ctx context.Context, dir string, version int, wait time.Duration, ended <-chan error,
	ui progress.Reporter) (*State, error) {
	line := ui.Start("cluster: processes ready", 0)
	defer line.Done()
	for deadline := time.Now().Add(wait); ; {
		s, err := ReadState(dir)
		if err == nil {
			ready := 0
			for _, p := range s.Processes {
				if p.Ready {
					ready++
				}
			}
			line.Total(int64(len(s.Processes)))
			line.Set(int64(ready))
			if s.Ready(version) {
				return s, nil
			}
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("cluster: the supervisor ended: %s", LastLine(filepath.Join(LogDir(dir), "supervisor.log")))
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(stateEvery):
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("cluster: not ready after %v: %s", wait, slowest(dir))
		}
	}
}

// slowest returns the last line of the first process that is not ready.
func slowest(dir string) string {
	s, err := ReadState(dir)
	if err != nil {
		return err.Error()
	}
	for _, p := range s.Processes {
		if !p.Ready {
			return p.ID + ": " + LastLine(filepath.Join(LogDir(dir), p.ID+".log"))
		}
	}
	return "see " + LogDir(dir)
}
