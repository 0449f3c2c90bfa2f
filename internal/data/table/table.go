// Package table reads labelled rows from tables: CSV, TSV, JSON lines, Parquet, Arrow, and matrices
// of NumPy and SciPy. Options name the columns. A Reader streams the rows of one or several files
// in bounded memory, and its errors name the file and line of an invalid row.
//
// A Schema is the part that a model stores: the columns, and the standardisation of numbers.
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

// Columns assigns roles to the columns of a table.
type Columns struct {
	// Text names columns of text, which are joined by blanks.
	Text []string `json:"text,omitempty"`

	// Features names columns of numbers or of lists of numbers.
	Features []string `json:"features,omitempty"`

	// Label names the column of labels. At most one of Label, LabelColumns and LevelColumns is set.
	Label string `json:"label,omitempty"`

	// LabelColumns names one column per label. The rows with a 1 there have the label.
	LabelColumns []string `json:"label_columns,omitempty"`

	// LevelColumns names the columns with the parts of the label's path, top level first.
	LevelColumns []string `json:"level_columns,omitempty"`

	// Weight names the column of weights. It is empty if every row has weight 1.
	Weight string `json:"weight,omitempty"`

	// ID names the column of identifiers, which predictions repeat. It may be empty.
	ID string `json:"id,omitempty"`

	// PathSeparator separates the parts of labels that are paths. Labels are not paths if it is
	// empty.
	PathSeparator string `json:"path_separator,omitempty"`

	// LabelSeparator separates the labels in one cell. A cell has one label if it is empty.
	LabelSeparator string `json:"label_separator,omitempty"`

	// Delimiter separates the cells of CSV. It is a comma if it is empty.
	Delimiter string `json:"delimiter,omitempty"`

	// Header says whether CSV and TSV have a header: NoHeader or WithHeader, which is the default.
	Header string `json:"header,omitempty"`
}

// These are the values of Columns.Header.
const (
	WithHeader = "yes" // line 1 names the columns
	NoHeader   = "no"  // line 1 is a row; the columns are named 1, 2, ...
)

// Flags returns the command line's flags for the columns, as (name, value) pairs. Flags of text and
// features may repeat.
func (c *Columns) Flags() (out [][2]string) {
	for _, name := range c.Text {
		out = append(out, [2]string{"text-column", name})
	}
	for _, list := range []struct {
		flag  string
		names []string
	}{{"feature-columns", c.Features}, {"label-columns", c.LabelColumns}, {"level-columns", c.LevelColumns}} {
		for _, name := range list.names {
			if strings.ContainsAny(name, `,"`) { // the flag's value is a list
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

// Options holds the columns and the way to read the file.
type Options struct {
	Columns

	// Format is one of Formats. Empty stands for "auto".
	Format string

	// SkipBroken is the number of invalid rows that may be left out.
	SkipBroken int64

	// Labels is the path of the labels of a matrix. Empty means that the matrix has none.
	Labels string
}

// Lines is the format of input that is not a table.
const Lines = "lines"

// Formats lists the file formats. "auto" selects one by the file's name.
var Formats = []string{"auto", Lines, "csv", "tsv", "jsonl", "parquet", "arrow", "npy", "npz"}

// Given reports whether an option is set that applies to tables only.
func (o *Options) Given() bool {
	c := &o.Columns
	return len(c.Text)+len(c.Features)+len(c.LabelColumns)+len(c.LevelColumns) > 0 ||
		c.Label+c.Weight+c.ID+c.LabelSeparator+c.Delimiter+c.Header != ""
}

// FormatOf returns the format of a file: csv, tsv, jsonl, parquet, arrow, npy or npz, or "" for a
// file that is read as lines. If lines is set, a text file with the name of a table is read as
// lines, unless columns are given.
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

// Over returns the options, where those that are not set are taken from a model's schema.
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

// Check returns an error if options contradict each other.
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

// Schema is the part of the columns and options that a model stores.
type Schema struct {
	Columns

	// Widths holds, for each entry of Features, the length of the list in each row, or 0 for a
	// plain number.
	Widths []int `json:"widths,omitempty"`

	// Mean holds the mean of each feature. It is 0 for entries of lists.
	Mean []float64 `json:"mean,omitempty"`

	// Scale holds the standard deviation of each feature, above 0. It is 1 for entries of lists.
	Scale []float64 `json:"scale,omitempty"`

	// Matrix is the number of columns of a matrix, the largest one if there were several. It is 0
	// for other tables.
	Matrix int64 `json:"matrix,omitempty"`

	// Constant lists the entries of Features that are equal in all rows.
	Constant []string `json:"constant,omitempty"`
}

// Check returns an error unless the schema describes data with these features, given by their
// indices from 1, and with or without text. Every file that holds a schema is checked in this way.
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

// Standardise converts a number from the table's scale to the model's. Rounding to float32 is the
// last step, because rounding before the mean is subtracted would lose most digits of large
// numbers.
func (s *Schema) Standardise(index uint32, value float64) float32 {
	if s != nil && int(index) <= len(s.Mean) {
		value = (value - s.Mean[index-1]) / s.Scale[index-1]
	}
	return float32(value)
}

// HasColumns reports whether the training data are tables with named columns, in contrast to
// matrices.
func (s *Schema) HasColumns() bool { return s != nil && len(s.Text)+len(s.Features) > 0 }

// Both reports whether there are both words and numbers. The indices of the numbers then come
// first, and their terms differ from all words.
func (s *Schema) Both() bool { return s != nil && len(s.Text) > 0 && len(s.Features) > 0 }

// Terms returns a term for each number feature: the column's name as a JSON string, followed in
// lists by the position, from 1. The terms differ from all words, which never begin with a quote.
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

// Column returns the first feature of a number column and its number of features, which is 0 if
// there is no such column.
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

// Warnings returns one line for each oddity of the columns and the labels that a user should know
// about.
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

// Hint lists the number columns for a message. It is empty if there are none.
func (s *Schema) Hint() string {
	if s == nil || len(s.Features) == 0 {
		return ""
	}
	return "one of " + Listed(s.Features) + ", or "
}

// IsTerm reports whether an entry of a vocabulary stands for a number and not for a word.
func IsTerm(s string) bool { return strings.HasPrefix(s, `"`) }

// Width returns the number of features.
func (s *Schema) Width() (n int) {
	for _, w := range s.Widths {
		n += max(w, 1)
	}
	return n
}

// missing returns the error for a column that does not exist.
func missing(name string, have []string) error {
	if near := format.Nearest(name, have); near != "" {
		return fmt.Errorf("no column %q: did you mean %q?", name, near)
	}
	if len(have) == 0 {
		return fmt.Errorf("no column %q: the rows have no columns", name)
	}
	return fmt.Errorf("no column %q: there are %s", name, Listed(have))
}

// Listed lists names for a message, up to a limit.
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
