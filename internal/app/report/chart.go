package report

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
)

// series is a line of a chart.
type series struct {
	name string
	x, y []float64
}

// These are the dimensions of a chart's frame, in the units of the picture.
const (
	chartWidth, chartHeight = 520.0, 240.0
	chartLeft, chartBottom  = 62.0, 34.0
	chartTop, chartRight    = 12.0, 12.0
)

// lineChart draws lines as SVG. With logY the y axis is logarithmic, and values that are not
// positive are skipped.
func lineChart(title, xName, yName string, logY bool, lines ...series) g.Node {
	scale := func(y float64) float64 { return y }
	if logY {
		scale = math.Log10
	}
	loX, hiX, loY, hiY := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for k := range lines {
		var kept series
		for i, y := range lines[k].y {
			if v := scale(y); !math.IsNaN(v) && !math.IsInf(v, 0) {
				kept.x, kept.y = append(kept.x, lines[k].x[i]), append(kept.y, v)
				loX, hiX, loY, hiY = min(loX, lines[k].x[i]), max(hiX, lines[k].x[i]), min(loY, v), max(hiY, v)
			}
		}
		lines[k].x, lines[k].y = kept.x, kept.y
	}
	lines = slices.DeleteFunc(lines, func(s series) bool { return len(s.x) == 0 })
	if len(lines) == 0 {
		return nil
	}
	if logY {
		loY, hiY = math.Floor(loY), math.Ceil(hiY)
	}
	if hiX == loX {
		hiX = loX + 1
	}
	if hiY == loY {
		loY, hiY = loY-0.5, hiY+0.5
	}
	px := func(x float64) float64 { return chartLeft + (x-loX)/(hiX-loX)*(chartWidth-chartLeft-chartRight) }
	py := func(y float64) float64 {
		return chartHeight - chartBottom - (y-loY)/(hiY-loY)*(chartHeight-chartBottom-chartTop)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<figure><figcaption>%s`, html.EscapeString(title))
	for k := 0; k < len(lines) && len(lines) > 1; k++ {
		fmt.Fprintf(&b, ` <span class="key k%d">%s</span>`, k%4, html.EscapeString(lines[k].name))
	}
	fmt.Fprintf(&b, `</figcaption><svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, chartWidth, chartHeight,
		html.EscapeString(title+": "+describeLines(lines, logY)))
	for _, y := range ticks(loY, hiY, logY) {
		label := strconv.FormatFloat(y, 'g', 4, 64)
		if logY {
			label = strconv.FormatFloat(math.Pow(10, y), 'g', 2, 64)
		}
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`, chartLeft, chartWidth-chartRight, py(y), py(y), chartLeft-6, py(y)+4, label)
	}
	for _, x := range ticks(loX, hiX, xName == "sweep") {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, px(x), chartHeight-chartBottom+16,
			strconv.FormatFloat(x, 'g', 4, 64))
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="end">%s</text><text x="4" y="10">%s</text>`,
		chartWidth-chartRight, chartHeight-4, html.EscapeString(xName), html.EscapeString(yName))
	for k, s := range lines {
		var points []string
		for i := range s.x {
			points = append(points, fmt.Sprintf("%.1f,%.1f", px(s.x[i]), py(s.y[i])))
		}
		fmt.Fprintf(&b, `<polyline class="line l%d" points="%s"/>`, k%4, strings.Join(points, " "))
	}
	b.WriteString("</svg></figure>")
	return g.Raw(b.String()) // its text is escaped above
}

// describeLines describes the ends of the lines in words, for readers who cannot see them.
func describeLines(lines []series, logY bool) string {
	var out []string
	for _, s := range lines {
		from, to := s.y[0], s.y[len(s.y)-1]
		if logY {
			from, to = math.Pow(10, from), math.Pow(10, to)
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s from %.3g to %.3g", s.name, from, to)))
	}
	return strings.Join(out, "; ")
}

// ticks returns about four round numbers from lo to hi.
func ticks(lo, hi float64, whole bool) (out []float64) {
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/4)))
	for _, k := range []float64{1, 2, 5, 10} {
		if (hi-lo)/(k*step) <= 5 {
			step *= k
			break
		}
	}
	if whole {
		step = max(1, math.Ceil(step))
	}
	first := math.Ceil(lo/step - 1e-9)
	for k := 0.0; (first+k)*step <= hi+1e-9*step; k++ {
		out = append(out, (first+k)*step+0) // + 0 avoids -0
	}
	return out
}
