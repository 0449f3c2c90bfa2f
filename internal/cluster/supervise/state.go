package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"taxon/internal/fs"
	"taxon/internal/human"
)

// Roles of processes.
const (
	Coordinator = "coordinator"
	Store       = "store"
	Worker      = "worker"
)

// Process is one process as the outside sees it.
type Process struct {
	Role     string `json:"role"`
	ID       string `json:"id"`
	PID      int    `json:"pid"` // 0: just being started
	Addr     string `json:"addr"`
	Restarts int    `json:"restarts"`
	Ready    bool   `json:"ready"`
	Started  int64  `json:"started"` // in the system's own count, to tell a pid that is used again
}

// State is what runs.
type State struct {
	Supervisor  int       `json:"supervisor"` // pid
	Coordinator string    `json:"coordinator"`
	Processes   []Process `json:"processes"`
	Version     int       `json:"version"` // of the Wanted that it has come to
	Dir         string    `json:"-"`       // where it was read
}

// Ready says whether the state has come to version of what is wanted and all run.
func (s *State) Ready(version int) bool {
	for _, p := range s.Processes {
		if !p.Ready {
			return false
		}
	}
	return s.Version >= version && len(s.Processes) > 0
}

// Wanted is what the supervisor keeps running.
type Wanted struct {
	Version int    `json:"version"` // rises with each change
	Program string `json:"program"` // path of the executable
	Stores  int    `json:"stores"`
	Workers int    `json:"workers"`
	// Further arguments of the processes of a role.
	Coordinator []string `json:"coordinator_args,omitempty"`
	Store       []string `json:"store_args,omitempty"`
	Worker      []string `json:"worker_args,omitempty"`
}

func wantedPath(dir string) string { return filepath.Join(dir, "cluster.json") }
func statePath(dir string) string  { return filepath.Join(dir, "state.json") }
func lockPath(dir string) string   { return filepath.Join(dir, "supervisor.lock") }

// LogDir is the folder of the processes' logs.
func LogDir(dir string) string { return filepath.Join(dir, "logs") }

// ReadWanted reads what is wanted of the cluster in dir; fs.ErrNotExist in its chain if
// there never was one.
func ReadWanted(dir string) (*Wanted, error) {
	w := &Wanted{}
	return w, readJSON(wantedPath(dir), w)
}

// WriteWanted changes what is wanted; Reload tells the supervisor.
func WriteWanted(dir string, w *Wanted) error { return writeJSON(wantedPath(dir), w) }

// ReadState reads what the supervisor last wrote.
func ReadState(dir string) (*State, error) {
	s := &State{Dir: dir}
	return s, readJSON(statePath(dir), s)
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: damaged: %w; remove it", path, err)
	}
	return nil
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return fs.WriteFile(path, append(data, '\n'))
}

// Sweep ends the processes that a killed supervisor left behind in dir, and returns how
// many there were. The supervisor must be dead: see Running.
func Sweep(dir string) (int, error) {
	s, err := ReadState(dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	left := 0
	for _, p := range s.Processes {
		if same(p.PID, p.Started) {
			left++
			kill(p.PID)
		}
	}
	for deadline := time.Now().Add(killWait); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		alive := false
		for _, p := range s.Processes {
			alive = alive || same(p.PID, p.Started)
		}
		if !alive {
			return left, os.Remove(statePath(dir))
		}
	}
	return left, fmt.Errorf("%s: processes of a cluster that was killed do not end", dir)
}

// killWait is how long a killed process may take to be gone.
const killWait = 5 * time.Second

// LastLine is the end of a log, for an error.
func LastLine(path string) string {
	data, err := os.ReadFile(path)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if err != nil || lines[len(lines)-1] == "" {
		return "see " + path
	}
	return human.OneLine(lines[len(lines)-1])
}
