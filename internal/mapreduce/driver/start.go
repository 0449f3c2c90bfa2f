package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"taxon/internal/cluster/supervise"
	"taxon/internal/fs"
	"taxon/internal/pause"
)

// Dir is the folder of the log and address of the driver that makes the model out.
func Dir(out string) (string, error) {
	if !fs.IsRemote(out) {
		return filepath.Abs(fs.Clean(out) + ".driver")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(fs.Clean(out)))
	return filepath.Join(cache, "taxon", hex.EncodeToString(sum[:8])+".driver"), nil
}

// EarlyEnd is the error of a driver that has ended before Hadoop took a job.
type EarlyEnd struct {
	Line   string // the last one of its log
	Status int    // that it ended with
	Err    error  // nil: the model was there already, or was made at once
}

func (e *EarlyEnd) Error() string {
	if e.Err == nil {
		return "the driver ended: " + e.Line
	}
	return fmt.Sprintf("the driver ended (%v): %s", e.Err, e.Line)
}

// pollEvery is how often the driver's word is looked for.
const pollEvery = 50 * time.Millisecond

// Start starts this program as a driver with a folder, which is emptied, and waits until Hadoop
// has taken its first job. When ctx ends the driver goes on.
func Start(ctx context.Context, dir string, args []string) (*Info, error) {
	if err := renew(dir); err != nil {
		return nil, fs.Explain(dir, err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	process, err := supervise.Detach(self, dir, args...)
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
			e := &EarlyEnd{Line: strings.TrimPrefix(supervise.LastLine(logFile(dir)), "taxon: "), Err: err}
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				e.Status = exit.ExitCode()
			}
			return nil, e
		default:
		}
		if err := pause.For(ctx, pollEvery); err != nil {
			return nil, err
		}
	}
}

// renew makes the folder of a driver empty, with the mark that says whose it is.
func renew(dir string) error {
	if err := fs.RemoveOwn(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return fs.Mark(dir)
}
