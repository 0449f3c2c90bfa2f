package golden

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"taxon/test/command"
)

// bin is the command under test, which is built once.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "taxon-golden")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer os.RemoveAll(dir)
	if bin, err = command.Build(dir); err != nil {
		log.Print(err)
		return 1
	}
	return m.Run()
}

// deadline bounds any single command. A test whose command exceeds it fails.
const deadline = 5 * time.Minute

// taxon runs a command. code is -1 if a signal ended it.
func taxon(args ...string) (code int, stdout, stderr string) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		return -1, "", err.Error()
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// succeed runs a command that must succeed, and returns its output.
func succeed(args ...string) (string, error) {
	code, stdout, stderr := taxon(args...)
	if code != 0 {
		return "", fmt.Errorf("taxon %s: exit status %d: %s", strings.Join(args, " "), code, stderr)
	}
	return stdout, nil
}

// report is the part of the output of `train --json` that the table contains, with the numbers as
// printed.
type report struct {
	Loss                 string
	WeightsSHA256        string `json:"weights_sha256"`
	Sweeps               int
	Objective, Dual, Gap json.Number
	StoppedBy            string                `json:"stopped_by"`
	CapsBefore           []struct{ Sweep int } `json:"caps_before"`
}

func (r report) String() string {
	number := func(n json.Number) string {
		switch x, err := n.Float64(); {
		case n == "": // null, if there is no certificate
			return "none"
		case r.Loss == "logistic" && err == nil: // the last bit of math.Exp differs between CPUs
			return fmt.Sprintf("%.9g", math.Round(1e9*x)/1e9)
		}
		return n.String()
	}
	text := fmt.Sprintf("%s, %d sweeps, objective %s, dual %s, gap %s, stopped by %s",
		r.WeightsSHA256, r.Sweeps, number(r.Objective), number(r.Dual), number(r.Gap), r.StoppedBy)
	for _, b := range r.CapsBefore {
		text += fmt.Sprintf(", other caps to sweep %d", b.Sweep)
	}
	return text
}

// trainArgs returns the arguments of a training into out, with one thread and without cut-offs
// unless the flags say otherwise.
func trainArgs(out string, flags ...string) []string {
	return append([]string{"train", "--json", "--quiet", "--threads", "1", "--cutoff", "none", "--out", out}, flags...)
}

func train(out string, flags ...string) (r report, err error) {
	text, err := succeed(trainArgs(out, flags...)...)
	if err != nil {
		return r, err
	}
	return reportOf(text)
}

func reportOf(stdout string) (r report, err error) {
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		return r, fmt.Errorf("%w in %q", err, stdout)
	}
	return r, nil
}

// shop is a folder of data and models. A model is trained when it is first needed.
type shop struct {
	dir    string
	models map[string]func() (report, error)
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{dir: t.TempDir(), models: map[string]func() (report, error){}}
	makeData(t, s.dir)
	for _, c := range trainings {
		s.models[c.key()] = sync.OnceValues(func() (report, error) {
			args, err := s.args(c.flags)
			if err != nil {
				return report{}, err
			}
			return train(s.model(c.key()), args...)
		})
	}
	return s
}

// key returns the training's name in the form of %NAME.
func (c training) key() string { return strings.ReplaceAll(c.name, " ", "_") }

func (s *shop) model(key string) string { return filepath.Join(s.dir, "models", key) }

// args splits flags, replaces @FILE and %NAME by paths, and trains missing models.
func (s *shop) args(flags string) ([]string, error) {
	words := strings.Fields(flags)
	for i, w := range words {
		switch w[0] {
		case '@':
			words[i] = filepath.Join(s.dir, w[1:])
		case '%':
			make := s.models[w[1:]]
			if make == nil {
				return nil, fmt.Errorf("%s: there is no training of that name", w)
			}
			if _, err := make(); err != nil {
				return nil, err
			}
			words[i] = s.model(w[1:])
		}
	}
	return words, nil
}

const (
	cappedName  = "tree killed, then other caps"
	cappedSweep = 25
)

// capped runs a training whose criteria are beyond reach, kills it after its checkpoint, and
// continues it with other caps.
func (s *shop) capped() (report, error) {
	flags, err := s.args(onTree)
	if err != nil {
		return report{}, err
	}
	return killedBehind(cappedSweep, filepath.Join(s.dir, "capped"), append(flags, "--gap", "1e-9"), append(flags, "--gap",
		"1e-4", "--max-sweeps", "44"))
}

// tries bounds the number of times that a training is killed to get a checkpoint of a certain
// sweep.
const tries = 50

// killedBehind creates OUT.train: a training with the flags that was killed when it had written its
// first checkpoint, which is of the given sweep. It returns the report of one that continues from
// there with other caps. The next checkpoint comes as many sweeps later; if the kill was too late
// for that, killedBehind tries again.
func killedBehind(sweep int, out string, flags, caps []string) (r report, err error) {
	on := out + "-on"
	for range tries {
		if err := errors.Join(os.RemoveAll(out), os.RemoveAll(out+".train"), os.RemoveAll(on),
			os.RemoveAll(on+".train")); err != nil {
			return r, err
		}
		args := append(trainArgs(out, flags...), "--x", "checkpoint-every="+fmt.Sprint(sweep), "--x",
			"checkpoint-seconds=0.001")
		if err := killedAt(filepath.Join(out+".train", "checkpoint"), args); err != nil {
			return r, err
		}
		if err := os.CopyFS(on+".train", os.DirFS(out+".train")); err != nil {
			return r, err
		}
		if r, err = train(on, caps...); err != nil || len(r.CapsBefore) == 1 && r.CapsBefore[0].Sweep == sweep {
			return r, err
		}
	}
	return r, fmt.Errorf("killed %d times, never between sweeps %d and %d", tries, sweep, 2*sweep)
}

// killedAt runs a command and kills it as soon as a file exists.
func killedAt(path string, args []string) error {
	cmd := exec.Command(bin, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	late := time.After(deadline)
	for {
		_, err := os.Stat(path)
		select {
		case <-ended:
			return fmt.Errorf("ended before %s was there: %s", path, errs.String())
		case <-late:
			err = nil
		case <-time.After(time.Millisecond):
		}
		if err == nil {
			err := cmd.Process.Kill()
			<-ended
			return err
		}
	}
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
