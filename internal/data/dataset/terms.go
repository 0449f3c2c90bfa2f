package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"taxon/internal/data/table"
	"taxon/internal/fs"
)

// LabelText names files of texts about labels: names, synonyms, notes. Each such term becomes a row
// of its label, behind the rows of the documents. The zero value names none.
type LabelText struct {
	// Paths are files of lines LABEL<TAB>term, or tables.
	Paths []string

	// Columns are two columns of tables: that of the label and that of the term. Without them, files
	// are read as lines.
	Columns []string

	// Weight is the instance weight of each term. 0 stands for DefaultLabelWeight.
	Weight float64
}

// Term is a text about a label.
type Term struct {
	// Label is the label's id.
	Label uint32
	Text  string
}

// DefaultLabelWeight is the weight of a term where none is given; docs/decisions/0074 has the
// figures.
const DefaultLabelWeight = 1

// Flags returns the command line's flags for the options that differ from the default, as (name,
// value) pairs.
func (l *LabelText) Flags() (out [][2]string) {
	for _, p := range l.Paths {
		out = append(out, [2]string{"label-text", p})
	}
	if len(l.Columns) > 0 {
		out = append(out, [2]string{"label-text-columns", strings.Join(l.Columns, ",")})
	}
	if l.Weight != 0 {
		out = append(out, [2]string{"label-weight", strconv.FormatFloat(l.Weight, 'g', -1, 64)})
	}
	return out
}

// Check returns what is wrong with the options; isText says whether instances are text.
func (l *LabelText) Check(isText bool) error {
	flags := l.Flags()
	switch {
	case len(flags) == 0:
		return nil
	case len(l.Paths) == 0:
		return fmt.Errorf("‹%s› is for ‹label-text›: add that, or leave it out", flags[0][0])
	case !isText:
		return errors.New("‹label-text› is for text: add ‹text›, or name the text with ‹text-column›")
	case slices.Contains(l.Paths, fs.Stdin) || slices.Contains(l.Paths, ""):
		return errors.New("‹label-text›: give a file")
	case len(l.Columns) != 0 && len(l.Columns) != 2:
		return errors.New("‹label-text-columns›: give two columns, LABEL,TERM")
	case l.Weight != 0 && !(l.Weight >= minWeight && l.Weight <= maxWeight):
		return fmt.Errorf("‹label-weight=%g›: must be from %g to %g", l.Weight, minWeight, maxWeight)
	}
	return nil
}

// Weighs reports whether terms have another weight than documents.
func (l *LabelText) Weighs() bool { return len(l.Paths) > 0 && l.weight() != 1 }

// weight returns the weight of each term.
func (l *LabelText) weight() float64 {
	if l.Weight == 0 {
		return DefaultLabelWeight
	}
	return l.Weight
}

// reader returns the options for reading the files, of whose labels data says the form.
func (l *LabelText) reader(data *table.Options) ReaderOptions {
	o := ReaderOptions{Text: true, Use: table.Use{Labels: true}}
	o.Table.PathSeparator = data.PathSeparator
	if len(l.Columns) == 2 {
		o.Table.Label, o.Table.Text = l.Columns[0], l.Columns[1:]
	} else {
		o.Table.Format = table.Lines
	}
	return o
}

// maxTerm bounds the bytes of a term.
const maxTerm = 1 << 20

// readTerms reads the texts about labels, behind all documents.
func (in *intake) readTerms(ctx context.Context) error {
	l := &in.o.LabelText
	seen := map[string]bool{}
	for _, path := range l.Paths {
		files, err := in.expand(ctx, path)
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := in.readTermsOf(ctx, f, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *intake) readTermsOf(ctx context.Context, path string, seen map[string]bool) error {
	r, err := OpenReader(ctx, in.o.FS, path, in.o.LabelText.reader(&in.o.Table))
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		text := bytes.TrimSpace(row.Text)
		switch {
		case len(row.Labels) != 1:
			return fs.Inputf(path, row.Line, "%d labels: want one label and a term of it", len(row.Labels))
		case len(text) > maxTerm:
			return fs.Inputf(path, row.Line, "the term of %s is longer than %d MiB", show(row.Labels[0]), maxTerm>>20)
		case len(text) == 0:
			in.stats.EmptyTerms++
			continue
		}
		term := oneLine(text)
		key := string(row.Labels[0]) + "\t" + term
		if seen[key] {
			in.stats.RepeatedTerms++
			continue
		}
		seen[key] = true
		if err := in.addTerm(row.Labels, term); err != nil {
			return err
		}
	}
}

// oneLine replaces line ends, which cells of tables may hold, by blanks.
func oneLine(text []byte) string {
	return string(bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, text))
}

// addTerm adds the row of a term.
func (in *intake) addTerm(label [][]byte, term string) error {
	if in.weights != nil {
		in.weights.add(in.o.LabelText.weight())
	}
	in.stats.Rows++
	in.stats.Terms++
	if err := in.put(batchRow{text: []byte(term)}, label, nil, nil, true); err != nil {
		return err
	}
	in.terms = append(in.terms, Term{in.ids[0], term})
	return nil
}

// add takes the weight of a row that the input does not weigh.
func (w *weighing) add(x float64) {
	w.kept++
	w.sum += x
	w.differ = w.differ || x != 1
	w.array.u64(math.Float64bits(x))
}

// writeTerms writes the ids of the labels and the texts of the terms, in the order of their rows.
func (p *publisher) writeTerms(context.Context) error {
	if len(p.in.terms) == 0 {
		return nil
	}
	return p.writeList(termsFile, func(yield func(string) bool) {
		for _, t := range p.in.terms {
			if !yield(strconv.FormatUint(uint64(t.Label), 10) + "\t" + t.Text) {
				return
			}
		}
	})
}

// readTerms reads the texts of the terms.
func (o *opener) readTerms() error {
	if o.m.Stats.Terms == 0 {
		return nil
	}
	lines, err := o.names(termsFile, o.m.Stats.Terms)
	if err != nil {
		return err
	}
	o.set.Terms = make([]Term, len(lines))
	for i, line := range lines {
		id, text, ok := strings.Cut(line, "\t")
		label, err := strconv.ParseUint(id, 10, 32)
		if err != nil || !ok || int64(label) >= o.m.Stats.Labels {
			return o.damaged(termsFile, fmt.Errorf("line %d is not a term", i+1))
		}
		o.set.Terms[i] = Term{uint32(label), text}
	}
	return nil
}

// checkTerms compares the labels of the terms with those of their rows, which are the last.
func (o *opener) checkTerms() error {
	for i, t := range o.set.Terms {
		if of := o.set.LabelsOf(uint32(o.set.Documents() + i)); len(of) != 1 || of[0] != t.Label {
			return o.damaged(termsFile, fmt.Errorf("line %d is not of the label of its row", i+1))
		}
	}
	return nil
}

// Documents returns the number of documents, which are the first rows. Terms of labels follow.
func (s *Set) Documents() int { return s.Matrix.Rows - len(s.Terms) }

// LabelSizes returns the number of documents that each label has.
func (s *Set) LabelSizes() []int {
	sizes := make([]int, len(s.Labels))
	for _, l := range s.LabelIndex[:s.LabelBegin[s.Documents()]] {
		sizes[l]++
	}
	return sizes
}
