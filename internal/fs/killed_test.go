package fs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"taxon/internal/app/train"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// killedData returns instances with one or two labels.
func killedData() string {
	var data strings.Builder
	for i := range 60 {
		fmt.Fprintf(&data, "%s %d:1 %d:1\n", []string{"a", "b", "a,b"}[i%3], i%3+1, i%7+4)
	}
	return data.String()
}

// killedStatus is the exit status of a process that ended in the middle of a removal.
const killedStatus = 137

// trainIn trains a model with cut-offs, which need folders of their own, in dir.
func trainIn(dir string, force bool) error {
	o := train.Options{Data: []string{filepath.Join(dir, "data.svm")}, Out: filepath.Join(dir, "deep", "deeper", "m"),
		Stores: 1, Store: "memory", Cutoff: "fit", Force: force,
		Pause: 10, Files: fs.Local{}, Job: &taxonv1.Options{Method: "rr-lr"}}
	_, err := train.Run(context.Background(), &o, progress.Discard{})
	return err
}

// TestKilledChild is the process that TestKilledInRemoval starts. It trains, and ends at a step of
// a removal as a killed process does: before the step, or when half of its files are removed.
func TestKilledChild(t *testing.T) {
	dir := os.Getenv("TAXON_TEST_KILLED")
	if dir == "" {
		t.Skip("started by TestKilledInRemoval alone")
	}
	at, _ := strconv.Atoi(os.Getenv("TAXON_TEST_STEP"))
	step := 0
	fs.SetRemoveAll(func(path string) error {
		if _, err := os.Lstat(path); err != nil {
			return nil
		}
		if step++; step == (at+1)/2 {
			if at%2 == 0 {
				halve(path)
			}
			os.Exit(killedStatus)
		}
		return os.RemoveAll(path)
	})
	if err := trainIn(dir, os.Getenv("TAXON_TEST_FORCE") != ""); err != nil {
		t.Fatal(err)
	}
}

// halve removes every other file below path, as an interrupted removal does.
func halve(path string) {
	n := 0
	_ = filepath.Walk(path, func(name string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			if n++; n%2 == 1 {
				os.Remove(name)
			}
		}
		return nil
	})
}

// TestKilledInRemoval kills a training at every step of a removal. The same command must then
// finish, or find that there is nothing to do, and keep the model. The same holds with --force.
func TestKilledInRemoval(t *testing.T) {
	dir := t.TempDir()
	for _, force := range []string{"", "force"} {
		for at := 1; ; at++ {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.MkdirAll(dir, 0o777), os.WriteFile(filepath.Join(dir, "data.svm"), []byte(killedData()),
				0o666)); err != nil {
				t.Fatal(err)
			}
			if force != "" { // the model to be replaced
				if err := trainIn(dir, false); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
			cmd.Env = append(os.Environ(), "TAXON_TEST_KILLED="+dir, "TAXON_TEST_STEP="+strconv.Itoa(at), "TAXON_TEST_FORCE="+
				force)
			out, err := cmd.CombinedOutput()
			if err == nil {
				if at < 3 {
					t.Fatalf("%q: nothing was removed", force)
				}
				break
			}
			if cmd.ProcessState.ExitCode() != killedStatus {
				t.Fatalf("%q, step %d: %v: %s", force, at, err, out)
			}
			if err := trainIn(dir, force != ""); err != nil {
				t.Errorf("%q, killed at step %d, the same command gives: %v", force, at, err)
				continue
			}
			left, _ := filepath.Glob(filepath.Join(dir, "deep", "deeper", "*"))
			inside, _ := filepath.Glob(filepath.Join(dir, "deep", "deeper", "m", ".*"))
			if len(left) != 1 || len(inside) != 0 {
				t.Errorf("%q, killed at step %d, what stays is %q and %q", force, at, left, inside)
			}
			if m, err := model.Open(filepath.Join(dir, "deep", "deeper", "m")); err != nil {
				t.Errorf("%q, killed at step %d: %v", force, at, err)
			} else {
				m.Close()
			}
		}
	}
}

// TestHalvesOfKilledProcesses checks incomplete files in a model's folder. The file of a killed
// process is not published, does not block a new model, and is removed when the file is written
// again. The file of a living process is kept.
func TestHalvesOfKilledProcesses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data.svm"), []byte(killedData()), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := trainIn(dir, false); err != nil {
		t.Fatal(err)
	}
	m, other := filepath.Join(dir, "deep", "deeper", "m"), filepath.Join(dir, "other")
	stray := filepath.Join(m, ".manifest.json.999999-0.part")
	if err := os.WriteFile(stray, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := model.Publish(m, other); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(other, "*.part")); len(left) != 0 {
		t.Errorf("published %q", left)
	}
	living, err := fs.CreateFile(filepath.Join(m, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := fs.CreateFile(filepath.Join(m, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(m, ".*.part")); len(left) != 2 || fs.Exists(stray) {
		t.Errorf("beside two writers there are %q", left)
	}
	living.Abort()
	second.Abort()
	if err := os.WriteFile(stray, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := trainIn(dir, true); err != nil {
		t.Errorf("with what a killed process left: %v", err)
	}
}
