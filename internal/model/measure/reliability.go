package measure

import (
	"fmt"
	"html"
	"io"
	"strings"

	"taxon/internal/ui/format"
)

// Bin is a bin of a reliability diagram and of the ECE. It contains the probabilities from Low to
// below High. The last bin includes High.
type Bin struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Count is the number of probabilities.
	Count int64 `json:"count"`
	// Confidence is the mean of the probabilities. It is nil if Count is 0.
	Confidence *float64 `json:"confidence"`
	// Accuracy is the share of the probabilities whose label is true. It is nil if Count is 0.
	Accuracy *float64 `json:"accuracy"`
}

func (b *bins) table() []Bin {
	table := make([]Bin, len(b))
	for i, k := range b {
		table[i] = Bin{Low: float64(i) / calibrationBins, High: float64(i+1) / calibrationBins, Count: int64(k.count)}
		if k.count > 0 {
			confidence, accuracy := k.sum/k.count, k.right/k.count
			table[i].Confidence, table[i].Accuracy = &confidence, &accuracy
		}
	}
	return table
}

// These are the dimensions of the picture, in its own units.
const (
	// diagramSide is the side of the square from probability 0 to 1.
	diagramSide   = 480
	diagramLeft   = 60
	diagramTop    = 70
	diagramWidth  = diagramLeft + diagramSide + 25
	diagramHeight = diagramTop + diagramSide + 60
)

// WriteReliability draws the reliability diagram of a result with probabilities, as SVG. Each bin
// has a bar whose height is its accuracy, with the number of probabilities above it and a mark at
// their mean. The bars of a perfectly calibrated model end on the diagonal. what names the model
// and the data. The picture's description contains all its numbers.
func (r *Result) WriteReliability(w io.Writer, what string) error {
	x := func(p float64) float64 { return diagramLeft + diagramSide*p }
	y := func(p float64) float64 { return diagramTop + diagramSide*(1-p) }
	title := html.EscapeString(fmt.Sprintf("Reliability diagram, ECE %.4f", r.ECE))
	var description, s strings.Builder
	for _, b := range r.Reliability {
		if b.Count > 0 {
			fmt.Fprintf(&description, " %s.", b.describe())
		}
	}
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%d" role="img" aria-labelledby="title desc" font-family="sans-serif" font-size="12" fill="#222">
<title id="title">%s</title>
<desc id="desc">%s.%s</desc>
<rect width="100%%" height="100%%" fill="#fff"/>
<text x="%d" y="24" font-size="16">%[3]s</text>
<text x="%[6]d" y="44" fill="#555">%[4]s</text>
`, diagramWidth, diagramHeight, title, html.EscapeString(what), description.String(), diagramLeft)
	for i := range 6 {
		p := float64(i) / 5
		fmt.Fprintf(&s, `<path d="M%g %gH%g" stroke="#ddd"/><text x="%g" y="%g" text-anchor="end">%.1f</text><text x="%g" y="%g" text-anchor="middle">%.1f</text>`+"\n",
			x(0), y(p), x(1), x(0)-8, y(p)+4, p, x(p), y(0)+18, p)
	}
	for _, b := range r.Reliability {
		if b.Count == 0 {
			continue
		}
		fmt.Fprintf(&s, `<g><title>%s</title><rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="#56b4e9" stroke="#fff"/>`,
			b.describe(), x(b.Low), y(*b.Accuracy), x(b.High)-x(b.Low), y(0)-y(*b.Accuracy))
		fmt.Fprintf(&s, `<path d="M%.1f %.1fH%.1f" stroke="#d55e00" stroke-width="3"/>`, x(b.Low)+4, y(*b.Confidence),
			x(b.High)-4)
		// The count is written vertically, because it may be longer than a bar is wide. If the bar
		// ends at the top, the count hangs from there.
		middle, end := (x(b.Low)+x(b.High))/2, max(min(y(*b.Accuracy), y(*b.Confidence))-6, diagramTop+70)
		fmt.Fprintf(&s, `<text transform="translate(%.1f %.1f) rotate(-90)">%s</text></g>`+"\n", middle+4, end,
			format.Count(b.Count))
	}
	fmt.Fprintf(&s, `<path d="M%g %gL%g %g" stroke="#222" stroke-dasharray="5 4"/>
<path d="M%[1]g %[4]gV%[2]gH%[3]g" fill="none" stroke="#222"/>
<text x="%[5]g" y="%[6]g" text-anchor="middle">probability given (orange: mean of the bin; numbers: how many)</text>
<text transform="translate(18 %[7]g) rotate(-90)" text-anchor="middle">share that came true</text>
</svg>
`, x(0), y(0), x(1), y(1), x(0.5), y(0)+44, y(0.5))
	_, err := io.WriteString(w, s.String())
	return err
}

// describe describes a bin that has probabilities in words.
func (b *Bin) describe() string {
	return fmt.Sprintf("%.3f to %.3f: %s, mean %.3f, came true %.3f", b.Low, b.High,
		format.Counted(b.Count, "probability", "probabilities"), *b.Confidence, *b.Accuracy)
}
