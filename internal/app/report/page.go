package report

import (
	_ "embed"
	"fmt"
	"io"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"taxon/internal/model/measure"
	"taxon/internal/ui/format"
)

var (
	//go:embed report.css
	style string
	//go:embed report.js
	script string
)

// contentPolicy keeps the page from loading anything.
const contentPolicy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"

// writePage writes the view as one HTML page that refers to no other file.
func writePage(w io.Writer, v *view) error {
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(g.Attr("http-equiv", "Content-Security-Policy"), h.Content(contentPolicy)),
			h.TitleEl(g.Text(v.Name+": report of taxon")),
			h.StyleEl(g.Raw(style)),
		),
		h.Body(
			v.header(),
			h.Main(
				section("certificate", "Certificate", h.P(h.Class("big"), g.Text(v.Certificate)), charts(v.Charts...)),
				g.Iff(v.Result != nil, v.results),
				section("facts", "Data and options", h.Dl(g.Map(v.Facts, func(f fact) g.Node {
					return g.Group{h.Dt(g.Text(f.Name)), h.Dd(g.Text(f.Value))}
				}))),
				section("again", "Once more", h.P(g.Text("The same data, options and seed give the same weights, to the byte.")),
					g.Map(v.Again, func(command string) g.Node { return h.P(h.Code(g.Text(command))) })),
			),
			h.Script(g.Raw(script)),
		),
	)).Render(w)
}

// header returns the title and the properties of the model.
func (v *view) header() g.Node {
	link := func(id, text string) g.Node { return h.A(h.Href("#"+id), g.Text(text)) }
	return h.Header(h.H1(g.Text(v.Name)), h.P(h.Class("soft"), g.Text("A model of taxon: "+v.Method)),
		h.Nav(h.Aria("label", "Parts"), link("certificate", "Certificate"),
			g.If(v.Result != nil, g.Group{link("measures", "Measures"), link("classes", "Classes"),
				g.If(len(v.Confusion) > 0, link("confusion", "Confusion")),
				g.If(len(v.Worst) > 0, link("worst", "Worst mistakes")),
				g.If(len(v.Others) > 0, link("others", "Against others"))}),
			link("facts", "Data and options"), link("again", "Once more")))
}

// results returns the sections about the test data.
func (v *view) results() g.Node {
	return g.Group{
		section("measures", "Measures on "+v.Data,
			h.P(g.Text(instances(v.Result.Instances)+". Figures without another unit are in percent.")),
			wide(h.Table(head(text("Measure"), number("Value"), text("What it means")), h.TBody(
				g.Map(v.Measures, func(m figure) g.Node {
					return h.Tr(named(m.Name), numeral(m.Value), h.Td(g.Text(m.Means)))
				})))),
			h.Div(h.Class("charts"), v.bySize(), v.byLevel(), v.Reliability)),
		v.classes(),
		g.If(len(v.Confusion) > 0, section("confusion", "Where in the hierarchy mistakes happen",
			h.P(g.Text("At each node: the mistakes at or below it, those whose ways part right there, and which of its "+
				"children are taken for which.")),
			g.Map(v.Confusion, (*place).node))),
		g.Iff(len(v.Worst) > 0, v.mistakes),
		g.Iff(len(v.Others) > 0, v.comparisons),
	}
}

func (v *view) bySize() g.Node {
	return g.If(len(v.Result.BySize) > 0, h.Figure(h.Table(
		h.Caption(g.Text("Macro-F1 by the number of training documents of a class")),
		head(text("Documents"), number("Classes"), number("Macro-F1"), scale()),
		h.TBody(g.Map(v.Result.BySize, func(b measure.Size) g.Node {
			return h.Tr(named(sizes(b)), numeral(b.Classes), numeral(percent(b.MacroF1)), bar(b.MacroF1))
		})))))
}

func (v *view) byLevel() g.Node {
	return g.If(len(v.Result.ByLevel) > 0, h.Figure(h.Table(
		h.Caption(g.Text("By level of the hierarchy, 1 being the top: right down to there")),
		head(text("Level"), number("Classes"), number("F1"), number("Macro-F1"), scale()),
		h.TBody(g.Map(v.Result.ByLevel, func(l measure.Level) g.Node {
			return h.Tr(named(fmt.Sprint(l.Level)), numeral(l.Classes), numeral(percent(l.F1)), numeral(percent(l.MacroF1)),
				bar(l.F1))
		})))))
}

func (v *view) classes() g.Node {
	button := func(name string) g.Node { return h.Button(g.Text(name)) }
	sorted := func(name string) g.Node { return h.Th(h.Scope("col"), h.Class("n"), button(name)) }
	return section("classes", "Classes",
		h.P(h.Class("filter"), h.Label(g.Text("Show classes that contain "), h.Input(h.ID("filter"), h.Type("search")))),
		wide(h.Table(h.ID("table"),
			h.Caption(g.Text("Of each class: how many instances had it and were given it, and what they were taken for "+
				"instead. A button in the head sorts.")),
			head(h.Th(h.Scope("col"), button("Class")), sorted("Trained on"), sorted("Instances"), sorted("Given"),
				sorted("Precision"), sorted("Recall"), sorted("F1"), h.Th(h.Scope("col"), button("Mistaken for"))),
			h.TBody(g.Map(v.Classes, func(c classView) g.Node {
				return h.Tr(named(c.Label), numeral(c.Trained), numeral(c.Instances), numeral(c.Predicted),
					numeral(percent(c.Precision)), numeral(percent(c.Recall)), numeral(percent(c.F1)), h.Td(g.Text(c.Instead)))
			})))))
}

