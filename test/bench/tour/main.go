// Command tour runs the commands that README.md and docs/tour.md show with their output, each a
// line `$ COMMAND` in a text block, and replaces the output by the current one. README's commands
// run in the repository, the tour's in the folder of the demo's files. `export
// TAXON_COORDINATOR=...` takes the address that `cluster up` printed last, as a reader would copy
// it, for the following commands.
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

// address matches the coordinator's address in the table of `taxon cluster up`.
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

// rewrite runs a page's commands in the folder `where`, with the binary in bin, and rewrites the
// page with their output.
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
				continue // this is the old output
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

// shell runs a command line with the binary in bin first in the path and returns its output. The
// command may fail, because the README shows one that does, but bash must not.
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
