package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// howTo and limits are the parts of a card that are the same for every model.
const (
	howTo = "## How to use it\n\n" +
		"```sh\n" +
		"taxon predict --model MODEL --data %[1]s%[2]s --out labels.txt\n" +
		"taxon explain --model MODEL --data %[1]s\n" +
		"```\n\n" +
		"```python\nimport taxon\n\nmodel = taxon.load(\"MODEL\")\nmodel.predict(%[3]s)\n```\n\n"
	limits = "## Limits\n\n" +
		"It knows the classes of its training data and gives some of them to any instance, also to one that is of none. " +
		"Classes with few instances rest on their neighbours in the\n" +
		"hierarchy. What it was trained for, by whom, under which licence, and what is unfair or rare in its data, only " +
		"those can add who made it.\n\n"
)

// writeCard writes the view as a model card, as model hubs read them: figures in YAML, then Markdown.
func writeCard(w io.Writer, v *view) error {
	var b strings.Builder
	v.metadata(&b)
	fmt.Fprintf(&b, "# %s\n\nA linear classifier of %s classes", cell(v.Short()), format.Count(int64(v.Report.Terminals)))
	if v.Hierarchical {
		b.WriteString(" that stand in a hierarchy")
	}
	fmt.Fprintf(&b, ", trained by taxon: %s.\n\n## Certificate\n\n%s\n\n", cell(v.Method), cell(v.Certificate))
	data, text, rows := "DATA", "", "X"
	if v.Task == textTask {
		data, text, rows = "TEXTS", " ‹text›", `["a text"]`
	}
	fmt.Fprintf(&b, howTo, data, option.Flags(text), rows)
	b.WriteString(limits)
	b.WriteString("## Training\n\n| | |\n| --- | --- |\n")
	for _, f := range v.Facts {
		fmt.Fprintf(&b, "| %s | %s |\n", cell(f.Name), cell(f.Value))
	}
	v.figures(&b)
	fmt.Fprintf(&b, "\n## Again\n\n```sh\n%s\n```\n", v.Again[0])
	_, err := io.WriteString(w, b.String())
	return err
}

// metadata writes the card's YAML.
func (v *view) metadata(b *strings.Builder) {
	fmt.Fprintf(b, "---\nlibrary_name: taxon\npipeline_tag: %s\ntags: [taxon, hierarchical-classification, linear-model, "+
		"%s]\n", v.Task, v.Report.Method)
	if v.Result != nil {
		name := quoted(v.DataName())
		fmt.Fprintf(b, "model-index:\n- name: %s\n  results:\n  - task: {type: %s}\n    dataset: {name: %s, type: %s}\n"+
			"    metrics:\n", quoted(v.Short()), v.Task, name, name)
		for _, m := range v.Measures {
			fmt.Fprintf(b, "    - {type: %[1]s, name: %[1]s, value: %[2]s}\n", quoted(m.Name), m.Value)
		}
	}
	b.WriteString("---\n\n")
}

// figures writes the tables of measures, if there are any.
func (v *view) figures(b *strings.Builder) {
	if v.Result == nil {
		return
	}
	fmt.Fprintf(b, "\n## Results on %s\n\n%s. Figures without another unit are in percent.\n\n"+
		"| measure | value | |\n| --- | ---: | --- |\n", cell(v.DataName()), instances(v.Result.Instances))
	for _, m := range v.Measures {
		fmt.Fprintf(b, "| %s | %s | %s |\n", m.Name, m.Value, m.Means)
	}
	if len(v.Result.BySize) > 0 {
		b.WriteString("\n| documents of a class in training | classes | macro-F1 |\n| --- | ---: | ---: |\n")
	}
	for _, s := range v.Result.BySize {
		fmt.Fprintf(b, "| %s | %d | %s |\n", sizes(s), s.Classes, percent(s.MacroF1))
	}
}

// quoted returns s as a JSON string, which is also valid YAML.
func quoted(s string) string {
	b, _ := json.Marshal(s) // a string never fails
	return string(b)
}

// cell escapes text for a table of Markdown.
var cell = strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ", "*", `\*`, "_", `\_`, "`", "\\`").Replace