// node returns the HTML of a place. The places below it are shown when the reader unfolds it.
func (p *place) node() g.Node {
	summary := counted(p.Inside, "mistake", "mistakes")
	if p.Instances > 0 {
		summary += " of " + instances(p.Instances)
	}
	summary += ", " + format.Count(p.Parts) + " part here"
	return h.Details(g.If(p.Top, g.Attr("open")),
		h.Summary(g.Text(p.Name+" "), h.Span(h.Class("soft"), g.Text(summary))),
		g.Map(p.Pairs, func(pair string) g.Node { return h.P(g.Text(pair)) }),
		g.Map(p.Below, (*place).node))
}

func (v *view) mistakes() g.Node {
	return section("worst", "Worst mistakes",
		h.P(g.Text("Those furthest off in the hierarchy, the surest first; and what spoke for the class given and for the "+
			"true one.")),
		wide(h.Table(head(number("Row"), text("True"), text("Given"), number("Steps apart"), text("Why")), h.TBody(
			g.Map(v.Worst, func(w worst) g.Node {
				return h.Tr(numeral(w.Row), h.Td(g.Text(w.Truth)), h.Td(h.Class("bad"), g.Text(w.Predicted)), numeral(w.Steps),
					h.Td(g.Map(w.Why, func(l levelPair) g.Node {
						return h.Div(h.Span(h.Class("soft"), g.Text(l.What+":")), g.Text(" "+l.Features))
					})))
			})))))
}

func (v *view) comparisons() g.Node {
	return section("others", "Against others",
		h.P(g.Text("p is the chance of a difference as large if both were equally good: the sign test over decisions for "+
			"micro-F1, Wilcoxon's signed-rank test over the classes' F1 for macro-F1. Below 0.05 a difference counts as sure.")),
		wide(h.Table(head(text("Model"), number("Micro-F1"), number("Macro-F1"), number("p, micro"), number("p, macro"),
			text("So")), h.TBody(
			h.Tr(named(v.Name), numeral(percent(v.Result.MicroF1)), numeral(percent(v.Result.MacroF1)), h.Td(), h.Td(),
				h.Td(g.Text("this one"))),
			g.Map(v.Others, func(o other) g.Node {
				r := o.Result
				return h.Tr(named(o.Name), numeral(percent(r.Other.MicroF1)), numeral(percent(r.Other.MacroF1)),
					numeral(chance(r.SignTest.P)), numeral(chance(r.Wilcoxon.P)), h.Td(g.Text(verdict(r.SignTest))))
			})))))
}

// The elements of the page.

func section(id, title string, children ...g.Node) g.Node {
	return h.Section(h.ID(id), h.H2(g.Text(title)), g.Group(children))
}

func charts(figures ...g.Node) g.Node { return h.Div(h.Class("charts"), g.Group(figures)) }

func wide(table g.Node) g.Node { return h.Div(h.Class("wide"), table) }

func head(cells ...g.Node) g.Node { return h.THead(h.Tr(g.Group(cells))) }

func text(title string) g.Node { return h.Th(h.Scope("col"), g.Text(title)) }

func number(title string) g.Node { return h.Th(h.Scope("col"), h.Class("n"), g.Text(title)) }

func scale() g.Node { return h.Th(h.Scope("col"), h.Span(h.Class("soft"), g.Text("0 to 100"))) }

func named(name string) g.Node { return h.Th(h.Scope("row"), g.Text(name)) }

func numeral(n any) g.Node { return h.Td(h.Class("n"), g.Text(fmt.Sprint(n))) }

func bar(share float64) g.Node {
	return h.Td(h.Span(h.Class("bar"), h.Style("width:"+percent(share)+"%")))
}

func percent(share float64) string { return fmt.Sprintf("%.1f", 100*share) }

func counted[N int | int64](n N, one, several string) string {
	return format.Counted(int64(n), one, several)
}

func instances[N int | int64](n N) string { return counted(n, "instance", "instances") }

// sizes describes the range of training documents of a bin's classes.
func sizes(b measure.Size) string {
	switch {
	case b.To == nil:
		return fmt.Sprintf("%d or more", b.From)
	case *b.To == b.From:
		return fmt.Sprint(b.From)
	}
	return fmt.Sprintf("%d to %d", b.From, *b.To)
}

// chance describes the p-value of a test.
func chance(p float64) string {
	if p < 1e-4 {
		return "< 0.0001"
	}
	return fmt.Sprintf("%.2g", p)
}

// verdict says which of two models is better, if the test is significant.
func verdict(t *measure.SignTest) string {
	switch {
	case t.P >= 0.05:
		return "no sure difference"
	case t.Plus > t.Minus:
		return "this one is better"
	}
	return "the other is better"
}
