// Command papers makes tables of the seed papers again, on the data that there is, with the figure that
// the paper prints in brackets behind ours:
//
//	TAXON_DATA=DIR go run ./test/papers                   C is 1 a row, each training stops at -max-time
//	TAXON_DATA=DIR go run ./test/papers -tune             C by cross-validation: hours
//	TAXON_DATA=DIR go run ./test/papers -data enron -paper JMLR
//
// DIR has a folder for each data set, with train.svm.xz, test.svm.xz and hierarchy.txt.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"taxon/coordinator/method/registry"
)

// runner trains and measures by the program that users have.
type runner struct {
	program string
	data    string // TAXON_DATA
	work    string // models
	tune    bool
	seconds int // --max-time of a training; 0: none
	log     io.Writer

	tuneFlags []string // more flags of tune
}

func main() {
	tune := flag.Bool("tune", false, "choose C by cross-validation")
	data, paper := flag.String("data", "", "only tables on this data set"), flag.String("paper", "", "only this paper: TKDD, OT, JMLR")
	seconds := flag.Int("max-time", 600, "seconds of a training at most, 0: no cap")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *tune, *data, *paper, *seconds); err != nil {
		fmt.Fprintln(os.Stderr, "papers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, tune bool, data, paper string, seconds int) error {
	r := &runner{data: os.Getenv("TAXON_DATA"), tune: tune, seconds: seconds, log: os.Stderr}
	if r.data == "" {
		return errors.New("set TAXON_DATA to the folder of the data sets")
	}
	var err error
	if r.work, err = os.MkdirTemp("", "papers-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	r.program = filepath.Join(r.work, "taxon")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", r.program, "./cmd/taxon").CombinedOutput(); err != nil {
		return fmt.Errorf("build cmd/taxon: %w\n%s", err, out)
	}
	for _, t := range tables {
		if data != "" && t.data != data || paper != "" && t.paper != paper {
			continue
		}
		if err := r.table(ctx, os.Stdout, &t); err != nil {
			return err
		}
	}
	return nil
}

// table trains the rows of a table and writes it as Markdown.
func (r *runner) table(ctx context.Context, w io.Writer, t *table) error {
	dir := filepath.Join(r.data, t.data)
	if _, err := os.Stat(dir); err != nil {
		_, err := fmt.Fprintf(w, "## [%s] %s: left out, there is no %s in TAXON_DATA\n\n", t.paper, t.name, t.data)
		return err
	}
	origin := "stands in"
	if t.own {
		origin = "the paper's own data"
	}
	fmt.Fprintf(w, "## [%s] %s, %s (%s)\n\n%s\n\n| method |", t.paper, t.name, t.data, origin, t.note)
	for _, m := range t.measures {
		fmt.Fprintf(w, " %s |", m.title)
	}
	fmt.Fprintf(w, " gap |\n|%s\n", strings.Repeat(" --- |", len(t.measures)+2))
	for _, row := range t.rows {
		name := strings.Fields(row.flags)[1]
		if _, err := registry.Lookup(name); err != nil {
			fmt.Fprintf(w, "| %s | left out: this program has no method %s |\n", row.label, name)
			continue
		}
		fmt.Fprintf(r.log, "papers: %s, %s\n", t.data, row.label)
		measures, gap, err := r.train(ctx, dir, row.flags, t.rowC, t.measures[len(t.measures)-1].key)
		if err != nil {
			return fmt.Errorf("%s on %s: %w", row.label, t.data, err)
		}
		fmt.Fprintf(w, "| %s |", row.label)
		for k, m := range t.measures {
			digits := 2
			if m.scale == 1 {
				digits = 3
			}
			fmt.Fprintf(w, " %.*f (%g) |", digits, measures[m.key]*m.scale, row.printed[k])
		}
		fmt.Fprintf(w, " %s |\n", gap)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// train trains, with the C that tune finds if it is to, else 1 or that of a loss by row, and measures on the test rows.
func (r *runner) train(ctx context.Context, dir, flags, rowC, goal string) (measures map[string]float64, gap string, err error) {
	flag := strings.Fields(flags)
	on := []string{"--data", filepath.Join(dir, "train.svm.xz"), "--hierarchy", filepath.Join(dir, "hierarchy.txt")}
	m, err := registry.Lookup(flag[1])
	if err != nil {
		return nil, "", err
	}
	hasC := false
	for _, o := range m.Options() {
		hasC = hasC || o.Name == "C"
	}
	if r.tune && hasC {
		c, err := r.tuned(ctx, flag, on, goal)
		if err != nil {
			return nil, "", err
		}
		flag = append(flag, "--C", c)
	} else if hasC && rowC != "" && slices.Contains([]string{"flatmult", "hiermult", "transfer", "hsvm", "ot"}, flag[1]) {
		flag = append(flag, "--C", rowC)
	}
	args := append([]string{"train", "--out", filepath.Join(r.work, "model"), "--force", "--json", "--quiet", "--max-time", fmt.Sprint(r.seconds), "--test", filepath.Join(dir, "test.svm.xz")}, on...)
	var report struct {
		Gap  *float64
		Test map[string]json.RawMessage
	}
	if err := r.call(ctx, append(args, flag...), &report); err != nil {
		return nil, "", err
	}
	measures = map[string]float64{}
	for key, value := range report.Test {
		var x float64
		if json.Unmarshal(value, &x) == nil {
			measures[key] = x
		}
	}
	if gap = "none"; report.Gap != nil {
		gap = fmt.Sprintf("%.1e", *report.Gap)
	}
	return measures, gap, nil
}

// tuned is the C that cross-validation finds best for the goal.
func (r *runner) tuned(ctx context.Context, flag, on []string, goal string) (string, error) {
	out := filepath.Join(r.work, "tuned")
	if err := os.RemoveAll(out); err != nil {
		return "", err
	}
	args := slices.Concat([]string{"tune", "--out", out, "--goal", goal, "--json", "--quiet"}, r.tuneFlags, on, flag)
	var table struct{ Options map[string]any }
	if err := r.call(ctx, args, &table); err != nil {
		return "", err
	}
	c, ok := table.Options["C"]
	if !ok {
		return "", fmt.Errorf("tune names no C: %v", table.Options)
	}
	return fmt.Sprint(c), nil
}

// call runs a verb and reads the document that it prints.
func (r *runner) call(ctx context.Context, args []string, into any) error {
	cmd := exec.CommandContext(ctx, r.program, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("taxon %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return json.Unmarshal(out, into)
}
