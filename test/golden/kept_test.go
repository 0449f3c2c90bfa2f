package golden

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var keep = flag.String("keep", "", "leave models and a checkpoint of this version in the folder "+
	"testdata/`NAME`, kept-RELEASE say")

// kept describes the models of a kept* folder: how they were trained on testdata/data, and the
// training that starts from them.
var kept = []struct{ name, data, flags, predict, warm string }{
	{"tree", "--data @tree.svm --hierarchy @tree.txt", "--loss squared-hinge", "--scores --data @new.svm", "--C 3"},
	{"graph", "--data @tree.svm --graph @tree.txt", "--x anchor=0.1", "--scores --data @new.svm", "--C 3"},
	{"flat", "--data @tree.svm", "--method blr", "--data @new.svm", "--C 3"},
	{"text", "--text --data @text.txt --hierarchy @text.tree", "", "--scores --text --data @new.txt", "--seed 1"},
	{"bayes", "--data @tree.svm --hierarchy @tree.txt", "--method hblr-m3", "--data @new.svm", ""},
	{"pruned", "--data @tree.svm --hierarchy @tree.txt", "--threshold 0.02 --calibrate temperature", "--data @new.svm",
		""},
	{"paths", "--data @tree.svm --hierarchy @tree.txt", "--method hm3", "--scores --data @new.svm", ""},
	{"table", "--data @table.csv --text-column title --label-column category --id-column id --path-separator /", "",
		"--scores --data @table.csv --format csv", ""},
}

const (
	keptUnder  = "--data @tree.svm --hierarchy @tree.txt" // the interrupted training
	keptCaps   = "--gap 1e-9"
	keptSweeps = 10 // the sweep of the checkpoint
)

// fixed replaces @FILE by paths of testdata/data.
func fixed(flags ...string) []string {
	return strings.Fields(strings.ReplaceAll(strings.Join(flags, " "), "@", "testdata/data/"))
}

// TestKeep writes a folder of this version, if -keep names one.
func TestKeep(t *testing.T) {
	if *keep == "" {
		t.Skip("without -keep NAME nothing is to be kept")
	}
	dir := filepath.Join("testdata", *keep)
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, k := range kept {
		if _, err := train(filepath.Join(dir, k.name), fixed(k.data, k.flags)...); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "interrupted")
	if _, err := killedBehind(keptSweeps, out, fixed(keptUnder, keptCaps), fixed(keptUnder, "--gap 1e-2")); err != nil {
		t.Fatal(err)
	}
	for _, rest := range []string{out + "-on", out + ".train/data", out + ".train/checkpoint.part"} {
		// data are ingested again
		if err := os.RemoveAll(rest); err != nil {
			t.Fatal(err)
		}
	}
}

// checkKept calls check once for each operation on the content of the kept folders.
func checkKept(t *testing.T, scratch string, check func(name string, find func() (string, error))) {
	t.Helper()
	folders, err := filepath.Glob("testdata/kept*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no kept folders: %v", err)
	}
	outcome := func(args []string, read func(stdout string) (string, error)) (string, error) {
		text, err := outcome(args, read)
		return strings.ReplaceAll(text, scratch, "DIR"), err
	}
	for _, old := range folders {
		copied := func(name, in string) (string, error) {
			to := filepath.Join(scratch, filepath.Base(old), in)
			return to, os.CopyFS(filepath.Join(to, name), os.DirFS(filepath.Join(old, name)))
		}
		for _, k := range kept {
			name := filepath.Base(old) + " " + k.name
			model := filepath.Join(old, k.name)
			check(name+" predicts", func() (string, error) {
				return outcome(fixed("predict --quiet --model", model, k.predict), digest)
			})
			check(name+" exports", func() (string, error) {
				return outcome(fixed("export --quiet --format text --out - --model", model), digest)
			})
			check(name+" is finished", func() (string, error) {
				dir, err := copied(k.name, k.name+" again")
				if err != nil {
					return "", err
				}
				return outcome(trainArgs(filepath.Join(dir, k.name), fixed(k.data, k.flags)...), reported)
			})
			if k.warm == "" {
				continue
			}
			check(name+" begins another", func() (string, error) {
				out := filepath.Join(scratch, filepath.Base(old), k.name+" warm")
				return outcome(trainArgs(out, fixed(k.data, k.flags, k.warm, "--warm-start", model)...), reported)
			})
		}
		for _, caps := range []string{keptCaps, "--gap 1e-2", "--gap 1e-7 --max-sweeps 15"} {
			check(filepath.Base(old)+" goes on with "+caps, func() (string, error) {
				dir, err := copied("interrupted.train", "on "+caps)
				if err != nil {
					return "", err
				}
				return outcome(trainArgs(filepath.Join(dir, "interrupted"), fixed(keptUnder, caps)...), reported)
			})
		}
	}
}

// outcome returns the result of a command, or the line with which it refuses its input.
func outcome(args []string, read func(stdout string) (string, error)) (string, error) {
	code, stdout, stderr := taxon(args...)
	if line, ok := strings.CutSuffix(stderr, "\n"); code == 2 && ok && !strings.Contains(line, "\n") {
		return "refused: " + line, nil
	}
	if code != 0 {
		return "", fmt.Errorf("taxon %s: exit status %d, neither done nor refused in one line: %s", strings.Join(args, " "),
			code, stderr)
	}
	return read(stdout)
}

func digest(stdout string) (string, error) {
	if stdout == "" {
		return "", errors.New("nothing printed")
	}
	return sum([]byte(stdout)), nil
}

func reported(stdout string) (string, error) {
	r, err := reportOf(stdout)
	return r.String(), err
}
