// Command convergence prints how fast the outer iterations converge: certified relative
// gap, micro and macro F1 after so many sweeps, for five ways to move the internal nodes.
//
//	go run ./test/bench/convergence -data DIR
//
// DIR/wordnet-freq holds train.svm.xz, test.svm.xz and tree.txt. Hinge loss, C = 1, bias 1.
// Each row is one training that is priced and evaluated every -every sweeps.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"

	"taxon/test/bench/drive"
)

// paths are the iterations compared, in the table's order.
var paths = []struct {
	name  string
	flags []string
}{
	{"parity", []string{"--x", "schedule=parity"}},
	{"twoblock", []string{"--x", "stiffness=full", "--x", "momentum=none"}},
	{"twoblock + FISTA", []string{"--x", "stiffness=full", "--x", "momentum=fista"}},
	{"support-aware", []string{"--x", "stiffness=support", "--x", "momentum=none"}},
	{"support-aware + FISTA", []string{"--x", "stiffness=support", "--x", "momentum=fista"}},
}

func main() {
	data := flag.String("data", os.Getenv("TAXON_DATA"), "`folder` of the data sets (default $TAXON_DATA)")
	set := flag.String("set", "wordnet-freq", "data set within it")
	tree := flag.String("tree", "tree.txt", "structure within the set")
	every := flag.Int("every", 5, "sweeps between evaluations")
	sweeps := flag.Int("sweeps", 30, "sweeps of each training")
	only := flag.String("only", "", "only the row of this `name`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *data, drive.Set{Dir: filepath.Join(*data, *set), Tree: *tree}, *only, *every, *sweeps,
		flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "convergence:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, data string, set drive.Set, only string, every, sweeps int, extra []string) error {
	if data == "" {
		return fmt.Errorf("name the data with -data DIR or TAXON_DATA=DIR")
	}
	if every < 1 || sweeps < every {
		return fmt.Errorf("-every %d -sweeps %d: give 1 <= every <= sweeps", every, sweeps)
	}
	d, err := drive.New(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	head := []string{"after sweeps"}
	for s := every; s <= sweeps; s += every {
		head = append(head, strconv.Itoa(s))
	}
	drive.Row(append(head, "s, CPU s")...)
	drive.Rule(len(head) + 1)
	for _, p := range paths {
		if only != "" && p.name != only {
			continue
		}
		// No training reaches this gap: each runs its sweeps.
		flags := slices.Concat([]string{"--max-sweeps", strconv.Itoa(sweeps), "--eval-every", strconv.Itoa(every),
			"--gap", "1e-4", "--C", "1", "--bias", "1"}, p.flags, extra)
		r, err := d.Train(ctx, set, flags...)
		if err != nil {
			return err
		}
		cells := []string{p.name}
		for _, s := range r.Trace {
			if s.Sweep%every == 0 && s.Gap != nil && s.MicroF1 != nil {
				cells = append(cells, fmt.Sprintf("%.2g; %.1f / %.1f", *s.Gap, 100**s.MicroF1, 100**s.MacroF1))
			}
		}
		drive.Row(append(cells, fmt.Sprintf("%.0f, %.0f", r.Seconds, r.CPUSeconds))...)
	}
	fmt.Println("\nCells: certified relative gap; micro / macro F1 in percent.")
	return nil
}
