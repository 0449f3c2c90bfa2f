package train

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/data/dataset"
	"taxon/internal/data/hiercluster"
	"taxon/internal/data/taxonomy"
	"taxon/internal/fs"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// Learned is a value of Options.Hierarchy. It means that a hierarchy is learned from the data. A
// file of that name can be given as ./learned.
const Learned = "learned"

// takeLearned turns the hierarchy Learned into an option of the job, and returns an error that
// lists the options that conflict with it.
func (o *Options) takeLearned() error {
	given := o.Hierarchy != "" && o.Hierarchy != Learned || o.Graph != ""
	if o.Hierarchy == Learned {
		if !registry.Has(o.Job.Method, method.Families.Name) {
			return fmt.Errorf("‹hierarchy=%s›: ‹method=%s› trains without one: leave it out, or use another method", Learned,
				o.Job.Method)
		}
		if families, said := o.Said[method.Families.Name]; !said {
			o.Said[method.Families.Name] = "auto"
		} else if families == method.Families.Default {
			return fmt.Errorf("‹families=%s›: contradicts ‹hierarchy=%s›: leave one of them out", families, Learned)
		}
		if given {
			return fmt.Errorf("‹hierarchy=%s› and ‹graph›: a training has one structure; give one of them", Learned)
		}
		o.Hierarchy = ""
	}
	if families := o.Said[method.Families.Name]; given && families != "" && families != method.Families.Default {
		return fmt.Errorf("‹families=%s›: a hierarchy is learned where none is given: leave it out, or "+
			"‹hierarchy› and ‹graph›", families)
	}
	return nil
}

// learns reports whether a job's structure is to be learned. families is the number of families, as
// the option gives it.
func learns(o *taxonv1.Options) (families string, yes bool) {
	if !registry.Has(o.GetMethod(), method.Families.Name) {
		return "", false
	}
	families = method.Families.Of(o)
	return families, families != method.Families.Default
}

// learned caches learned hierarchies, because a search needs the same one many times.
type learned struct {
	mu sync.Mutex
	// trees is keyed by fingerprint of the rows, families and seed.
	trees map[string]*taxonomy.Structure
}

// learn learns the structure from the training's rows if the options ask for it.
func (t *Training) learn(ctx context.Context) (err error) {
	families, yes := learns(t.o.Job)
	if !yes {
		return nil
	}
	key := fmt.Sprint(t.Set.Fingerprint, families, registry.Seed(t.o.Job))
	t.learned.mu.Lock()
	defer t.learned.mu.Unlock()
	if t.Structure = t.learned.trees[key]; t.Structure != nil {
		return nil
	}
	if t.Structure, err = learn(ctx, t.Set, families, registry.Seed(t.o.Job), t.o.slots(), t.ui); err == nil {
		if t.learned.trees == nil {
			t.learned.trees = map[string]*taxonomy.Structure{}
		}
		t.learned.trees[key] = t.Structure
	}
	return err
}

// learn learns a hierarchy over the labels of a data set.
func learn(ctx context.Context, set *dataset.Set, families string, seed uint64, threads int,
	ui progress.Reporter) (*taxonomy.Structure, error) {
	n, _ := strconv.Atoi(families) // "auto" gives 0
	if classes := len(set.Labels); n > classes {
		return nil, option.Errorf("‹families=%d›: there are %d classes: give a smaller number, or auto", n, classes)
	}
	line := ui.Start("learn a hierarchy", 0)
	defer line.Done()
	tree, err := hiercluster.Learn(ctx, &hiercluster.Data{Rows: set.Matrix, Weight: set.Weight, Begin: set.PosBegin,
		Of: set.PosRows},
		hiercluster.Options{Families: n, Seed: seed, Threads: threads, Progress: func(done, all int) {
			line.Total(int64(all))
			line.Set(int64(done))
		}})
	if err != nil {
		return nil, err
	}
	return nameTree(tree, set.Labels), nil
}

// nameTree names the nodes of a learned tree: classes by their labels, inner nodes by names that no
// class has.
func nameTree(t *hiercluster.Tree, labels []string) *taxonomy.Structure {
	taken := make(map[string]bool, len(labels))
	for _, l := range labels {
		taken[l] = true
	}
	unused := func(name string) string {
		for taken[name] {
			name = "_" + name
		}
		return name
	}
	s := &taxonomy.Structure{}
	number := make([]uint32, len(t.Parent))
	for _, n := range t.Order() { // parents first
		number[n] = uint32(len(s.Names))
		switch {
		case int(n) < t.Classes:
			s.Names = append(s.Names, labels[n])
		case int(n) == t.Classes:
			s.Names = append(s.Names, unused("families"))
		default:
			s.Names = append(s.Names, unused("family-"+strconv.Itoa(int(n)-t.Classes)))
		}
		if p := t.Parent[n]; p >= 0 {
			s.Parents, s.Children = append(s.Parents, number[p]), append(s.Children, number[n])
		}
	}
	return s
}

// TreeReport describes a learned tree.
type TreeReport struct {
	// Out is the file that holds the hierarchy.
	Out string `json:"out"`
	taxonomy.Shape
}

// Tree learns a hierarchy from data and writes it to the file o.Out. The options of the job that it
// uses are the number of families and the seed.
func Tree(ctx context.Context, o *Options, ui progress.Reporter) (*TreeReport, error) {
	o.Job, o.Hierarchy = &taxonv1.Options{Method: registry.Taking(method.Families.Name)[0]}, Learned
	if err := o.Validate("tree"); err != nil {
		return nil, err
	}
	if err := fs.CheckWritable(o.Out); err != nil {
		return nil, err
	}
	if o.Threads > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(o.Threads))
	}
	scratch, done, err := fs.TempDir("tree")
	if err != nil {
		return nil, err
	}
	defer done()
	t := &Training{ui: ui, o: o, scratch: scratch, learned: new(learned)}
	if err := t.openData(ctx); err != nil {
		return nil, err
	}
	defer t.Close()
	if t.Set.Stats.LabelEntries == 0 {
		return nil, fs.Inputf(o.Data[0], 0, "no instance has a label: there is nothing to learn from")
	}
	if err := t.learn(ctx); err != nil {
		return nil, err
	}
	return &TreeReport{o.Out, t.Structure.Shape(t.Set.Labels)}, t.Structure.WriteFile(o.Out)
}
