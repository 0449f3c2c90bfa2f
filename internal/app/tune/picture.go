package tune

import (
	"fmt"
	"io"
	"math"
	"strings"

	"taxon/internal/app/report"
)

// Mark is a drawn point of a path.
type Mark struct {
	C     float64
	Score Score
}

// sketchHeight and sketchColumn are dimensions of a Sketch in characters: its height, and the width
// of one column.
const (
	sketchHeight = 9
	sketchColumn = 8
)

// Sketch draws the values along C as text: o marks a point, * the chosen one, and | its standard
// error to either side.
func Sketch(path []Mark, goal string, chosen float64) string {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, m := range path {
		lo, hi = min(lo, m.Score.Value-m.Score.Spread), max(hi, m.Score.Value+m.Score.Spread)
	}
	if !(hi > lo) {
		lo, hi = lo-0.5, hi+0.5
	}
	row := func(v float64) int { return int(math.Round((hi - v) / (hi - lo) * (sketchHeight - 1))) }
	canvas := make([][]byte, sketchHeight)
	for y := range canvas {
		canvas[y] = []byte(strings.Repeat(" ", sketchColumn*len(path)))
	}
	for i, m := range path {
		x := sketchColumn*i + sketchColumn/2
		for y := row(m.Score.Value + m.Score.Spread); y <= row(m.Score.Value-m.Score.Spread); y++ {
			canvas[y][x] = '|'
		}
		canvas[row(m.Score.Value)][x] = 'o'
		if m.C == chosen {
			canvas[row(m.Score.Value)][x] = '*'
		}
	}
	var b strings.Builder
	for y, line := range canvas {
		label := ""
		if y%4 == 0 {
			label = fmt.Sprintf("%.4g", hi-(hi-lo)*float64(y)/(sketchHeight-1))
		}
		fmt.Fprintf(&b, "%10s |%s\n", label, strings.TrimRight(string(line), " "))
	}
	fmt.Fprintf(&b, "%10s +%s\n%10s  ", "", strings.Repeat("-", sketchColumn*len(path)), goal)
	for _, m := range path {
		b.WriteString(centred(fmt.Sprintf("%.3g", m.C)))
	}
	return strings.TrimRight(b.String(), " ") + "  C\n"
}

// centred returns word in the middle of a column.
func centred(word string) string {
	left := max(sketchColumn/2-len(word)/2, 0)
	return strings.Repeat(" ", left) + word + strings.Repeat(" ", max(sketchColumn-left-len(word), 0))
}

// Line is a path to draw.
type Line struct {
	Name  string
	Marks []Mark
}

// Draw draws the values along C as SVG, one line per path, with standard errors and a logarithmic
// axis. The chosen point is marked.
func Draw(w io.Writer, goal string, lines []Line, chosen Point) error {
	curves := make([]report.Curve, len(lines))
	for i, l := range lines {
		curves[i].Name = l.Name
		for _, m := range l.Marks {
			curves[i].Points = append(curves[i].Points, report.CurvePoint{X: m.C, Y: m.Score.Value, Spread: m.Score.Spread,
				Chosen: l.Name == chosen.Path() && m.C == chosen.C()})
		}
	}
	return report.WriteCurves(w, "C", goal, curves)
}
