package predict

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	textlines "taxon/internal/data/textio"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/scoring"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
)

// VectorsOptions configure the writing of vectors.
type VectorsOptions struct {
	// Model is the folder of the model.
	Model string
	Input Input
	// Out is a file, or - for Stdout.
	Out    string
	Stdout io.Writer
	// Words is a file for the model's vocabulary, with a line IDF<TAB>TERM for each feature. If it
	// is empty, none is written.
	Words string
}

// VectorsReport summarises the writing of vectors, as `taxon vectors --json` prints it.
type VectorsReport struct {
	Out       string  `json:"out"`
	Instances int64   `json:"instances"`
	Features  int     `json:"features"`
	Nonzeros  int64   `json:"nonzeros"`
	Seconds   float64 `json:"seconds"`
}

// Vectors writes instances in the model's features, one line each, in input order: the labels of
// the input, and index:value for each feature that the model knows. Indices ascend and start at 1.
func Vectors(ctx context.Context, o VectorsOptions, ui progress.Reporter) (*VectorsReport, error) {
	m, err := model.Open(o.Model)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if err := RefuseOverwrite("vectors", "out", o.Out, o.Input.Path, o.Model); err != nil {
		return nil, err
	}
	if o.Words != "" {
		if err := RefuseOverwrite("vectors", "words", o.Words, o.Input.Path, o.Model); err != nil {
			return nil, err
		}
		if o.Words == o.Out {
			return nil, option.Errorf("vectors: ‹words=%s› and ‹out› are the same file: choose another ‹words›", o.Words)
		}
		if m.Text == nil {
			return nil, option.Errorf("vectors: ‹words›: %s was trained on vectors, and has no words", o.Model)
		}
		if err := writeWords(o.Words, o.Stdout, m); err != nil {
			return nil, err
		}
	}
	o.Input.Rows, o.Input.Keep = true, true
	rows, err := Open(ctx, m, o.Input, ui)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	r, began := &VectorsReport{Out: o.Out, Features: len(m.Feature)}, time.Now()
	_, total := rows.progress()
	line := ui.StartBytes("vectors", total)
	defer line.Done()
	if err := fs.WriteOut(o.Out, o.Stdout, func(out *bufio.Writer) error {
		w := vectorWriter{out: out, feature: m.Feature}
		b := &scoring.Batch{}
		for {
			b.Reset()
			err := rows.Fill(b)
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			for i := range b.Rows() {
				if err := w.write(b, i); err != nil {
					return err
				}
			}
			r.Instances, r.Nonzeros = r.Instances+int64(b.Rows()), r.Nonzeros+int64(len(b.Column))
			if err != nil {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			done, _ := rows.progress()
			line.Set(done)
		}
	}); err != nil {
		return nil, err
	}
	for _, w := range rows.Warnings() {
		ui.Warn("%s", w)
	}
	r.Seconds = time.Since(began).Seconds()
	return r, nil
}

// writeWords writes the vocabulary of the model.
func writeWords(path string, stdout io.Writer, m *model.Model) error {
	return fs.WriteOut(path, stdout, func(w *bufio.Writer) error {
		for c, term := range m.Text.Vocabulary {
			line := append(strconv.AppendFloat(nil, m.Text.IDF[c], 'g', -1, 64), "\t"+term+"\n"...)
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
		return nil
	})
}

// vectorWriter writes rows as lines of instances.
type vectorWriter struct {
	out     *bufio.Writer
	feature []uint32
	order   []int
	line    []byte
}

func (w *vectorWriter) write(b *scoring.Batch, i int) error {
	columns, values := b.Column[b.Begin[i]:b.Begin[i+1]], b.Value[b.Begin[i]:b.Begin[i+1]]
	w.order = w.order[:0]
	for k := range columns {
		w.order = append(w.order, k)
	}
	slices.SortFunc(w.order, func(x, y int) int { return cmp.Compare(w.feature[columns[x]], w.feature[columns[y]]) })
	w.line = textlines.AppendNames(w.line[:0], b.RowLabels(i)...)
	if len(w.order) == 0 && len(w.line) == 0 {
		w.line = append(w.line, ' ') // a row without labels and features
	}
	for _, k := range w.order {
		w.line = strconv.AppendUint(append(w.line, ' '), uint64(w.feature[columns[k]]), 10)
		w.line = strconv.AppendFloat(append(w.line, ':'), float64(values[k]), 'g', -1, 32)
	}
	_, err := w.out.Write(append(w.line, '\n'))
	return err
}
