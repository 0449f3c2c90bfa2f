package inspect

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"taxon/coordinator/footprint"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/estimate"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// Print prints the description as text. bold emphasises the path.
func (i *Info) Print(w io.Writer, bold func(string) string) {
	kind := map[string]string{"model": "a model", "dataset": "an ingested data set", "data": "a file of instances",
		"structure": "a class structure",
		"shape":     "data that generate would make"}[i.Kind]
	size := ""
	if i.Bytes > 0 {
		size = ", " + format.Bytes(i.Bytes)
	}
	fmt.Fprintf(w, "%s: %s%s\n", bold(i.Path), kind, size)
	p := printer{w}
	p.training(i)
	p.data(i.Data)
	p.structure(i)
	p.memory(i.Memory)
	if i.Seconds > 0 {
		p.row("time", "about %s to %s, within a factor of three", format.Seconds(i.Seconds), i.Until)
	}
	p.plan(i.Plan)
	for _, n := range i.Notes {
		fmt.Fprintf(w, "  note: %s\n", n)
	}
}

// printer prints rows of a name and its figures.
type printer struct{ w io.Writer }

func (p printer) row(name, format string, args ...any) {
	fmt.Fprintf(p.w, "  %-12s%s\n", name, option.Flags(fmt.Sprintf(format, args...)))
}

// training prints the options and the report of a model.
func (p printer) training(i *Info) {
	if i.Report == nil {
		return
	}
	r := i.Report
	p.row("method", "%s", registry.Words(r.Method, r.Own))
	gap := "no certificate"
	if r.Gap != nil {
		gap = fmt.Sprintf("gap %.3g", *r.Gap)
	}
	p.row("training", "objective %.6g, %s, stopped by %s after %s, %s", r.Objective, gap, r.StoppedBy,
		format.Counted(int64(r.Sweeps), "sweep", "sweeps"), format.Seconds(r.Seconds))
	for _, c := range r.CapsBefore {
		p.row("before", "%s", c.String())
	}
	if i.Pruned != nil {
		p.row("pruned", "threshold %.4g: weights that differed from the parent's by less became the parent's; %s others "+
			"kept, as %s; the sha256 is of the weights before", i.Pruned.Threshold, format.Count(i.Pruned.Entries),
			i.Pruned.Values)
		if c := r.Pruned; c != nil {
			p.row("cost", "%s", c.String())
		}
		p.row("weights", "sha256 %s", r.WeightsSHA256)
		return
	}
	p.row("weights", "%s stored, sha256 %s", format.Count(int64(i.Counts.Overrides)), r.WeightsSHA256)
}

func (p printer) data(d *Data) {
	if d == nil {
		return
	}
	p.row("instances", "%s%s", format.Count(d.Instances), prefixed(d.Form))
	if d.Terms > 0 {
		p.row("", "%s, %s of labels", format.Counted(d.Documents, "document", "documents"),
			format.Counted(d.Terms, "term", "terms"))
	}
	if d.LeftOut > 0 {
		p.row("left out", "%s of weight 0", format.Count(d.LeftOut))
	}
	if d.Weights != 0 {
		p.row("weighing", "%.6g in all", d.Weights)
	}
	if d.Features != nil {
		p.row("features", "%s", format.Count(*d.Features))
	}
	if d.Nonzeros != nil {
		p.row("nonzeros", "%s%s", format.Count(*d.Nonzeros), format.PerInstance(*d.Nonzeros, d.Instances))
	}
	p.row("classes", "%s%s", format.Count(d.Labels), labelsEach(d))
	if s := d.ClassSizes; s != nil {
		p.row("class sizes", "least %s, median %s, mean %.1f, most %s", format.Count(s.Min), format.Count(s.Median), s.Mean,
			format.Count(s.Max))
		var bins []string
		for _, b := range s.Bins {
			to := "+"
			if b.To != nil && *b.To == b.From {
				to = ""
			} else if b.To != nil {
				to = fmt.Sprintf("-%d", *b.To)
			}
			bins = append(bins, fmt.Sprintf("%d%s: %s", b.From, to, format.Count(int64(b.Classes))))
		}
		p.row("", "%s", strings.Join(bins, "   "))
	}
}

func labelsEach(d *Data) string {
	if d.Instances == 0 {
		return ""
	}
	return fmt.Sprintf(", %.2f labels an instance", d.LabelsPerInstance)
}

