package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// figure is a figure of a paper, drawn from our trainings.
type figure struct {
	paper, name, data, file string
	draw                    func(ctx context.Context, r *runner, data, file string) error
}

func (f *figure) heading() string { return "[" + f.paper + "] " + f.name + ", " + f.data }

var figures = []figure{
	{"NIPS", "Figure 1", "clef", "papers-few.svg", fewExamples},
	{"JMLR", "Figure 2", "enron", "papers-curve.svg", learningCurve},
}

// samples is the number of samples for each point of Figure 1 of [NIPS].
const samples = 3

// fewExamples draws Figure 1 of [NIPS]: F1 with one to five training rows per class.
func fewExamples(ctx context.Context, r *runner, data, file string) error {
	train, test, tree := r.set(data)
	lines, err := readLines(ctx, train)
	if err != nil {
		return err
	}
	names := []string{"BLR", "MLR", "BSVM", "MSVM", "M3-map"}
	flags := []string{"--method blr", "--method mlr", "--method bsvm", "--method msvm", m3}
	p := []*plot.Plot{plot.New(), plot.New()}
	curves := make([]map[string]plotter.XYs, 2)
	for k, title := range []string{"Micro-F1", "Macro-F1"} {
		curves[k] = map[string]plotter.XYs{}
		p[k].Title.Text, p[k].X.Label.Text, p[k].Y.Label.Text = data+", few training rows", "training rows a class", title
		p[k].Legend.Top, p[k].Legend.Left = true, true
	}
	folder := filepath.Join(r.work, data, "few")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for each := 1; each <= 5; each++ {
		for k, f := range flags {
			var sum [2]float64
			for s := range samples {
				some := filepath.Join(folder, fmt.Sprintf("%d-%d.svm", each, s))
				if err := os.WriteFile(some, drawn(lines, each, uint64(s)), 0o600); err != nil {
					return err
				}
				var report struct{ Test measures }
				args := append([]string{"train", "--out", filepath.Join(folder, "model"), "--force", "--json", "--quiet",
					"--threads", "1", "--data", some, "--hierarchy", tree, "--test", test}, strings.Fields(f)...)
				if err := r.call(ctx, args, &report); err != nil {
					return err
				}
				sum[0] += report.Test.Value["micro_f1"] / samples
				sum[1] += report.Test.Value["macro_f1"] / samples
			}
			fmt.Fprintf(r.log, "papers: %s, %d rows a class: %.2f / %.2f\n", names[k], each, 100*sum[0], 100*sum[1])
			for i := range sum {
				curves[i][names[k]] = append(curves[i][names[k]], plotter.XY{X: float64(each), Y: 100 * sum[i]})
			}
		}
	}
	for i := range p {
		var all []any
		for _, n := range names {
			all = append(all, n, curves[i][n])
		}
		if err := plotutil.AddLinePoints(p[i], all...); err != nil {
			return err
		}
		if err := p[i].Save(12*vg.Centimeter, 9*vg.Centimeter, strings.Replace(file, ".svg", []string{"-micro.svg",
			"-macro.svg"}[i], 1)); err != nil {
			return err
		}
	}
	return nil
}

// drawn returns a sample of `each` rows of each label, or all its rows if there are fewer.
func drawn(lines []string, each int, seed uint64) []byte {
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(lines))
	taken, rows := map[string]int{}, []int(nil)
	for _, i := range order {
		if label, _, _ := strings.Cut(lines[i], " "); taken[label] < each {
			taken[label]++
			rows = append(rows, i)
		}
	}
	slices.Sort(rows)
	var out bytes.Buffer
	for _, i := range rows {
		out.WriteString(lines[i] + "\n")
	}
	return out.Bytes()
}

// learningCurve draws Figure 2 of [JMLR]: objective and losses of H-M3 during training.
func learningCurve(ctx context.Context, r *runner, data, file string) error {
	train, test, tree := r.set(data)
	folder := filepath.Join(r.work, data, "curve")
	curves := map[string]plotter.XYs{}
	var best float64 // the bound of the last training
	var bound, cpu []float64
	for sweeps := 1; sweeps <= 8; sweeps++ {
		var report struct {
			Dual, Gap float64
			CPU       float64 `json:"cpu_seconds"`
			StoppedBy string  `json:"stopped_by"`
		}
		if err := r.call(ctx, []string{"train", "--method", "hm3", "--gap", "1e-5", "--max-sweeps", fmt.Sprint(sweeps),
			"--out", folder, "--force", "--json", "--quiet", "--threads", "1",
			"--data", train, "--hierarchy", tree}, &report); err != nil {
			return err
		}
		bound, cpu, best = append(bound, report.Dual), append(cpu, report.CPU), report.Dual
		for name, rows := range map[string]string{"training loss": train, "test loss": test} {
			var m measures
			if err := r.call(ctx, []string{"eval", "--model", folder, "--data", rows, "--json", "--quiet"}, &m); err != nil {
				return err
			}
			curves[name] = append(curves[name], plotter.XY{X: report.CPU, Y: m.Value["sym_diff"]})
		}
		fmt.Fprintf(r.log, "papers: H-M3, %d sweeps, %.1f CPU s: dual %.6g, gap %.2g\n", sweeps, report.CPU, report.Dual,
			report.Gap)
		if report.StoppedBy != "max_sweeps" {
			break
		}
	}
	for k := range bound {
		curves["dual"] = append(curves["dual"], plotter.XY{X: cpu[k], Y: 100 * bound[k] / best})
	}
	for k, names := range [][]string{{"dual"}, {"training loss", "test loss"}} {
		p := plot.New()
		p.Title.Text, p.X.Label.Text, p.Y.Label.Text = "H-M3 on "+data, "CPU seconds", []string{"dual, % of its last value",
			"symmetric difference a row"}[k]
		p.Legend.Top = true
		var all []any
		for _, n := range names {
			all = append(all, n, curves[n])
		}
		if err := plotutil.AddLinePoints(p, all...); err != nil {
			return err
		}
		p.Y.Max += 0.2 * (p.Y.Max - p.Y.Min) // room for the legend
		if err := p.Save(12*vg.Centimeter, 9*vg.Centimeter, strings.Replace(file, ".svg", []string{"-objective.svg",
			"-loss.svg"}[k], 1)); err != nil {
			return err
		}
	}
	return nil
}
