package tune

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Mark is a point of a path as it is drawn.
type Mark struct {
	C     float64
	Score Score
}

// sketchHeight and sketchColumn are the size of a Sketch in characters.
const (
	sketchHeight = 9
	sketchColumn = 8
)

// Sketch draws the values along C as text: o a point, * the one chosen, | its standard
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

// centred is a word in the middle of a column.
func centred(word string) string {
	left := max(sketchColumn/2-len(word)/2, 0)
	return strings.Repeat(" ", left) + word + strings.Repeat(" ", max(sketchColumn-left-len(word), 0))
}

// Line is a path to draw.
type Line struct {
	Name  string
	Marks []Mark
}

// Draw draws the values along C, one line a path, with standard errors and a logarithmic axis, as
// svg or png. The chosen point is marked.
func Draw(w io.Writer, format, goal string, lines []Line, chosen Point) error {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "C", goal
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	for i, l := range lines {
		if err := addLine(p, l, palette[i%len(palette)], len(lines) <= len(palette)); err != nil {
			return err
		}
		for _, m := range l.Marks {
			if l.Name == chosen.Path() && m.C == chosen.C() {
				if err := addChosen(p, m); err != nil {
					return err
				}
			}
		}
	}
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	p.Legend.Padding = vg.Points(2)
	// Room above the lines for the legend: about a twentieth of the height for each entry.
	if entries := min(len(lines), len(palette)) + 1; p.Y.Max > p.Y.Min {
		p.Y.Max += (p.Y.Max - p.Y.Min) * 0.06 * float64(entries)
	}
	picture, err := p.WriterTo(18*vg.Centimeter, 11*vg.Centimeter, format)
	if err != nil {
		return err
	}
	_, err = picture.WriteTo(w)
	return err
}

// palette is that of M. Okabe and K. Ito, which can be told apart with any colour vision.
var palette = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255}, color.RGBA{204, 121, 167, 255},
	color.RGBA{230, 159, 0, 255}, color.RGBA{86, 180, 233, 255}, color.RGBA{0, 0, 0, 255},
}

// marks is a path as the plotter reads it.
type marks []Mark

func (m marks) Len() int                         { return len(m) }
func (m marks) XY(i int) (x, y float64)          { return m[i].C, m[i].Score.Value }
func (m marks) YError(i int) (low, high float64) { return m[i].Score.Spread, m[i].Score.Spread }

func addLine(p *plot.Plot, l Line, c color.Color, named bool) error {
	line, points, err := plotter.NewLinePoints(marks(l.Marks))
	if err != nil {
		return err
	}
	bars, err := plotter.NewYErrorBars(marks(l.Marks))
	if err != nil {
		return err
	}
	line.Color, points.Color, bars.Color = c, c, c
	points.Shape = draw.CircleGlyph{}
	p.Add(line, points, bars)
	if named {
		p.Legend.Add(l.Name, line, points)
	}
	p.X.Min, p.X.Max = math.Min(p.X.Min, l.Marks[0].C/1.5), math.Max(p.X.Max, l.Marks[len(l.Marks)-1].C*1.5)
	return nil
}

func addChosen(p *plot.Plot, m Mark) error {
	ring, err := plotter.NewScatter(marks{m})
	if err != nil {
		return err
	}
	ring.Shape, ring.Radius, ring.Color = draw.RingGlyph{}, vg.Points(7), color.Black
	p.Add(ring)
	p.Legend.Add("chosen", ring)
	return nil
}
