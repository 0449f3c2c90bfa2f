package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"
)

// Curve is a line of WriteCurves. Its points are in order of X, which is positive.
type Curve struct {
	Name   string
	Points []CurvePoint
}

// CurvePoint is a point of a Curve. Spread is its standard error: the error bar extends from
// Y-Spread to Y+Spread. A Chosen point is marked with a ring.
type CurvePoint struct {
	X, Y, Spread float64
	Chosen       bool
}

// curveColors is the palette of M. Okabe and K. Ito, whose colours can be told apart with any
// colour vision.
var curveColors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// These are the dimensions of the picture, in its own units. The legend is above the axes, with a
// row per entry.
const (
	curvesWidth, curvesPlot = 640.0, 360.0
	curvesLeft, curvesRight = 70.0, 20.0
	curvesTop, curvesBottom = 20.0, 46.0
	curvesRow               = 16.0
)

// WriteCurves draws curves with error bars over a logarithmic X axis, as an SVG document. A legend
// names the curves unless there are more curves than colours.
func WriteCurves(w io.Writer, xName, yName string, curves []Curve) error {
	legend := make([]string, 0, len(curves))
	for _, c := range curves {
		if len(curves) <= len(curveColors) {
			legend = append(legend, c.Name)
		}
	}
	top := curvesTop + curvesRow*float64(len(legend)+1)
	bottom := top + curvesPlot
	loX, hiX, loY, hiY := curveBounds(curves)
	px := func(x float64) float64 {
		return curvesLeft + (math.Log10(x)-loX)/(hiX-loX)*(curvesWidth-curvesLeft-curvesRight)
	}
	py := func(y float64) float64 { return bottom - (y-loY)/(hiY-loY)*curvesPlot }

	var b strings.Builder
	title := html.EscapeString(yName + " by " + xName)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%[1]g" height="%[2]g" role="img"`+
		` aria-label="%s" font-family="sans-serif" font-size="12" fill="#222">
<title>%[3]s</title>
<rect width="100%%" height="100%%" fill="#fff"/>
`, curvesWidth, bottom+curvesBottom, title)
	for _, y := range ticks(loY, hiY, false) {
		fmt.Fprintf(&b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/>`+
			`<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			curvesLeft, py(y), curvesWidth-curvesRight, curvesLeft-8, py(y)+4, strconv.FormatFloat(y, 'g', 4, 64))
	}
	for _, x := range logTicks(loX, hiX) {
		fmt.Fprintf(&b, `<path d="M%.1f %.1fV%.1f" stroke="#ddd"/>`+
			`<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n",
			px(x), top, bottom, px(x), bottom+18, strconv.FormatFloat(x, 'g', 4, 64))
	}
	fmt.Fprintf(&b, `<path d="M%.1f %.1fV%.1fH%.1f" fill="none" stroke="#222"/>`+"\n",
		curvesLeft, top, bottom, curvesWidth-curvesRight)
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`,
		(curvesLeft+curvesWidth-curvesRight)/2, bottom+38, html.EscapeString(xName))
	fmt.Fprintf(&b, `<text transform="translate(16 %.1f) rotate(-90)" text-anchor="middle">%s</text>`+"\n",
		(top+bottom)/2, html.EscapeString(yName))

	for i, c := range curves {
		color := curveColors[i%len(curveColors)]
		var line, bars, marks strings.Builder
		for k, p := range c.Points {
			step := 'L'
			if k == 0 {
				step = 'M'
			}
			fmt.Fprintf(&line, "%c%.1f %.1f", step, px(p.X), py(p.Y))
			fmt.Fprintf(&bars, "M%.1f %.1fV%.1f", px(p.X), py(p.Y-p.Spread), py(p.Y+p.Spread))
			fmt.Fprintf(&marks, `<circle cx="%.1f" cy="%.1f" r="3"/>`, px(p.X), py(p.Y))
			if p.Chosen {
				fmt.Fprintf(&marks, `<circle cx="%.1f" cy="%.1f" r="8" fill="none" stroke="#000"/>`, px(p.X), py(p.Y))
			}
		}
		fmt.Fprintf(&b, `<g fill="%s" stroke="%[1]s"><title>%s</title><path d="%s" fill="none"/><path d="%s"/>%s</g>`+"\n",
			color, html.EscapeString(c.Name), line.String(), bars.String(), marks.String())
	}
	for i, name := range legend {
		y := curvesTop + curvesRow*float64(i)
		fmt.Fprintf(&b, `<path d="M%.1f %.1fh24" stroke="%s"/><text x="%.1f" y="%.1f">%s</text>`+"\n",
			curvesLeft, y, curveColors[i], curvesLeft+32, y+4, html.EscapeString(name))
	}
	y := curvesTop + curvesRow*float64(len(legend))
	fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="6" fill="none" stroke="#000"/>`+
		`<text x="%.1f" y="%.1f">chosen</text>`+"\n</svg>\n",
		curvesLeft+12, y, curvesLeft+32, y+4)
	_, err := io.WriteString(w, b.String())
	return err
}

// curveBounds returns the ranges of the axes. The first is the range of the logarithm of X, with a
// margin at both ends. The second is the range of Y including the error bars.
func curveBounds(curves []Curve) (loX, hiX, loY, hiY float64) {
	loX, hiX, loY, hiY = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, c := range curves {
		for _, p := range c.Points {
			x := math.Log10(p.X)
			loX, hiX, loY, hiY = min(loX, x), max(hiX, x), min(loY, p.Y-p.Spread), max(hiY, p.Y+p.Spread)
		}
	}
	if !(hiY > loY) {
		loY, hiY = loY-0.5, hiY+0.5
	}
	const room = 0.15 // decades
	return loX - room, hiX + room, loY, hiY
}

// logTicks returns the powers of ten whose logarithms are in [lo, hi]. If there would be fewer than
// three, it adds 2 and 5 times these powers.
func logTicks(lo, hi float64) []float64 {
	for _, factors := range [][]float64{{1}, {1, 2, 5}} {
		var out []float64
		for d := math.Floor(lo); d <= hi; d++ {
			for _, f := range factors {
				if x := f * math.Pow(10, d); math.Log10(x) >= lo && math.Log10(x) <= hi {
					out = append(out, x)
				}
			}
		}
		if len(out) >= 3 || len(factors) > 1 {
			return out
		}
	}
	return nil
}
