// Command tour runs the commands that README.md and docs/tour.md show with their output,
// each a line `$ COMMAND` in a text block, and puts what they print now in the place of what
// stands there. README's are run in the repository, the tour's where the demo left its
// files. `export TAXON_COORDINATOR=...` takes the address that `cluster up` printed last, as
// a reader would copy it, for the commands behind it.
//
//	go run ./test/bench/tour
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

const variable = "TAXON_COORDINATOR"

// address is the coordinator's in the table of `taxon cluster up`.
var address = regexp.MustCompile(`(?m)^coordinator +\S+ +\d+ +(\S+)`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "tour:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "taxon-tour-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	left := filepath.Join(dir, "tour")
	if out, err := shell(ctx, ".", dir, "go build -o "+filepath.Join(dir, "taxon")+" ./cmd/taxon && taxon "+
		"demo --quiet --keep "+left); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := rewrite(ctx, "README.md", ".", dir); err != nil {
		return err
	}
	return rewrite(ctx, filepath.Join("docs", "tour.md"), left, dir)
}

// rewrite runs a page's commands in the folder where, with the binary in bin, and writes
// the page with what they printed.
func rewrite(ctx context.Context, page, where, bin string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("run this in the repository's root: %w", err)
	}
	const fence = "```text\n$ "
	parts := strings.Split(string(text), fence)
	coordinator := ""
	for i, part := range parts[1:] {
		block, rest, ok := strings.Cut(part, "```")
		if !ok {
			return fmt.Errorf("%s: block %d does not end", page, i+1)
		}
		var fresh strings.Builder
		for line := range strings.Lines("$ " + block) {
			command, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				continue // what it printed when it was run last
			}
			if strings.HasPrefix(command, "export "+variable) {
				line = "$ export " + variable + "=" + coordinator + "\n"
				if err := os.Setenv(variable, coordinator); err != nil {
					return err
				}
			}
			out, err := shell(ctx, where, bin, command)
			if err != nil {
				return err
			}
			if found := address.FindSubmatch(out); found != nil {
				coordinator = string(found[1])
			}
			fresh.WriteString(line)
			fresh.Write(out)
		}
		parts[i+1] = strings.TrimPrefix(fresh.String(), "$ ") + "```" + rest
	}
	return os.WriteFile(page, []byte(strings.Join(parts, fence)), 0o644)
}

// shell runs a command line with the binary in bin first in the path and returns what it
// printed. A command may fail, as the README shows one that does; bash may not.
func shell(ctx context.Context, dir, bin, command string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.ExitCode() == 2 {
		err = nil
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w: %s", strings.TrimSpace(command), err, bytes.TrimSpace(out))
	}
	return out, nil
}
