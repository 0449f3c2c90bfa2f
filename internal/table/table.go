// Package table reads labelled rows from tables: CSV, TSV, JSON lines, Parquet, Arrow, and
// matrices of NumPy and SciPy. Options name the columns. A Reader streams the rows of one or
// several files in bounded memory, and reports where a broken one is.
//
// A Schema is what a model remembers: the columns, and how numbers are standardised.
package table

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"taxon/internal/human"
	"taxon/internal/lines"
)

// Columns say what the columns of a table are.
type Columns struct {
	Text     []string `json:"text,omitempty"`     // texts, joined by blanks
	Features []string `json:"features,omitempty"` // numbers, or lists of numbers
	Label    string   `json:"label,omitempty"`
	Weight   string   `json:"weight,omitempty"`
	ID       string   `json:"id,omitempty"`

	PathSeparator  string `json:"path_separator,omitempty"`  // labels are paths with this separator
	LabelSeparator string `json:"label_separator,omitempty"` // a cell may have several labels with this separator
}

// Flags are the command line's flags for the columns. Those of text and features may repeat.
func (c *Columns) Flags() (out [][2]string) {
	for _, name := range c.Text {
		out = append(out, [2]string{"text-column", name})
	}
	for _, name := range c.Features {
		if strings.ContainsAny(name, `,"`) { // the flag takes a list
			name = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
		out = append(out, [2]string{"feature-columns", name})
	}
	for _, one := range [][2]string{{"label-column", c.Label}, {"path-separator", c.PathSeparator}, {"label-separator", c.LabelSeparator},
		{"id-column", c.ID}, {"weight-column", c.Weight}} {
		if one[1] != "" {
			out = append(out, one)
		}
	}
	return out
}

// Options are Columns and how to read the file.
type Options struct {
	Columns
	Format     string // one of Formats; "": auto
	SkipBroken int64  // number of rows that may be broken, and are left out
	Labels     string // for matrices: the file with the labels; ""
}

// Formats are the file formats. auto decides by the file's name; lines is no table.
var Formats = []string{"auto", "lines", "csv", "tsv", "jsonl", "parquet", "arrow", "npy", "npz"}

// Given says whether any option is set that makes sense for tables only.
func (o *Options) Given() bool {
	c := &o.Columns
	return len(c.Text) > 0 || len(c.Features) > 0 || c.Label+c.Weight+c.ID+c.LabelSeparator != ""
}

// FormatOf is how a file is read: csv, tsv, jsonl, parquet, arrow, npy or npz; "": as lines. With
// lines, a text file with a table's name is read as lines, unless columns are given.
func (o *Options) FormatOf(file string, lines bool) string {
	switch {
	case o.Format == "lines":
		return ""
	case o.Format != "" && o.Format != "auto":
		return o.Format
	case lines && !o.Given():
		return ""
	}
	name := strings.ToLower(path.Base(file))
	for _, packed := range []string{".gz", ".zst", ".xz"} {
		name = strings.TrimSuffix(name, packed)
	}
	for ending, format := range map[string]string{".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".arrows": "arrow", ".npy": "npy", ".npz": "npz"} {
		if strings.HasSuffix(name, ending) {
			return format
		}
	}
	return ""
}

// Over returns the options, with what they leave open taken from a model's schema.
func (o Options) Over(remembered *Schema) Options {
	if remembered == nil {
		return o
	}
	r := remembered.Columns
	text, features, both := len(o.Text) > 0, len(o.Features) > 0, remembered.Both()
	if !text && (!features || both) {
		o.Text = r.Text
	}
	if !features && (!text || both) {
		o.Features = r.Features
	}
	for _, f := range []struct{ to, from *string }{
		{&o.Label, &r.Label}, {&o.ID, &r.ID}, {&o.PathSeparator, &r.PathSeparator}, {&o.LabelSeparator, &r.LabelSeparator},
	} {
		if *f.to == "" {
			*f.to = *f.from
		}
	}
	return o
}

// Check refuses options that contradict each other.
func (c *Columns) Check() error {
	seen := map[string]bool{}
	for _, name := range append(slices.Clone(c.Text), c.Features...) {
		if name != "" && name == c.Label {
			return fmt.Errorf("column %q: it is the label's, and can't be what the label is predicted from", name)
		}
		if name == "" || seen[name] {
			return fmt.Errorf("column %q: name each column once", name)
		}
		seen[name] = true
	}
	if c.PathSeparator != "" && c.PathSeparator == c.LabelSeparator {
		return errors.New("--path-separator and --label-separator are the same")
	}
	return nil
}

// Schema is what a model remembers of the table that it was trained on.
type Schema struct {
	Columns
	Widths []int     `json:"widths,omitempty"` // for Features: length of the list in each row; 0: a number, no list
	Mean   []float64 `json:"mean,omitempty"`   // by feature; 0 in lists
	Scale  []float64 `json:"scale,omitempty"`  // by feature, above 0; 1 in lists
	Matrix int64     `json:"matrix,omitempty"` // of a matrix: its columns, of several the most
}

// Standardise converts a number from the table's scale to the model's.
func (s *Schema) Standardise(index uint32, value float32) float32 {
	if s == nil {
		return value
	}
	if i := int(index) - 1; i < len(s.Mean) {
		return float32((float64(value) - s.Mean[i]) / s.Scale[i])
	}
	return value
}

// Both says whether there are words and numbers. The numbers then have the first indices, and
// terms that differ from all words.
func (s *Schema) Both() bool { return s != nil && len(s.Text) > 0 && len(s.Features) > 0 }

// Terms name the numbers, by feature: the column's name as a JSON string, in lists followed by
// the place, from 1. No word begins with a quote.
func (s *Schema) Terms() (out []string) {
	if s == nil {
		return nil
	}
	for i, name := range s.Features {
		quoted := string(lines.AppendQuoted(nil, name))
		if i >= len(s.Widths) || s.Widths[i] == 0 {
			out = append(out, quoted)
			continue
		}
		for k := range s.Widths[i] {
			out = append(out, fmt.Sprintf("%s %d", quoted, k+1))
		}
	}
	return out
}

// Column is the first feature of a number column, and how many features it has; 0: there is no
// such column.
func (s *Schema) Column(name string) (first uint32, width int) {
	if s == nil {
		return 0, 0
	}
	first = 1
	for i, w := range s.Widths {
		if s.Features[i] == name {
			return first, max(w, 1)
		}
		first += uint32(max(w, 1))
	}
	return 0, 0
}

// Hint lists the number columns for a message; "": none.
func (s *Schema) Hint() string {
	if s == nil || len(s.Features) == 0 {
		return ""
	}
	return "one of " + listed(s.Features) + ", or "
}

// IsTerm says whether an entry of a vocabulary names a number, not a word.
func IsTerm(s string) bool { return strings.HasPrefix(s, `"`) }

// Width is the number of features.
func (s *Schema) Width() (n int) {
	for _, w := range s.Widths {
		n += max(w, 1)
	}
	return n
}

// missing is the error for a column that does not exist.
func missing(name string, have []string) error {
	if near := human.Nearest(name, have); near != "" {
		return fmt.Errorf("no column %q: did you mean %q?", name, near)
	}
	if len(have) == 0 {
		return fmt.Errorf("no column %q: the rows have no columns", name)
	}
	return fmt.Errorf("no column %q: there are %s", name, listed(have))
}

// listed lists names in a message, up to a limit.
func listed(names []string) string {
	const most = 20
	var out []string
	for _, n := range names[:min(len(names), most)] {
		out = append(out, fmt.Sprintf("%q", n))
	}
	if len(names) > most {
		out = append(out, fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(out, ", ")
}
