package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"taxon/coordinator/method/registry"
	"taxon/internal/exit"
	"taxon/internal/human"
	"taxon/internal/model"
	"taxon/internal/planinfo"
	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// planOptions are the flags of info --plan.
type planOptions struct {
	plan    bool
	data    string
	workers int
	slots   int
	stores  int
	memory  int64
	cores   coresValue
	shape   shapeOptions
}

// mostPlanCores bounds --cores: a plan's model walks through as many.
const mostPlanCores = 1 << 24

func (o *planOptions) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.plan, "plan", false, "tell what training rr-svm would take on a cluster")
	f.StringVar(&o.data, "data", "", "with --plan: another way to give `PATH`")
	choiceNone(f, &o.shape)
	intFlag(f, &o.workers, "workers", 0, 0, 1<<20, "`N` workers; 0: as many as the cores need")
	intFlag(f, &o.slots, "slots", 8, 1, 1<<15, "`N` tasks at a time of a worker")
	intFlag(f, &o.stores, "stores", 8, 1, 1<<20, "`N` shards of the store")
	o.cores = coresValue{1, 8, 64, 512}
	f.Var(&o.cores, "cores", "`COUNTS` of cores to tell the time for, rising")
	bytesFlag(f, &o.memory, "memory", 0, "`SIZE` of a worker's memory: whether the job fits")
}

// coresValue is a list of counts such as 1,8,64.
type coresValue []int

// String implements [pflag.Value].
func (v *coresValue) String() string {
	var words []string
	for _, n := range *v {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ",")
}

// Type implements [pflag.Value].
func (v *coresValue) Type() string { return "counts" }

// Set implements [pflag.Value].
func (v *coresValue) Set(s string) error {
	var list coresValue
	for word := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > mostPlanCores || len(list) > 0 && n <= list[len(list)-1] {
			return valuef("must be rising numbers from 1 to %d, such as 1,8,64", mostPlanCores)
		}
		list = append(list, n)
	}
	*v = list
	return nil
}

// choiceNone defines the flags of a shape that has no data yet.
func choiceNone(f *pflag.FlagSet, o *shapeOptions) {
	f.StringVar(&o.Like, "like", "", "with --plan and no PATH: data as generate would make them, a `NAME`")
	floatFlag(f, &o.Scale, "scale", 1, "of --like: a `NUMBER` above 0", above0)
}

// check holds the flags against the arguments and returns the path.
func (o *planOptions) check(args []string) (string, error) {
	switch {
	case !o.plan && (o.data != "" || o.shape.Like != ""):
		return "", exit.Usagef("info: --data and --like go with --plan")
	case o.shape.Like != "" && (o.data != "" || len(args) > 0):
		return "", exit.Usagef("info: --like needs no data: leave PATH out")
	case o.data != "" && len(args) > 0:
		return "", exit.Usagef("info: PATH and --data name the same thing: give one of them")
	case o.data != "":
		return o.data, nil
	case len(args) > 0:
		return args[0], nil
	}
	return "", nil
}

func (o *planOptions) cluster() planinfo.Cluster {
	return planinfo.Cluster{Workers: o.workers, Slots: o.slots, Stores: o.stores, Memory: o.memory}
}

// shapeInfo plans a training of data that were never made.
func shapeInfo(o infoOptions) (*info, error) {
	s, err := o.plan.shape.shape("info")
	if err != nil {
		return nil, err
	}
	spec := planinfo.Spec(s, 0)
	d := spec.GetData()
	features, nonzeros := int64(d.GetFeatures()), int64(d.GetNonzeros())
	i := &info{Kind: "shape", Path: fmt.Sprintf("%s at scale %g", s.Like, s.Scale)}
	sizes := make([]int64, len(d.GetLabels()))
	for l, n := range d.GetLabelInstances() {
		sizes[l] = int64(n)
	}
	i.dataInfo = &dataInfo{Instances: int64(s.Instances), Features: &features, Nonzeros: &nonzeros, Labels: int64(s.Classes),
		LabelEntries: int64(float64(s.Instances) * s.Labels), LabelsPerInstance: s.Labels, ClassSizes: describeSizes(sizes)}
	j, err := registry.Prepare(spec)
	if err != nil {
		return nil, err
	}
	i.Plan = planinfo.Of(j, o.plan.cluster(), o.plan.cores)
	return i, nil
}

// addPlan plans the training of counted data with a tree's structure; nil: flat.
func (i *info) addPlan(o infoOptions, d *taxonv1.Data, s *taxonomy.Structure) error {
	spec := &taxonv1.JobSpec{Options: planinfo.Defaults(), Data: d}
	if s != nil {
		spec.Structure = &taxonv1.Structure{Names: s.Names, Parents: s.Parents, Children: s.Children}
	}
	j, err := registry.Prepare(spec)
	if err != nil {
		return err
	}
	threads := model.Threads(o.threads)
	m := j.Estimate.Alone(uint32(threads))
	i.Memory, i.Seconds = &m, planinfo.Seconds(j, min(threads, runtime.NumCPU()))
	if o.plan.plan {
		i.Plan = planinfo.Of(j, o.plan.cluster(), o.plan.cores)
	}
	return nil
}

func (p infoPrinter) plan(i *planinfo.Info) {
	if i == nil {
		return
	}
	p.row("plan", "%s terminals in %s blocks, %s feature ranges: %s tasks a sweep, about %d sweeps to a gap of 1e-2", human.Count(int64(i.Terminals)),
		human.Count(int64(i.Blocks)), human.Count(int64(i.Ranges)), human.Count(int64(i.TasksSweep)), i.Sweeps)
	p.row("sweep", "%.3g visits (nonzeros times classes), about %s written, %s moved", i.Visits, human.Bytes(i.StoredSweep), human.Bytes(i.BytesSweep))
	fits := ""
	if i.Fits != nil && *i.Fits {
		fits = ": it fits"
	} else if i.Fits != nil {
		fits = ": it does not fit; give more memory or fewer slots"
	}
	p.row("needs", "about %s a worker (with --memory %s or more), %s a store%s", human.Bytes(i.WorkerMemory), human.Bytes(i.WorkerLeast), human.Bytes(i.StoreMemory), fits)
	accuracy := "within a factor of three"
	if i.CPUSeconds < factorHoldsFrom {
		accuracy = "likely less: short trainings are overestimated"
	}
	p.row("CPU", "about %s, %s", formatLong(i.CPUSeconds), accuracy)
	width := max(4, len(human.Count(int64(i.Speedup[len(i.Speedup)-1].Cores))))
	for k, s := range i.Speedup {
		name := ""
		if k == 0 {
			name = "cores"
		}
		limit := ""
		if s.Bottleneck != "none" {
			limit = "; limit: " + s.Bottleneck
		}
		speedup := strconv.FormatFloat(s.Speedup, 'g', 3, 64)
		if s.Speedup >= 100 {
			speedup = human.Count(int64(s.Speedup))
		}
		p.row(name, "%*s: %s, %s times as fast%s", width, human.Count(int64(s.Cores)), formatLong(s.Seconds), speedup, limit)
	}
}

// factorHoldsFrom is the estimate in seconds from which a factor of three holds: generated
// data took 14 s of 22 s estimated, but 1.7 s of 6.4.
const factorHoldsFrom = 20

// formatLong shows hours as such.
func formatLong(seconds float64) string {
	if seconds >= 7200 {
		return fmt.Sprintf("%.3g h", seconds/3600)
	}
	return human.Seconds(seconds)
}
