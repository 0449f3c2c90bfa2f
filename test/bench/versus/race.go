package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"taxon/test/bench/drive"
)

// raceSet is the data set of the race.
const raceSet = "wordnet-freq"

// runner is one of our trainings, which the picture shows as a curve.
type runner struct {
	name string
	args []string
	gap  float64
}

func runners() []runner {
	return []runner{
		{"taxon bsvm", []string{"--method", "bsvm", "--loss", "hinge"}, 1e-2},
		{"taxon rr-svm", []string{"--method", "rr-svm", "--loss", "hinge"}, 1e-3},
		{"taxon rr-svm, squared hinge", []string{"--method", "rr-svm", "--loss", "squared-hinge", "--C", "0.15",
			"--positive-weight", "8"}, 1e-3},
	}
}

// opponents are the peers, each of which is shown as a point.
var opponents = []claim{
	{peer: "liblinear", loss: "hinge", set: raceSet},
	{peer: "liblinear", loss: "squared-hinge", set: raceSet},
	{peer: "pecos", loss: "squared-hinge", set: raceSet},
	{peer: "omikuji", loss: "squared-hinge", set: raceSet},
}

// mark is the state of a training after a number of CPU seconds.
type mark struct {
	seconds, micro, macro float64 // F1 in percent
	objective, dual       float64 // ours only
}

// track is the course of a training. A peer's has only its end.
type track struct {
	name  string
	marks []mark
}

// race runs all trainings on one core, one after the other, and draws F1 and certificate by CPU
// seconds.
func (b *bench) race(ctx context.Context, out string) error {
	f, err := b.files(ctx, raceSet)
	if err != nil {
		return err
	}
	var tracks []track
	for _, r := range runners() {
		t, err := b.course(ctx, f, r)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		tracks = append(tracks, t)
	}
	for _, c := range opponents {
		p, err := b.peer(ctx, c, f)
		if err != nil {
			return err
		}
		tracks = append(tracks, track{c.peer + ", " + c.loss, []mark{{seconds: p.CPUSeconds, micro: 100 * p.MicroF1,
			macro: 100 * p.MacroF1}}})
	}
	for _, t := range tracks {
		for _, m := range t.marks {
			b.say("%-48s %7.1f s  micro F1 %.1f  macro F1 %.1f", t.name, m.seconds, m.micro, m.macro)
		}
	}
	return drawRace(tracks, out)
}

// course trains from nothing for 1, 2, 3, 4, 6, 8, ... sweeps until the gap is reached. It measures
// what a user gets who stops there.
func (b *bench) course(ctx context.Context, f *files, r runner) (track, error) {
	t, own := track{name: r.name}, drive.Files{Train: f.train, Test: f.test, Tree: f.tree}
	if slices.Contains(r.args, "bsvm") {
		own.Tree = ""
	}
	for sweeps := 1; ; sweeps += max(1, sweeps/3) {
		args := slices.Concat([]string{"--threads", "1", "--gap", fmt.Sprint(r.gap), "--max-sweeps", strconv.Itoa(sweeps)},
			r.args)
		m, err := b.taxon.TrainFiles(ctx, own, args...)
		if err != nil {
			return t, err
		}
		t.marks = append(t.marks, mark{m.CPUSeconds, 100 * m.Test.MicroF1, 100 * m.Test.MacroF1, m.Objective,
			m.Objective - *m.Gap*m.Objective})
		if m.StoppedBy == "gap" {
			return t, nil
		}
	}
}

// drawRace draws the picture as SVG: micro F1, macro F1, and the distance of P above and D below
// the best known objective, by CPU seconds.
func drawRace(tracks []track, out string) error {
	const width, height = 26 * vg.Centimeter, 9 * vg.Centimeter
	canvas := vgsvg.New(width, height)
	tiles := draw.Tiles{Rows: 1, Cols: 3, PadX: 8 * vg.Millimeter, PadTop: 2 * vg.Millimeter, PadBottom: 2 * vg.Millimeter,
		PadLeft: 2 * vg.Millimeter, PadRight: 2 * vg.Millimeter}
	panes := draw.New(canvas)
	for i, title := range []string{"micro F1, percent", "macro F1, percent", "P above, D below (dashed): " +
		"shares of the optimum"} {
		p := plot.New()
		p.Title.TextStyle.Font.Size = 10
		p.Title.Text, p.X.Label.Text = title, "CPU seconds, one core"
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.Legend.Top = true
		p.Legend.TextStyle.Font.Size, p.Legend.ThumbnailWidth = 7, 8*vg.Millimeter
		if i == 2 {
			p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		}
		p.Add(plotter.NewGrid())
		for k, t := range tracks {
			if err := drawTrack(p, t, k, i); err != nil {
				return err
			}
		}
		if i < 2 { // values far below the best say little
			best := p.Y.Max
			p.Y.Min, p.Y.Max = best-f1Shown, best+1
		}
		p.Draw(tiles.At(panes, i, 0))
	}
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return err
	}
	return os.WriteFile(out, text.Bytes(), 0o644)
}

// f1Shown is the range of F1 below the best, in points, that is shown.
const f1Shown = 9

// drawTrack adds the k-th track to a pane. The legend is in the last pane, where there is room.
func drawTrack(p *plot.Plot, t track, k, pane int) error {
	colour := plotutil.SoftColors[k%len(plotutil.SoftColors)]
	var up, down plotter.XYs
	last := t.marks[len(t.marks)-1]
	best := (last.objective + last.dual) / 2
	for _, m := range t.marks {
		switch {
		case pane == 0:
			up = append(up, plotter.XY{X: m.seconds, Y: m.micro})
		case pane == 1:
			up = append(up, plotter.XY{X: m.seconds, Y: m.macro})
		case len(t.marks) > 1:
			up = append(up, plotter.XY{X: m.seconds, Y: (m.objective - best) / best})
			down = append(down, plotter.XY{X: m.seconds, Y: (best - m.dual) / best})
		}
	}
	legendOnly := len(up) == 0 // a peer has no certificate
	if legendOnly {
		up = plotter.XYs{{X: last.seconds, Y: last.micro}}
	}
	line, points, err := plotter.NewLinePoints(up)
	if err != nil {
		return err
	}
	line.Color, points.Color = colour, colour
	points.Shape, points.Radius = draw.CircleGlyph{}, 1.5
	if len(up) == 1 {
		points.Shape, points.Radius = draw.BoxGlyph{}, 3.5
	}
	if !legendOnly {
		p.Add(line, points)
	}
	if pane == 2 {
		p.Legend.Add(t.name, line, points)
	}
	if len(down) == 0 {
		return nil
	}
	lower, err := plotter.NewLine(down)
	if err != nil {
		return err
	}
	lower.Color, lower.Dashes = colour, []vg.Length{3, 3}
	p.Add(lower)
	return nil
}
