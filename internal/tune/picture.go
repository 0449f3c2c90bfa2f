package tune

import (
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Line is a path to be drawn.
type Line struct {
	Name  string
	Marks []Mark
}

// Draw writes the values along C, one line a path with its standard errors, on a
// logarithmic axis; format is svg or png. chosen is marked.
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
			if l.Name == chosen.Path() && m.C == chosen.C {
				if err := addChosen(p, m); err != nil {
					return err
				}
			}
		}
	}
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	p.Legend.Padding = vg.Points(2)
	// Room above the lines for the legend: about a twentieth of the height an entry.
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

// palette is that of M. Okabe and K. Ito: told apart with any colour vision.
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
