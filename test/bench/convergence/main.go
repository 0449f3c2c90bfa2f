// Command convergence prints how fast the outer iterations converge: certified relative
// gap, micro and macro F1 after so many sweeps, for five ways to move the internal nodes.
//
//	go run ./test/bench/convergence -data DIR
//
// DIR/wordnet-freq holds train.svm.xz, test.svm.xz and tree.txt. Hinge loss, C = 1, bias 1.
// Each cell is a training of its own that ends after these sweeps, as --max-sweeps gives
// it to a user: the figures are those of the model that would be written.
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
	"strings"

	"taxon/test/bench/drive"
)

// paths are the iterations compared, in the table's order.
var paths = []struct {
	name  string
	flags []string
}{
	{"parity", []string{"--schedule", "parity"}},
	{"twoblock", []string{"--stiffness", "full", "--momentum", "none"}},
	{"twoblock + FISTA", []string{"--stiffness", "full", "--momentum", "fista"}},
	{"support-aware", []string{"--stiffness", "support", "--momentum", "none"}},
	{"support-aware + FISTA", []string{"--stiffness", "support", "--momentum", "fista"}},
}

func main() {
	data := flag.String("data", os.Getenv("TAXON_DATA"), "`folder` of the data sets (default $TAXON_DATA)")
	set := flag.String("set", "wordnet-freq", "data set within it")
	tree := flag.String("tree", "tree.txt", "structure within the set")
	sweeps := flag.String("sweeps", "5,10,20,30", "sweeps to stop after")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *data, drive.Set{Dir: filepath.Join(*data, *set), Tree: *tree}, strings.Split(*sweeps, ","), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "convergence:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, data string, set drive.Set, sweeps, extra []string) error {
	if data == "" {
		return fmt.Errorf("name the data with -data DIR or TAXON_DATA=DIR")
	}
	for _, s := range sweeps {
		if n, err := strconv.Atoi(s); err != nil || n < 1 {
			return fmt.Errorf("-sweeps %s: not a number of sweeps", s)
		}
	}
	d, err := drive.New(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	head := slices.Concat([]string{"after sweeps"}, sweeps, []string{"CPU s"})
	drive.Row(head...)
	drive.Rule(len(head))
	for _, p := range paths {
		cells := []string{p.name}
		cpu := 0.0
		for _, s := range sweeps {
			// No training stops at this gap: each runs its sweeps.
			flags := append([]string{"--max-sweeps", s, "--gap", "1e-12", "--C", "1", "--bias", "1"}, p.flags...)
			r, err := d.Train(ctx, set, append(flags, extra...)...)
			if err != nil {
				return err
			}
			cells = append(cells, fmt.Sprintf("%.2g; %.1f / %.1f", *r.Gap, 100*r.Test.MicroF1, 100*r.Test.MacroF1))
			cpu = r.CPUSeconds
		}
		drive.Row(append(cells, fmt.Sprintf("%.0f", cpu))...)
	}
	fmt.Printf("\nCells: certified relative gap; micro / macro F1 in percent. CPU s: of the run of %s sweeps.\n", sweeps[len(sweeps)-1])
	return nil
}
