// Command scaling trains on generated data of increasing size, fits laws for the growth of time,
// memory and bytes, and extrapolates them to the full data on 512 cores.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"taxon/test/bench/drive"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "scaling:", err)
		os.Exit(1)
	}
}

// point is the cost of one scale.
type point struct {
	Scale       float64 `json:"scale"`
	Instances   int     `json:"instances"`
	Features    int     `json:"features"`
	Terminals   int     `json:"terminals"`
	Visits      float64 `json:"visits_sweep"`
	StoredSweep float64 `json:"stored_sweep"` // according to the plan
	Tasks       int     `json:"tasks_sweep"`
	Sweeps      int     `json:"sweeps"`
	Gap         float64 `json:"gap"`
	CPUSeconds  float64 `json:"cpu_seconds"`
	PeakRSS     int64   `json:"peak_rss_bytes"`
	ModelBytes  int64   `json:"model_bytes"`
}

// planCores lists the numbers of cores for which plans are computed. The first of them are
// reported; the others serve to find the first limit.
const (
	planCores = "1,8,64,512,1024,2048,4096,8192,16384,32768,65536"
	told      = 4
)

// These are the sizes of the cluster whose workers' memory is reported.
const workers, slots = 64, 8

// plan is the part of the output of `taxon info --plan --json` that is used.
type plan struct {
	Instances int `json:"instances"`
	Features  int `json:"features"`
	Plan      struct {
		Terminals  int     `json:"terminals"`
		Tasks      int     `json:"tasks_sweep"`
		Visits     float64 `json:"visits_sweep"`
		Stored     float64 `json:"stored_sweep"`
		Moved      float64 `json:"bytes_sweep"`
		Least      float64 `json:"worker_least_bytes"`
		CPUSeconds float64 `json:"cpu_seconds"`
		Speedup    []struct {
			Cores      int     `json:"cores"`
			Seconds    float64 `json:"seconds"`
			Speedup    float64 `json:"speedup"`
			Bottleneck string  `json:"bottleneck"`
		} `json:"speedup"`
	} `json:"plan"`
}

func run(ctx context.Context) error {
	scales := flag.String("scales", "0.001,0.003,0.01", "`shares` of LWIKI, rising")
	binary := flag.String("taxon", "", "a `binary` to measure (default: built from this checkout)")
	gap := flag.Float64("gap", 1e-2, "relative `gap` to train to")
	write := flag.Bool("write", false, "put the table into docs/performance.md")
	flag.Parse()
	d, err := drive.NewFrom(ctx, *binary)
	if err != nil {
		return err
	}
	defer d.Close()
	var points []point
	for s := range strings.SplitSeq(*scales, ",") {
		p, err := measure(ctx, d, s, *gap)
		if err != nil {
			return fmt.Errorf("scale %s: %w", s, err)
		}
		points = append(points, p)
		fmt.Fprintf(os.Stderr, "scale %s: %.1f s of CPU, %d sweeps, %.0f MB\n", s, p.CPUSeconds, p.Sweeps,
			float64(p.PeakRSS)/1e6)
	}
	var whole plan
	if err := planOf(ctx, d, "1", &whole); err != nil {
		return err
	}
	var cluster plan
	if err := planOf(ctx, d, "1", &cluster, "--workers", strconv.Itoa(workers), "--slots",
		strconv.Itoa(slots)); err != nil {
		return err
	}
	text := report(points, whole, cluster)
	fmt.Print(text)
	if *write {
		return insert(text)
	}
	return nil
}

func measure(ctx context.Context, d *drive.Driver, scale string, gap float64) (point, error) {
	s, err := strconv.ParseFloat(scale, 64)
	if err != nil {
		return point{}, err
	}
	dir, err := os.MkdirTemp("", "taxon-scaling-")
	if err != nil {
		return point{}, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "data")
	if _, err := d.Output(ctx, "generate", "--like", "lwiki", "--scale", scale, "--out", out, "--quiet"); err != nil {
		return point{}, err
	}
	var pl plan
	if err := planOf(ctx, d, scale, &pl); err != nil {
		return point{}, err
	}
	f := drive.Files{Train: filepath.Join(out, "train.svm"), Test: filepath.Join(out, "test.svm"), Tree: filepath.Join(out,
		"hierarchy.txt")}
	r, err := d.TrainFiles(ctx, f, "--gap", strconv.FormatFloat(gap, 'g', -1, 64), "--threads", "1")
	if err != nil {
		return point{}, err
	}
	return point{Scale: s, Instances: pl.Instances, Features: pl.Features, Terminals: pl.Plan.Terminals,
		Visits: pl.Plan.Visits, StoredSweep: pl.Plan.Stored,
		Tasks: pl.Plan.Tasks, Sweeps: r.Sweeps, Gap: *r.Gap, CPUSeconds: r.CPUSeconds, PeakRSS: r.PeakRSSBytes,
		ModelBytes: r.ModelBytes}, nil
}

