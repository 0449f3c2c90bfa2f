// Command versus compares taxon with the programs that a user would take instead. Both sides run in
// turns on one core, so that other load on the machine affects both. It prints the ratio of each
// claim: median, least and most of at least three runs.
//
//	test/bench/versus/bench-env.sh                                      # once: the peers
//	go run ./test/bench/versus -list
//	go run ./test/bench/versus -data DIR -case flat-hinge-wordnet-freq
//	go run ./test/bench/versus -data DIR -case all -write
//
// DIR/SET holds train.svm.xz, test.svm.xz and a tree. The peers are LIBLINEAR's library from
// Debian's liblinear-tools, and PECOS and omikuji from PyPI. Times are CPU seconds of the training
// call only, without reading the data (except for omikuji); ours are cpu_seconds of the report,
// including the certificate.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"time"

	"taxon/test/bench/drive"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "versus:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	data := flag.String("data", os.Getenv("TAXON_DATA"), "`folder` of the data sets (default $TAXON_DATA)")
	pattern := flag.String("case", "all", "`names` of cases, separated by commas; * stands for anything, all for all")
	list := flag.Bool("list", false, "list the cases")
	runs := flag.Int("runs", 3, "`times` each side is run")
	peers := flag.String("peers", defaultPeers(), "`folder` that bench-env.sh made")
	binary := flag.String("taxon", "", "a `binary` to measure (default: built from this checkout)")
	asJSON := flag.String("json", "", "write the results to a `file`, - for standard output")
	race := flag.String("race", "", "instead of cases: draw F1 and certificate by CPU second of ours and of the "+
		"peers to an SVG `file`")
	write := flag.Bool("write", false, "put the results into docs/performance.md, beside those that are there")
	flag.Parse()
	var chosen []claim
	for _, c := range claims() {
		if matches(*pattern, c.name) {
			chosen = append(chosen, c)
		}
	}
	if *list {
		for _, c := range chosen {
			fmt.Printf("%-26s %s%s\n", c.name, c.meaning(), goals(c))
		}
		return nil
	}
	switch {
	case len(chosen) == 0:
		return fmt.Errorf("no case %q: see -list", *pattern)
	case *data == "":
		return errors.New("name the data with -data DIR or TAXON_DATA=DIR")
	case *runs < 1:
		return fmt.Errorf("-runs %d: at least 1", *runs)
	}
	b, err := newBench(ctx, *data, *peers, *binary, *runs)
	if err != nil {
		return err
	}
	defer b.close()
	if *asJSON == "-" {
		b.say = func(f string, args ...any) { fmt.Fprintf(os.Stderr, f+"\n", args...) }
	}
	if *race != "" {
		return b.race(ctx, *race)
	}
	var results []*result
	var failed error
	for _, c := range chosen {
		b.say("%s: %s", c.name, c.meaning())
		r, err := b.run(ctx, c)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // the other cases are still useful
			failed = errors.Join(failed, err)
			b.say("  failed: %v", err)
			continue
		}
		r.Date, r.Commit = time.Now().UTC().Format(time.DateOnly), commit(ctx)
		b.say("  = %s (%s .. %s of %d)%s", figure(c, r.Median), figure(c, r.Min), figure(c, r.Max), len(r.Figures), goals(c))
		results = append(results, r)
	}
	if *asJSON != "" {
		if err := writeJSON(*asJSON, results); err != nil {
			return err
		}
	}
	if *write {
		failed = errors.Join(failed, writeDocument(results))
	}
	return failed
}

func newBench(ctx context.Context, data, peers, binary string, runs int) (*bench, error) {
	python := filepath.Join(peers, "bin", "python")
	if _, err := os.Stat(python); err != nil {
		return nil, fmt.Errorf("no peers in %s: run test/bench/versus/bench-env.sh first", peers)
	}
	script := filepath.Join("test", "bench", "versus", "peers.py")
	if _, err := os.Stat(script); err != nil {
		return nil, errors.New("run this in the repository's root")
	}
	dir, err := os.MkdirTemp("", "taxon-versus-")
	if err != nil {
		return nil, err
	}
	d, err := drive.NewFrom(ctx, binary)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &bench{data: data, python: python, script: script, runs: runs, dir: dir, taxon: d,
		say: func(f string, args ...any) { fmt.Printf(f+"\n", args...) }}, nil
}

func (b *bench) close() {
	b.taxon.Close()
	os.RemoveAll(b.dir)
}

func defaultPeers() string {
	if dir := os.Getenv("TAXON_PEERS"); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "taxon-peers"
	}
	return filepath.Join(cache, "taxon-peers")
}

// matches reports whether one of the patterns fits the name.
func matches(patterns, name string) bool {
	for p := range strings.SplitSeq(patterns, ",") {
		if ok, err := path.Match(p, name); p == "all" || err == nil && ok {
			return true
		}
	}
	return false
}

func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func writeJSON(to string, results []*result) error {
	doc, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	if to == "-" {
		fmt.Println(string(doc))
		return nil
	}
	return os.WriteFile(to, append(doc, '\n'), 0o644)
}
