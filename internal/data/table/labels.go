package table

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"taxon/internal/data/textio"
)

// fillLabels sets the row's labels from the cells of the label column.
func (r *Reader) fillLabels() error {
	r.buf = r.buf[:0]
	var ends []int
	for _, cell := range r.cells {
		for cell != "" {
			one := cell
			if r.o.LabelSeparator != "" {
				one, cell, _ = strings.Cut(cell, r.o.LabelSeparator)
			} else {
				cell = ""
			}
			if one = strings.TrimSpace(one); one == "" {
				continue
			}
			if err := checkLabel(one); err != nil {
				return err
			}
			name, err := joinPath(one, r.o.PathSeparator)
			if err != nil {
				return err
			}
			r.buf = append(r.buf, name...)
			ends = append(ends, len(r.buf))
		}
	}
	at := 0
	for _, end := range ends {
		r.row.Labels = append(r.row.Labels, r.buf[at:end:end])
		at = end
	}
	return nil
}

// joinPath removes the blanks around the parts of a path. label must not begin or end with blanks.
func joinPath(label, separator string) (string, error) {
	if separator == "" {
		return label, nil
	}
	path := label
	if mark := strings.TrimSpace(separator); mark != "" { // the blanks around a separator at the end are gone already
		before, after, _ := strings.Cut(separator, mark)
		path = before + path + after
	}
	if !strings.Contains(path, separator) {
		return label, nil
	}
	if err := textio.CheckPath([]byte(path), separator); err != nil {
		return "", err
	}
	parts := strings.Split(path, separator)
	for i, p := range parts {
		if parts[i] = strings.TrimSpace(p); parts[i] == "" {
			return "", fmt.Errorf("the path %q has an empty part", label)
		}
	}
	return strings.Join(parts, separator), nil
}

// checkLabel returns an error if a label or id is not valid text.
func checkLabel(label string) error {
	if !utf8.ValidString(label) || strings.IndexByte(label, 0) >= 0 {
		return fmt.Errorf("%q is not UTF-8 text: convert the file (iconv -t UTF-8)", label)
	}
	return nil
}

// fillIndicators sets the row's labels from columns of 0 and 1, one column per label. An empty cell
// counts as 0.
func (r *Reader) fillIndicators() error {
	for i, k := range r.labels {
		if k < 0 {
			continue
		}
		name := r.o.LabelColumns[i]
		v, list, err := r.in.numbers(k, r.values[:0])
		r.values = v
		switch {
		case err != nil:
			return fmt.Errorf("column %q: %w", name, err)
		case list || len(v) != 1 || v[0] != 0 && v[0] != 1 && v[0] == v[0]:
			return fmt.Errorf("column %q: want 1 in rows with this label, and 0 in others", name)
		case v[0] != 1:
			continue
		}
		label, err := joinPath(strings.TrimSpace(name), r.o.PathSeparator)
		if err != nil {
			return err
		}
		r.row.Labels = append(r.row.Labels, []byte(label))
	}
	return nil
}

// fillLevels sets the row's label from columns that hold the parts of a path, top level first. The
// path ends at the last part that is not empty. A row whose parts are all empty has no label.
func (r *Reader) fillLevels() (err error) {
	r.buf = r.buf[:0]
	var parts []string
	above := -1 // index of the first empty level
	for i, k := range r.levels {
		name, part := r.o.LevelColumns[i], ""
		if r.cells = r.cells[:0]; k >= 0 {
			if r.cells, err = r.in.texts(k, r.cells); err != nil {
				return err
			}
		}
		if len(r.cells) > 1 {
			return fmt.Errorf("column %q: a list where the level of a path has one name", name)
		}
		if len(r.cells) == 1 {
			part = strings.TrimSpace(r.cells[0])
		}
		if err := checkLabel(part); err != nil {
			return err
		}
		switch {
		case part == "" && above < 0:
			above = i
		case part == "":
		case above >= 0:
			return fmt.Errorf("column %q holds %q below column %q, which is empty: a path has no gap", name, part,
				r.o.LevelColumns[above])
		case strings.Contains(part, r.o.PathSeparator):
			return fmt.Errorf("column %q: %q holds the separator of paths, %q: choose another", name, part, r.o.PathSeparator)
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	path := strings.Join(parts, r.o.PathSeparator)
	if again, err := joinPath(path, r.o.PathSeparator); len(parts) <= textio.MaxParts && (err != nil || again != path) ||
		!slices.Equal(strings.Split(path, r.o.PathSeparator), parts) {
		return fmt.Errorf("the levels %s give the path %q, which splits into other levels: choose another ‹path-separator›",
			Listed(parts), path)
	} else if err != nil {
		return err
	}
	r.buf = append(r.buf, path...)
	r.row.Labels = append(r.row.Labels, r.buf)
	return nil
}

// ListsMean explains the labels that Columns.Lists returns.
const ListsMean = "labels that look like lists, each of which is one class: say ‹label-separator›, as in '|', if " +
	"a cell holds several labels, ‹path-separator› if it holds a path; lists in brackets are read in JSON lines, " +
	"Parquet and Arrow"

// Lists returns the labels that look like lists of labels: those in brackets, and those with a
// separator that the columns do not name. A comma counts as a separator only if all parts are
// labels themselves.
func (c *Columns) Lists(labels []string) (out []string) {
	if c.Label == "" {
		return nil
	}
	known := map[string]bool{}
	for _, l := range labels {
		known[l] = true
	}
	apart := func(label, separator string, is func(part string) bool) bool {
		if c.PathSeparator != "" && strings.Contains(c.PathSeparator, separator) || c.LabelSeparator != "" &&
			strings.Contains(c.LabelSeparator, separator) {
			return false
		}
		parts := strings.Split(label, separator)
		for _, p := range parts {
			if p = strings.TrimSpace(p); p == "" || !is(p) {
				return false
			}
		}
		return len(parts) > 1
	}
	any := func(string) bool { return true }
	for _, l := range labels {
		inner := len(l) > 2 && strings.ContainsAny(l, `,"'`) && (l[0] == '[' && l[len(l)-1] == ']' || l[0] == '{' &&
			l[len(l)-1] == '}')
		if inner || apart(l, "|", any) || apart(l, ";", any) || apart(l, ",", func(part string) bool { return known[part] }) {
			out = append(out, l)
		}
	}
	return out
}