func planOf(ctx context.Context, d *drive.Driver, scale string, p *plan, more ...string) error {
	out, err := d.Output(ctx, append([]string{"info", "--plan", "--like", "lwiki", "--scale", scale, "--stores", "64",
		"--cores", planCores, "--json"}, more...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, p)
}

// law is y = a x^b, fitted to the logarithms.
type law struct{ a, b float64 }

func fit(points []point, y func(point) float64) law {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		lx, ly := math.Log(p.Scale), math.Log(y(p))
		n, sx, sy, sxx, sxy = n+1, sx+lx, sy+ly, sxx+lx*lx, sxy+lx*ly
	}
	if n < 2 {
		return law{a: math.Exp(sy), b: math.NaN()}
	}
	b := (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return law{a: math.Exp((sy - b*sx) / n), b: b}
}

func (l law) at(x float64) float64 { return l.a * math.Pow(x, l.b) }

// perClass returns the mean number of instances of a class.
func (p point) perClass() float64 { return float64(p.Instances) / float64(p.Terminals) }

func report(points []point, whole, cluster plan) string {
	var b strings.Builder
	b.WriteString("| scale | instances | features | classes | sweeps | gap | CPU s | CPU s a sweep | ms a class and " +
		"sweep | ns a visit | memory MB | model MB |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, p := range points {
		sweep := p.CPUSeconds / float64(p.Sweeps)
		fmt.Fprintf(&b, "| %g | %d | %d | %d | %d | %.2g | %.1f | %.2f | %.2f | %.2f | %.0f | %.1f |\n", p.Scale, p.Instances,
			p.Features, p.Terminals, p.Sweeps, p.Gap,
			p.CPUSeconds, sweep, sweep/float64(p.Terminals)*1e3, sweep/p.Visits*1e9, float64(p.PeakRSS)/1e6,
			float64(p.ModelBytes)/1e6)
	}
	if len(points) < 2 {
		return b.String()
	}
	perSweep := fit(points, func(p point) float64 { return p.CPUSeconds / float64(p.Sweeps) })
	total := fit(points, func(p point) float64 { return p.CPUSeconds })
	memory := fit(points, func(p point) float64 { return float64(p.PeakRSS) })
	model := fit(points, func(p point) float64 { return float64(p.ModelBytes) })
	fmt.Fprintf(&b, "\nLaws in the scale s, by least squares of logarithms: CPU seconds a sweep %.3g s^%.2f, in all "+
		"%.3g s^%.2f; memory in one process %.3g s^%.2f MB; model %.3g s^%.2f MB.\n",
		perSweep.a, perSweep.b, total.a, total.b, memory.a/1e6, memory.b, model.a/1e6, model.b)
	class := fit(points, func(p point) float64 { return 1e3 * p.CPUSeconds / float64(p.Sweeps) / float64(p.Terminals) })
	fmt.Fprintf(&b, "A class costs %.3g s^%.2f ms a sweep: there are %.1f instances to a class at every scale, while "+
		"those of other classes grow as s, which is what LIBLINEAR's time for a class grows with.\n",
		class.a, class.b, points[0].perClass())
	visit, bytes := costs(points)
	fmt.Fprintf(&b, "Constants of the plan's model: %.2f ns a visit, %.1f ns a byte written.\n", visit, bytes)
	fmt.Fprintf(&b, "\nAt s = 1 the laws give %.3g CPU hours, the plan's model %.3g (%d tasks a sweep, %.0f GB moved a "+
		"sweep). Each of %d workers of %d slots needs %.1f GB (`taxon info --plan --like lwiki --scale 1 --stores 64 "+
		"--workers %d --slots %d`).\n",
		total.at(1)/3600, whole.Plan.CPUSeconds/3600, whole.Plan.Tasks, whole.Plan.Moved/1e9, workers, slots,
		cluster.Plan.Least/1e9, workers, slots)
	for k, s := range whole.Plan.Speedup {
		if k >= told {
			if s.Bottleneck == "none" {
				continue
			}
			fmt.Fprintf(&b, "It breaks first at %d cores, %.0f times as fast as one: %s.\n", s.Cores, s.Speedup, s.Bottleneck)
			break
		}
		fmt.Fprintf(&b, "On %d cores: %.3g h by the law, %.3g h by the plan, %.3g times as fast as one; limit: %s.\n",
			s.Cores, total.at(1)/3600/s.Speedup, s.Seconds/3600, s.Speedup, s.Bottleneck)
	}
	fmt.Fprintf(&b, "One machine of 24 GB breaks by its memory, by the law at s = %.2g.\n", math.Pow(24e9/memory.a,
		1/memory.b))
	return b.String()
}

// costs fits CPU per sweep = visit * visits + byte * stored bytes, with both factors at least zero.
func costs(points []point) (visitNanos, byteNanos float64) {
	var vv, vb, bb, vy, by float64
	for _, p := range points {
		y := p.CPUSeconds / float64(p.Sweeps) * 1e9
		w := 1 / (y * y) // errors are relative
		vv, vb, bb = vv+w*p.Visits*p.Visits, vb+w*p.Visits*p.StoredSweep, bb+w*p.StoredSweep*p.StoredSweep
		vy, by = vy+w*p.Visits*y, by+w*p.StoredSweep*y
	}
	det := vv*bb - vb*vb
	visitNanos, byteNanos = (vy*bb-by*vb)/det, (by*vv-vy*vb)/det
	if byteNanos < 0 || det <= 0 {
		return vy / vv, 0
	}
	if visitNanos < 0 {
		return 0, by / bb
	}
	return visitNanos, byteNanos
}

const (
	document = "docs/performance.md"
	begin    = "<!-- scaling: begin; go run ./test/bench/scaling -write fills this in -->\n"
	end      = "<!-- scaling: end -->\n"
)

func insert(fresh string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return errors.New(document + " has lost the markers of the scaling study")
	}
	return os.WriteFile(document, []byte(head+begin+fresh+end+tail), 0o644)
}
