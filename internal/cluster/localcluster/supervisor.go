package localcluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/ui/format"
)

const (
	// quickExit is the run time below which a process is started again only after a pause. The
	// pause grows each time, up to maxPause, so a killed process is back within half a second.
	quickExit  = 5 * time.Second
	firstPause = 50 * time.Millisecond
	maxPause   = 200 * time.Millisecond
	// maxRefused is the longest pause before a process is started again that ended with an error of
	// its own, as on a full disk. An immediate restart would hardly help.
	maxRefused = 2 * time.Second
	// grace is how long a process may take to end before it is killed.
	grace = 10 * time.Second
	// readyMark is part of the line that a process prints when it is ready.
	readyMark = ": ready on "
	// drainedMark ends the last line of a drained worker.
	drainedMark = ": drained"
	// listenFD is the number of the listening socket in a child: see exec.Cmd.ExtraFiles.
	listenFD = 3
)

// errDrained says that a worker ended because it was drained.
var errDrained = errors.New("drained")

// Supervisor runs the cluster in Dir until its context ends. It writes a line to Log for each
// event.
type Supervisor struct {
	Dir string
	Log io.Writer

	mu      sync.Mutex
	wanted  *Wanted
	coord   *child
	stores  []*child
	workers []*child
}

// child is a process that is kept running. The supervisor's mu guards all fields but the first
// four.
type child struct {
	role, id string
	args     func() []string
	// socket is nil if the process does not listen.
	socket *os.File
	end    context.CancelFunc
	ended  chan struct{}

	view Process
}

// Run runs the processes until ctx ends, and then ends them, workers first. reload signals that the
// Wanted has changed. An error means that it could not begin.
func (s *Supervisor) Run(ctx context.Context, reload <-chan os.Signal) (err error) {
	lock, err := Lock(s.Dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if n, err := Sweep(ctx, s.Dir); err != nil {
		return err
	} else if n > 0 {
		s.logf("ended %s left behind", format.Counted(int64(n), "process that was", "processes that were"))
	}
	if err := fs.MkdirMode(LogDir(s.Dir), 0o755); err != nil {
		return fs.Explain(s.Dir, err)
	}
	defer s.stop()
	if err := s.begin(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-reload:
			if err := s.adapt(); err != nil {
				s.logf("%v", err)
			}
		}
	}
}

// begin starts the processes of the Wanted.
func (s *Supervisor) begin() (err error) {
	if s.wanted, err = ReadWanted(s.Dir); err != nil {
		return err
	}
	if s.coord, err = s.newChild(Coordinator, Coordinator, true); err != nil {
		return err
	}
	for i := range s.wanted.Stores {
		c, err := s.newChild(Store, fmt.Sprintf("store-%d", i), true)
		if err != nil {
			return err
		}
		s.stores = append(s.stores, c)
	}
	if err := s.scale(); err != nil {
		return err
	}
	for _, c := range append([]*child{s.coord}, s.stores...) {
		s.start(c)
	}
	s.publish()
	return nil
}

// adapt applies a change of the Wanted. Only the number of workers can change.
func (s *Supervisor) adapt() error {
	w, err := ReadWanted(s.Dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.wanted = w
	s.mu.Unlock()
	err = s.scale()
	s.publish()
	return err
}

// scale starts or ends workers. It ends the newest first.
func (s *Supervisor) scale() error {
	for {
		s.mu.Lock()
		n, wanted := len(s.workers), s.wanted.Workers
		var last *child
		if n > wanted {
			last = s.workers[n-1]
			s.workers = s.workers[:n-1]
		}
		id := s.freeID()
		s.mu.Unlock()
		switch {
		case n > wanted:
			last.end() // it gives its tasks back, and nobody need wait for it
		case n == wanted:
			return nil
		default:
			c, err := s.newChild(Worker, id, false)
			if err != nil {
				return err
			}
			s.mu.Lock()
			s.workers = append(s.workers, c)
			s.mu.Unlock()
			s.start(c)
		}
	}
}

// freeID returns the first free worker id. The caller holds mu.
func (s *Supervisor) freeID() string {
	for n := 0; ; n++ {
		id := fmt.Sprintf("worker-%d", n)
		if !slices.ContainsFunc(s.workers, func(c *child) bool { return c.id == id }) {
			return id
		}
	}
}

// retire removes a drained worker from the Wanted.
func (s *Supervisor) retire(c *child) {
	s.logf("%s was drained", c.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.workers, c)
	if at < 0 {
		return
	}
	s.workers = slices.Delete(s.workers, at, at+1)
	s.wanted.Workers = len(s.workers)
	if err := WriteWanted(s.Dir, s.wanted); err != nil {
		fmt.Fprintf(s.Log, "%v\n", err)
	}
}

// stop ends all processes, workers first, so that they can return their tasks.
func (s *Supervisor) stop() {
	s.mu.Lock()
	groups := [][]*child{slices.Clone(s.workers), s.stores, {s.coord}}
	s.mu.Unlock()
	for _, group := range groups {
		for _, c := range group {
			if c != nil && c.end != nil {
				c.end()
			}
		}
		for _, c := range group {
			if c != nil && c.ended != nil {
				<-c.ended
			}
		}
	}
	_ = fs.RemoveAll(statePath(s.Dir))
	s.logf("all processes have ended")
}

// newChild describes a process, which start runs.
func (s *Supervisor) newChild(role, id string, listens bool) (*child, error) {
	c := &child{role: role, id: id, view: Process{Role: role, ID: id}}
	c.args = func() []string { return s.arguments(c) }
	if !listens {
		return c, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	defer l.Close() // the file is a copy that stays open
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil, fmt.Errorf("%s: %T has no file", id, l)
	}
	if c.socket, err = tcp.File(); err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	c.view.Addr = l.Addr().String()
	return c, nil
}

// arguments returns the command line of a process.
func (s *Supervisor) arguments(c *child) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	args := []string{c.role, "--name", c.id}
	if c.socket != nil {
		args = append(args, "--listen-fd", fmt.Sprint(listenFD), "--dir", filepath.Join(s.Dir, c.id))
	}
	switch c.role {
	case Coordinator:
		return append(args[:1], append(args[3:], s.wanted.Coordinator...)...)
	case Store:
		return append(append(args, "--coordinator", s.coord.view.Addr), s.wanted.Store...)
	default: // the workers of a machine share a cache
		return append(append(args, "--coordinator", s.coord.view.Addr, "--dir", filepath.Join(s.Dir, "cache")),
			s.wanted.Worker...)
	}
}

