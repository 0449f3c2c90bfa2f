// Package table reads labelled rows from tables: CSV, TSV, JSON lines, Parquet, Arrow, and
// matrices of NumPy and SciPy. Options name the columns. A Reader streams the rows of one or
// several files in bounded memory, and reports where a broken one is.
//
// A Schema is what a model remembers: the columns, and how numbers are standardised.
package table

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"taxon/internal/data/textio"
	"taxon/internal/ui/format"
)

// Columns say what the columns of a table are.
type Columns struct {
	Text         []string `json:"text,omitempty"`     // texts, joined by blanks
	Features     []string `json:"features,omitempty"` // numbers, or lists of numbers
	Label        string   `json:"label,omitempty"`
	LabelColumns []string `json:"label_columns,omitempty"` // instead: a label each, which the rows with 1 have
	LevelColumns []string `json:"level_columns,omitempty"` // instead: the parts of the label's path, from the top
	Weight       string   `json:"weight,omitempty"`
	ID           string   `json:"id,omitempty"`

	PathSeparator  string `json:"path_separator,omitempty"`  // labels are paths with this separator
	LabelSeparator string `json:"label_separator,omitempty"` // a cell may have several labels with this separator
	Delimiter      string `json:"delimiter,omitempty"`       // between the cells of CSV; "": a comma
	Header         string `json:"header,omitempty"`          // of CSV and TSV: NoHeader, or WithHeader or ""
}

// Values of Columns.Header.
const (
	WithHeader = "yes" // line 1 names the columns
	NoHeader   = "no"  // it is a row, and the columns are named 1, 2, ...
)