func prefixed(s string) string {
	if s == "" {
		return ""
	}
	return ", " + s
}

func (p printer) structure(i *Info) {
	if s := i.Structure; s != nil {
		p.row("structure", "%s, %s, %s, %s, depth %d", format.Counted(int64(s.Nodes), "node", "nodes"),
			format.Counted(int64(s.Edges), "edge", "edges"),
			format.Counted(int64(s.Roots), "root", "roots"), format.Counted(int64(s.Leaves), "leaf", "leaves"), s.Depth)
		if s.MultiParent > 0 {
			p.row("", "%s with more than one parent", format.Counted(int64(s.MultiParent), "node", "nodes"))
		}
		if i.Data != nil {
			p.row("", "classes: %s at leaves, %s at internal nodes, %s outside", format.Count(int64(s.LabelsLeaves)),
				format.Count(int64(s.LabelsInside)), format.Count(int64(s.LabelsAbsent)))
		}
	}
	if t := i.Tree; t != nil {
		virtual := ""
		if t.Virtual {
			virtual = ", a virtual root"
		}
		p.row("tree", "%s: %s (%s for labels of internal nodes), %s internal%s, depth %d", format.Counted(int64(t.Nodes),
			"node", "nodes"), format.Counted(int64(t.Terminals), "terminal", "terminals"),
			format.Count(int64(t.Spawned)), format.Count(int64(t.Internals)), virtual, t.Depth)
	}
}

func (p printer) memory(m *footprint.Memory) {
	if m != nil {
		p.row("memory", "about %s to train (data %s, state %s, scratch %s, program and garbage %s); with train "+
			"‹memory› at least %s", format.Bytes(int64(m.Total)), format.Bytes(int64(m.Data)), format.Bytes(int64(m.State)),
			format.Bytes(int64(m.Scratch)), format.Bytes(int64(m.Process)), format.Bytes(int64(m.Least)))
	}
}

func (p printer) plan(i *estimate.Info) {
	if i == nil {
		return
	}
	var items []string
	for _, list := range i.Items {
		items = append(items, format.Counted(int64(list.Count), list.Kind, list.Kind+"s"))
	}
	p.row("plan", "%s in %s: %s a sweep, about %s to %s", format.Counted(int64(i.Terminals), "terminal", "terminals"),
		strings.Join(items, ", "),
		format.Counted(int64(i.TasksSweep), "task", "tasks"), format.Counted(int64(i.Sweeps), "sweep", "sweeps"), i.Until)
	visits := ""
	if i.Visits > 0 {
		visits = fmt.Sprintf("%.3g visits (nonzeros times classes), ", i.Visits)
	}
	p.row("sweep", "%sabout %s written, %s moved", visits, format.Bytes(i.StoredSweep), format.Bytes(i.BytesSweep))
	fits := ""
	if i.Fits != nil && *i.Fits {
		fits = ": it fits"
	} else if i.Fits != nil {
		fits = ": it does not fit; give more memory or fewer slots"
	}
	p.row("needs", "about %s a worker (with ‹memory=%s› or more), %s a store%s", format.Bytes(i.WorkerMemory),
		format.Bytes(i.WorkerLeast), format.Bytes(i.StoreMemory), fits)
	accuracy := "within a factor of three"
	if i.CPUSeconds < factorHoldsFrom {
		accuracy = "likely less: short trainings are overestimated"
	}
	p.row("CPU", "about %s, %s", formatLong(i.CPUSeconds), accuracy)
	width := max(4, len(format.Count(int64(i.Speedup[len(i.Speedup)-1].Cores))))
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
			speedup = format.Count(int64(s.Speedup))
		}
		p.row(name, "%*s: %s, %s times as fast%s", width, format.Count(int64(s.Cores)), formatLong(s.Seconds), speedup, limit)
	}
}

// factorHoldsFrom is a time in seconds. Estimates of at least this length are right within a factor
// of three, and shorter ones may be further off.
const factorHoldsFrom = 20

// formatLong formats a duration, with hours if it is long.
func formatLong(seconds float64) string {
	if seconds >= 7200 {
		return fmt.Sprintf("%.3g h", seconds/3600)
	}
	return format.Seconds(seconds)
}

// ratio returns n / of, or 0 if of is 0.
func ratio(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