// start keeps a process running until its end function is called.
func (s *Supervisor) start(c *child) {
	ctx, cancel := context.WithCancel(context.Background())
	c.end, c.ended = cancel, make(chan struct{})
	go func() {
		defer close(c.ended)
		s.keep(ctx, c)
	}()
}

// keep runs a process again and again until ctx ends. The constants above set the pauses between
// two runs.
func (s *Supervisor) keep(ctx context.Context, c *child) {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := s.runOnce(ctx, c)
		if errors.Is(err, errDrained) {
			s.retire(c)
			break
		}
		if ctx.Err() != nil {
			break
		}
		s.logf("%s ended (%v): starting it again", c.id, err)
		s.mu.Lock()
		c.view.PID, c.view.Ready = 0, false
		c.view.Restarts++
		s.mu.Unlock()
		s.publish()
		if time.Since(began) > quickExit {
			pause = firstPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		most := maxPause
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
			most = maxRefused
		}
		pause = min(2*pause, most)
	}
	s.publish()
}

// runOnce runs a process until it ends.
func (s *Supervisor) runOnce(ctx context.Context, c *child) error {
	log, err := vfs.Output(filepath.Join(LogDir(s.Dir), c.id+".log"), os.O_APPEND)
	if err != nil {
		return err
	}
	defer log.Close()
	s.mu.Lock()
	program := s.wanted.Program
	s.mu.Unlock()
	cmd := exec.Command(program, c.args()...)
	cmd.Stderr = log
	if c.socket != nil {
		cmd.ExtraFiles = []*os.File{c.socket}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.mu.Lock()
	c.view.PID, c.view.Started = cmd.Process.Pid, startOf(cmd.Process.Pid)
	s.mu.Unlock()
	s.publish()
	done := make(chan struct{})
	over := make(chan struct{})
	go func() { // ends it when asked to
		defer close(over)
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		terminate(cmd.Process.Pid)
		select {
		case <-done:
		case <-time.After(grace):
			_ = cmd.Process.Kill()
		}
	}()
	drained := false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		drained = drained || strings.HasSuffix(lines.Text(), drainedMark)
		fmt.Fprintln(log, lines.Text())
		if strings.Contains(lines.Text(), readyMark) {
			s.mu.Lock()
			c.view.Ready = true
			s.mu.Unlock()
			s.publish()
		}
	}
	err = cmd.Wait()
	close(done)
	<-over
	switch {
	case drained:
		return errDrained
	case err == nil:
		return errors.New("exit status 0")
	}
	return err
}

// publish writes the state.
func (s *Supervisor) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{Supervisor: os.Getpid(), Coordinator: s.coord.view.Addr, Version: s.wanted.Version}
	for _, c := range slices.Concat([]*child{s.coord}, s.stores, s.workers) {
		st.Processes = append(st.Processes, c.view)
	}
	if err := writeJSON(statePath(s.Dir), &st); err != nil {
		fmt.Fprintf(s.Log, "%v\n", err)
	}
}

func (s *Supervisor) logf(format string, args ...any) {
	fmt.Fprintf(s.Log, "%s %s\n", time.Now().UTC().Format(time.RFC3339Nano), fmt.Sprintf(format, args...))
}