// Flags are the command line's flags for the columns. Those of text and features may repeat.
func (c *Columns) Flags() (out [][2]string) {
	for _, name := range c.Text {
		out = append(out, [2]string{"text-column", name})
	}
	for _, list := range []struct {
		flag  string
		names []string
	}{{"feature-columns", c.Features}, {"label-columns", c.LabelColumns}, {"level-columns", c.LevelColumns}} {
		for _, name := range list.names {
			if strings.ContainsAny(name, `,"`) { // the flag takes a list
				name = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
			}
			out = append(out, [2]string{list.flag, name})
		}
	}
	for _, one := range [][2]string{{"label-column", c.Label}, {"path-separator", c.PathSeparator},
		{"label-separator", c.LabelSeparator},
		{"id-column", c.ID}, {"weight-column", c.Weight}, {"delimiter", c.Delimiter}, {"header", c.Header}} {
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

// Lines is the format that is no table.
const Lines = "lines"

// Formats are the file formats. auto decides by the file's name; lines is no table.
var Formats = []string{"auto", Lines, "csv", "tsv", "jsonl", "parquet", "arrow", "npy", "npz"}

// Given says whether any option is set that makes sense for tables only.
func (o *Options) Given() bool {
	c := &o.Columns
	return len(c.Text)+len(c.Features)+len(c.LabelColumns)+len(c.LevelColumns) > 0 ||
		c.Label+c.Weight+c.ID+c.LabelSeparator+c.Delimiter+c.Header != ""
}

// FormatOf is how a file is read: csv, tsv, jsonl, parquet, arrow, npy or npz; "": as lines. With
// lines, a text file with a table's name is read as lines, unless columns are given.
func (o *Options) FormatOf(file string, lines bool) string {
	switch {
	case o.Format == Lines:
		return ""
	case o.Format != "" && o.Format != "auto":
		return o.Format
	case lines && !o.Given():
		return ""
	}
	name := strings.ToLower(path.Base(file))
	for _, packed := range []string{".gz", ".bz2", ".zst", ".xz"} {
		name = strings.TrimSuffix(name, packed)
	}
	for ending, format := range map[string]string{".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
		".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".arrows": "arrow", ".npy": "npy",
		".npz": "npz"} {
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
	if len(o.LabelColumns)+len(o.LevelColumns) == 0 && o.Label == "" {
		o.Label, o.LabelColumns, o.LevelColumns = r.Label, r.LabelColumns, r.LevelColumns
	}
	for _, f := range []struct{ to, from *string }{
		{&o.Delimiter, &r.Delimiter}, {&o.Header, &r.Header}, {&o.ID, &r.ID}, {&o.PathSeparator, &r.PathSeparator},
		{&o.LabelSeparator, &r.LabelSeparator},
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
	labels := slices.Concat(c.LabelColumns, c.LevelColumns, []string{c.Label})
	for _, name := range slices.Concat(c.Text, c.Features, c.LabelColumns, c.LevelColumns) {
		if name != "" && slices.Contains(labels, name) && slices.Contains(slices.Concat(c.Text, c.Features), name) {
			return fmt.Errorf("column %q: it is the label's, and can't be what the label is predicted from", name)
		}
		if name == "" || seen[name] {
			return fmt.Errorf("column %q: name each column once", name)
		}
		seen[name] = true
	}
	if c.PathSeparator != "" && c.PathSeparator == c.LabelSeparator {
		return errors.New("‹path-separator› and ‹label-separator› are the same")
	}
	ways := 0
	for _, given := range []bool{c.Label != "", len(c.LabelColumns) > 0, len(c.LevelColumns) > 0} {
		if given {
			ways++
		}
	}
	d, size := utf8.DecodeRuneInString(c.Delimiter)
	switch {
	case ways > 1:
		return errors.New("‹label-column›, ‹label-columns› and ‹level-columns› are three ways to say where the " +
			"labels are: use one")
	case len(c.LevelColumns) > 0 && c.PathSeparator == "":
		return errors.New("‹level-columns› needs ‹path-separator›: what stands between the levels in a class's " +
			"name, as in ' > '")
	case len(c.LabelColumns)+len(c.LevelColumns) > 0 && c.LabelSeparator != "":
		return errors.New("‹label-separator› is for the cells of ‹label-column›")
	case size != len(c.Delimiter) || c.Delimiter != "" && (d == '"' || d == '\r' || d == '\n' || d == utf8.RuneError ||
		d == 0):
		return fmt.Errorf("‹delimiter=%q›: must be one character, and no quote or line end", c.Delimiter)
	}
	return nil
}

// Schema is what a model remembers of the table that it was trained on.
type Schema struct {
	Columns
	// for Features: length of the list in each row; 0: a number, no list
	Widths []int     `json:"widths,omitempty"`
	Mean   []float64 `json:"mean,omitempty"`   // by feature; 0 in lists
	Scale  []float64 `json:"scale,omitempty"`  // by feature, above 0; 1 in lists
	Matrix int64     `json:"matrix,omitempty"` // of a matrix: its columns, of several the most

	Constant []string `json:"constant,omitempty"` // of Features: those that are the same in all rows
}

// Check refuses a schema that does not describe data with these features, by their numbers from 1, and with
// texts or without. No file that holds one is believed.
func (s *Schema) Check(text bool, features []uint32) error {
	width := 0
	for i, w := range s.Widths {
		if w < 0 || w > len(s.Mean) {
			return fmt.Errorf("the list of column %d has %d entries, of %d numbers in all", i+1, w, len(s.Mean))
		}
		width += max(w, 1)
	}
	switch {
	case len(s.Widths) != len(s.Features):
		return fmt.Errorf("%d widths for %d columns of numbers", len(s.Widths), len(s.Features))
	case len(s.Mean) != width || len(s.Scale) != width:
		return fmt.Errorf("%d means and %d scales for %d numbers", len(s.Mean), len(s.Scale), width)
	case len(s.Text) > 0 && !text:
		return errors.New("columns of texts, and no vocabulary")
	case s.Matrix < 0 || s.Matrix > math.MaxInt32:
		return fmt.Errorf("a matrix of %d columns", s.Matrix)
	}
	for i, scale := range s.Scale {
		if mean := s.Mean[i]; mean-mean != 0 || !(scale > 0) || math.IsInf(scale, 1) {
			return fmt.Errorf("number %d has the mean %g and the scale %g", i+1, mean, scale)
		}
	}
	last := cmp.Or(int64(width), s.Matrix)
	for _, f := range features {
		if !text && (f < 1 || int64(f) > last) {
			return fmt.Errorf("feature %d of %d numbers", f, last)
		}
	}
	return s.Columns.Check()
}

// Standardise converts a number from the table's scale to the model's. It is rounded to float32 last,
// because what is left of a large number without its mean would be lost.
func (s *Schema) Standardise(index uint32, value float64) float32 {
	if s != nil && int(index) <= len(s.Mean) {
		value = (value - s.Mean[index-1]) / s.Scale[index-1]
	}
	return float32(value)
}

// HasColumns says whether the training data are tables with named columns, not matrices.
func (s *Schema) HasColumns() bool { return s != nil && len(s.Text)+len(s.Features) > 0 }

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
		quoted := string(textio.AppendQuoted(nil, name))
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

// Warnings are what a user should know about the columns, and the labels found in them.
func (s *Schema) Warnings(labels []string) (out []string) {
	if s == nil {
		return nil
	}
	if len(s.Constant) > 0 {
		out = append(out, "columns left out, because all rows that have a number there have the same: "+Listed(s.Constant))
	}
	if lists := s.Lists(labels); len(lists) > 0 {
		out = append(out, fmt.Sprintf("%s (%s)", ListsMean, Listed(lists[:min(len(lists), 3)])))
	}
	return out
}

// Hint lists the number columns for a message; "": none.
func (s *Schema) Hint() string {
	if s == nil || len(s.Features) == 0 {
		return ""
	}
	return "one of " + Listed(s.Features) + ", or "
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
	if near := format.Nearest(name, have); near != "" {
		return fmt.Errorf("no column %q: did you mean %q?", name, near)
	}
	if len(have) == 0 {
		return fmt.Errorf("no column %q: the rows have no columns", name)
	}
	return fmt.Errorf("no column %q: there are %s", name, Listed(have))
}

// Listed lists names in a message, up to a limit.
func Listed(names []string) string {
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
