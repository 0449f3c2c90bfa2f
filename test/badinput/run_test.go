package badinput

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"taxon/test/command"
)

// trial is one invalid input or command line. It runs in a folder of its own, which holds the valid
// files of fixtures.
type trial struct {
	name  string
	files map[string]string              // written into the folder, replacing valid ones
	prep  func(t *testing.T, dir string) // further damage; may be nil
	args  string                         // split at blanks
	argv  []string                       // in place of args; our program is run if argv[0] is empty
	stdin io.Reader
	exit  int    // 0 stands for 2
	at    string // beginning of the line after "taxon: "
	says  string // text that the line must contain
}

// limit is far above the duration of any trial.
const limit = 60 * time.Second

// binary is the program under test. good is a folder of valid inputs, models and data.
var binary, good string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "taxon-badinput-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		good = filepath.Join(dir, "good")
		if binary, err = command.Build(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if err := makeGood(good); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// makeGood writes valid files, and runs the program to create models and data sets from them.
func makeGood(dir string) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	for name, text := range goodFiles() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	for _, args := range []string{
		"train --data good.svm --hierarchy tree.txt --out model --quiet",
		"train --data good.txt --text --out textmodel --quiet",
		"ingest --data good.svm --out set --quiet",
		"ingest --data good.txt --text --out textset --quiet",
	} {
		cmd := exec.Command(binary, strings.Fields(args)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("taxon %s: %w: %s", args, err, out)
		}
	}
	return nil
}

func goodFiles() map[string]string {
	var vectors, words strings.Builder
	for i := range 40 {
		c := "abcd"[i%4]
		fmt.Fprintf(&vectors, "%c %d:1 %d:0.%d\n", c, 1+i%4, 5+i%7, 1+i%9)
		fmt.Fprintf(&words, "%c\tthe %c%c%c sat on word%d\n", c, c, c, c, i%7)
	}
	return map[string]string{
		"good.svm": vectors.String(), "good.txt": words.String(), "tree.txt": "r a\nr b\ns c\ns d\nq r\nq s\n",
		"dag.txt": "r a\nr b\ns b\ns c\ns d\nq r\nq s\n", "pred.txt": strings.Repeat("a\nb\nc\nd\n", 10),
	}
}

// check runs a trial and checks every property that the package's comment lists.
func (c trial) check(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
		t.Fatal(err)
	}
	for name, text := range c.files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if c.prep != nil {
		c.prep(t, dir)
	}
	c.checkIn(t, dir)
}

// checkIn is like check, in a folder that is prepared.
func (c trial) checkIn(t *testing.T, dir string) {
	t.Helper()
	before := listing(t, dir)
	code, stdout, stderr := c.run(t, dir)
	want := c.exit
	if want == 0 {
		want = 2
	}
	if code != want {
		t.Errorf("exit status %d, want %d; stderr: %s", code, want, clip(stderr))
	}
	if stdout != "" {
		t.Errorf("standard output: %q, want nothing", clip(stdout))
	}
	var lines []string
	for _, l := range strings.Split(strings.TrimSuffix(stderr, "\n"), "\n") {
		if !strings.HasPrefix(l, "taxon: warning: ") {
			lines = append(lines, l)
		}
	}
	if len(lines) != 1 {
		t.Errorf("%d lines on stderr, want one:\n%s", len(lines), clip(stderr))
		lines = append(lines, "")
	}
	if !strings.HasPrefix(lines[0], "taxon: "+c.at) || !strings.Contains(lines[0], c.says) {
		t.Errorf("says %q,\nwant it to begin with %q and to hold %q", clip(lines[0]), "taxon: "+c.at, c.says)
	}
	if len(lines[0]) > 500 {
		t.Errorf("the line has %d bytes: %s", len(lines[0]), clip(lines[0]))
	}
	after := listing(t, dir)
	for _, l := range before {
		if !slices.Contains(after, l) {
			t.Errorf("gone or changed: %s", l)
		}
	}
	for _, l := range after {
		if !slices.Contains(before, l) {
			t.Errorf("left behind: %s", l)
		}
	}
}

func (c trial) run(t *testing.T, dir string) (code int, stdout, stderr string) {
	t.Helper()
	argv := c.argv
	switch {
	case argv == nil:
		argv = append([]string{binary}, strings.Fields(c.args)...)
	case argv[0] == "":
		argv[0] = binary
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errw bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, c.stdin, &out, &errw
	cmd.WaitDelay = time.Second
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) && cmd.ProcessState == nil {
		t.Fatalf("%v: %v", argv, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errw.String()
}

func runAll(t *testing.T, trials []trial) {
	t.Parallel()
	for _, c := range trials {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

// listing describes every file below dir with its kind and content.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d iofs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%s %s", rel, d.Type())
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %x", sha256.Sum256(data))[:9]
		}
		out = append(out, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func clip(s string) string {
	if len(s) > 1000 {
		return s[:1000] + "..."
	}
	return s
}

// edit changes a file of the trial's folder.
func edit(name string, change func([]byte) []byte) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, change(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// flip inverts a bit in the middle of a file. half truncates it there. lose removes it.
func flip(name string) func(*testing.T, string) {
	return edit(name, func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
}

func half(name string) func(*testing.T, string) {
	return edit(name, func(b []byte) []byte { return b[:len(b)/2] })
}

func lose(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}
