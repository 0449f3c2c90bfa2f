// Command cluster measures the overhead of a cluster over training in one process. It runs the same
// training by `taxon train --threads N`, and by a coordinator, stores and N workers of one slot
// that `taxon cluster up` starts on this machine, in turns.
//
//	go run ./test/bench/cluster -data DIR [-runs 3]
//
// DIR/wordnet-freq holds train.svm.xz and tree.txt. Both sides read the same ingested folder and
// end with the model in a folder. The wall time is that of the whole command; the cluster is up
// before it begins. The weights must be equal. CPU seconds are those of each process from its start
// to the job's end; idle and stolen time (given by a hypervisor to other guests) are those of all
// cores. A run with too much stolen time is repeated. -taxon a,b compares binaries. The command
// needs Linux.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// settings holds the parameters of the measurement.
type settings struct {
	data, tree string
	gap        string
	sweeps     int
	workers    int
	stores     int
	runs       int
	binaries   []string
	flags      []string // further flags of both sides
}

func main() {
	s := settings{}
	data := flag.String("data", os.Getenv("TAXON_DATA"), "`folder` of the data sets (default $TAXON_DATA)")
	set := flag.String("set", "wordnet-freq", "data set within it")
	train := flag.String("train", "train.svm.xz", "instances within the set")
	flag.StringVar(&s.tree, "tree", "tree.txt", "structure within the set")
	flag.StringVar(&s.gap, "gap", "1e-2", "relative gap to stop at")
	flag.IntVar(&s.sweeps, "max-sweeps", 100, "sweeps to stop after")
	flag.IntVar(&s.workers, "workers", 2, "workers of one slot, and threads of train")
	flag.IntVar(&s.stores, "stores", 2, "shards")
	flag.IntVar(&s.runs, "runs", 3, "times each side is run, taking turns")
	binaries := flag.String("taxon", "", "`binaries` to measure, with commas between them (default: built "+
		"from this checkout)")
	flag.Parse()
	s.binaries, s.flags = strings.Split(*binaries, ","), flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *data == "" {
		fmt.Fprintln(os.Stderr, "cluster: name the data with -data DIR or TAXON_DATA=DIR")
		os.Exit(2)
	}
	s.data, s.tree = filepath.Join(*data, *set, *train), filepath.Join(*data, *set, s.tree)
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// side is one of the compared ways to train.
type side struct {
	name    string
	measure func(ctx context.Context) (cost, error)
	costs   []cost
}

func run(ctx context.Context, s settings) error {
	dir, err := os.MkdirTemp("", "taxon-cluster-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var sides []*side
	for i, binary := range s.binaries {
		b := &bench{settings: s, binary: binary, dir: filepath.Join(dir, fmt.Sprint(i))}
		if err := b.prepare(ctx); err != nil {
			return err
		}
		suffix := ""
		if len(s.binaries) > 1 {
			suffix = " " + filepath.Base(binary)
		}
		sides = append(sides,
			&side{name: fmt.Sprintf("train --threads %d%s", s.workers, suffix), measure: b.train},
			&side{name: fmt.Sprintf("%d workers, %d stores%s", s.workers, s.stores, suffix), measure: b.cluster})
	}
	fmt.Println("| | wall s | CPU s | worker | store | coordinator | command | idle | stolen | sweeps |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for n := range s.runs + 1 {
		for i, side := range sides {
			if n == s.runs && i%2 == 1 {
				// train once more, so that each of the cluster's runs lies between two of train
				continue
			}
			c, err := side.undisturbed(ctx)
			if err != nil {
				return err
			}
			if first := sides[0].costs; len(first) > 0 && c.sha != first[0].sha {
				return fmt.Errorf("%s: weights %.12s, must be %.12s", side.name, c.sha, first[0].sha)
			}
			side.costs = append(side.costs, c)
		}
	}
	fmt.Println()
	for i, side := range sides {
		m := median(side.costs)
		text := m.row("median: " + side.name)
		if i%2 == 1 {
			text += " of train's, by run, wall " + ratios(side.costs, sides[i-1].costs, func(c cost) float64 { return c.wall }) +
				"; CPU " + ratios(side.costs, sides[i-1].costs, cost.cpu)
		}
		fmt.Println(text)
	}
	return nil
}

// ratios compares each run with the mean of train's runs before and after it, because the speed of
// shared machines changes from minute to minute. It formats the median and all ratios.
func ratios(costs, train []cost, f func(cost) float64) string {
	all := make([]float64, len(costs))
	for i := range costs {
		all[i] = 2 * f(costs[i]) / (f(train[i]) + f(train[i+1]))
	}
	slices.Sort(all)
	return fmt.Sprintf("%.3f %.3f", (all[(len(all)-1)/2]+all[len(all)/2])/2, all)
}

// cost is the cost of a run. Times are in seconds.
type cost struct {
	wall   float64
	byRole map[string]float64 // CPU time, user and system
	host   hostTimes          // times of all cores
	sweeps int
	sha    string
}

func (c cost) cpu() (sum float64) {
	for _, role := range []string{"worker", "store", "coordinator", "command"} {
		sum += c.byRole[role]
	}
	return sum
}

func (c cost) row(name string) string {
	r := c.byRole
	return fmt.Sprintf("| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %d |", name, c.wall, c.cpu(),
		r["worker"], r["store"], r["coordinator"], r["command"], c.host.idle, c.host.stolen, c.sweeps)
}

// median returns the median of each figure.
func median(costs []cost) cost {
	mid := func(f func(cost) float64) float64 {
		list := make([]float64, len(costs))
		for i, c := range costs {
			list[i] = f(c)
		}
		slices.Sort(list)
		return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
	}
	out := cost{wall: mid(func(c cost) float64 { return c.wall }), byRole: map[string]float64{}, sweeps: costs[0].sweeps}
	out.host.idle = mid(func(c cost) float64 { return c.host.idle })
	out.host.stolen = mid(func(c cost) float64 { return c.host.stolen })
	for _, role := range []string{"worker", "store", "coordinator", "command"} {
		out.byRole[role] = mid(func(c cost) float64 { return c.byRole[role] })
	}
	return out
}
