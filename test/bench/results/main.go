// Command results trains bsvm and rr-svm on the data sets and prints their costs and measures as a
// Markdown table.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"taxon/test/bench/drive"
)

// trees names the file of each set's structure. If a set has two structures, it names the tree.
var trees = map[string]string{
	"clef":         "hierarchy.txt",
	"news20":       "hierarchy.txt",
	"wordnet-freq": "tree.txt",
	"wordnet":      "tree.txt",
}

func main() {
	data := flag.String("data", os.Getenv("TAXON_DATA"), "`folder` of the data sets (default $TAXON_DATA)")
	sets := flag.String("sets", "clef,news20,wordnet-freq,wordnet", "data sets within it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *data, strings.Split(*sets, ","), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, data string, sets, extra []string) error {
	if data == "" {
		return fmt.Errorf("name the data with -data DIR or TAXON_DATA=DIR")
	}
	for _, s := range sets {
		if trees[s] == "" {
			return fmt.Errorf("-sets %s: not one of clef, news20, wordnet-freq, wordnet", s)
		}
	}
	d, err := drive.New(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	head := []string{"set", "method", "sweeps", "gap", "time s", "CPU s", "memory MB", "model MB", "micro F1", "macro F1"}
	drive.Row(head...)
	drive.Rule(len(head))
	for _, s := range sets {
		for _, method := range []string{"bsvm", "rr-svm"} {
			flags := append([]string{"--method", method}, extra...)
			r, err := d.Train(ctx, drive.Set{Dir: filepath.Join(data, s), Tree: trees[s]}, flags...)
			if err != nil {
				return err
			}
			drive.Row(s, method, fmt.Sprint(r.Sweeps), fmt.Sprintf("%.2g", *r.Gap), fmt.Sprintf("%.1f", r.Seconds),
				fmt.Sprintf("%.1f", r.CPUSeconds), fmt.Sprintf("%.0f", float64(r.PeakRSSBytes)/1e6),
				fmt.Sprintf("%.3g", float64(r.ModelBytes)/1e6), fmt.Sprintf("%.1f", 100*r.Test.MicroF1),
				fmt.Sprintf("%.1f", 100*r.Test.MacroF1))
		}
	}
	return nil
}
