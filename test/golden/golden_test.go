package golden

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/golden.txt anew")

const table = "testdata/golden.txt"

// book holds the results of this run.
type book struct {
	sync.Mutex
	found map[string]string
}

// TestTable checks that every training gives the recorded weights and certificate.
func TestTable(t *testing.T) {
	was := readTable(t)
	now := &book{found: map[string]string{}}
	s := newShop(t)
	var order []string
	t.Run("lines", func(t *testing.T) {
		check := func(name string, find func() (string, error)) {
			order = append(order, name)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				value, err := find()
				if err != nil {
					t.Fatal(err)
				}
				now.Lock()
				now.found[name] = value
				now.Unlock()
				if !*rewrite && value != was[name] {
					t.Errorf("%s has changed:\n%s\nnow, and in %s\n%s\nIf that is meant: go test ./test/golden -rewrite, and "+
						"say why in the commit", name, value, table, was[name])
				}
			})
		}
		for _, name := range dataFiles {
			check("data "+name, func() (string, error) {
				data, err := os.ReadFile(filepath.Join(s.dir, name))
				return sum(data), err
			})
		}
		for _, c := range trainings {
			check(c.name, func() (string, error) {
				r, err := s.models[c.key()]()
				return r.String(), err
			})
		}
		check(cappedName, func() (string, error) {
			r, err := s.capped()
			return r.String(), err
		})
		checkKept(t, s.dir, check)
		for _, c := range outputs {
			check(c.name, func() (string, error) {
				args, err := s.args(c.flags)
				if err != nil {
					return "", err
				}
				out, err := succeed(append(args, "--quiet")...)
				return sum([]byte(out)), err
			})
		}
	})
	if *rewrite && !t.Failed() {
		if len(now.found) < len(order) {
			t.Fatalf("-rewrite writes all lines, and -run left %d of %d out", len(order)-len(now.found), len(order))
		}
		writeTable(t, order, now.found)
		return
	}
	for name := range was {
		if !slices.Contains(order, name) {
			t.Errorf("%s: the line %q is of no training: go test ./test/golden -rewrite", table, name)
		}
	}
}

// readTable reads lines `NAME: VALUE`.
func readTable(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(table)
	if err != nil && !*rewrite {
		t.Fatal(err)
	}
	was := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !ok {
			t.Fatalf("%s: %q is not NAME: VALUE", table, line)
		}
		was[name] = value
	}
	return was
}

func writeTable(t *testing.T, order []string, found map[string]string) {
	t.Helper()
	var b strings.Builder
	for _, name := range order {
		fmt.Fprintf(&b, "%s: %s\n", name, found[name])
	}
	if err := os.WriteFile(table, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}
