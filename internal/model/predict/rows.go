package predict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"taxon/internal/data/dataset"
	"taxon/internal/data/table"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/parallel"
	"taxon/internal/model/scoring"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
)

// Input describes the instances for a model.
type Input struct {
	// Path is a file, a folder made by ingest, or - for standard input.
	Path string
	// Text reports that lines have the form [LABEL]<TAB>text.
	Text bool
	// AsTrained makes the instances have the form of the training data, which is text or not. Text
	// is then ignored.
	AsTrained bool
	// ZeroBased reports that feature indices start at 0. It is used only if ZeroGiven is set.
	// Otherwise the model determines it.
	ZeroBased bool
	ZeroGiven bool
	// Labels requires true labels and reads them.
	Labels bool
	// Keep reads true labels where there are any.
	Keep bool
	// Table overrides the table options of the model.
	Table table.Options
	// Rows keeps ids and broken rows.
	Rows bool
	// Live passes on the rows already read when the input pauses.
	Live bool
	// Threads is the number of threads that score. Zero means one per core.
	Threads int
	Files   fs.Local
}

// Rows fills batches with the instances of a file or an ingested data set.
type Rows interface {
	// Fill appends rows to b. It returns io.EOF with the last rows or after them.
	Fill(b *scoring.Batch) error
	// Warnings returns warnings about the data, after all rows are read.
	Warnings() []string
	Close() error
	progress() (done, total int64)
}

// Open opens instances for m, which determines their mapping to its columns.
func Open(ctx context.Context, m *model.Model, o Input, ui progress.Reporter) (Rows, error) {
	if o.Path != fs.Stdin && dataset.LooksIngested(o.Path) {
		return openSetRows(m, o)
	}
	columns := o.Table.Over(m.Data.Table)
	isTable := columns.FormatOf(o.Path, o.Text) != ""
	saidText := o.Text && !o.AsTrained
	if o.AsTrained || isTable {
		o.Text = m.Data.Text
	}
	switch {
	case m.Data.Strings != "":
		return nil, option.Errorf("%s was trained on sequences: give them as `taxon ingest ‹strings› %s` makes them", m.Dir,
			m.Data.Strings)
	case m.Data.Table.HasColumns() && !isTable && !saidText && o.Table.Format != table.Lines:
		lines := "‹data-format=lines› reads INDEX:VALUE lines, as `taxon vectors` writes them"
		if m.Data.Text {
			lines = "or add ‹text› and give LABEL<TAB>text lines"
		}
		return nil, option.Errorf("%s was trained on a table, and %s is none by its name: say which it is with "+
			"‹data-format›; %s", m.Dir, o.Path, lines)
	case m.Data.Table != nil && !m.Data.Table.HasColumns() && !isTable && o.Table.Format != table.Lines:
		return nil, option.Errorf("%s was trained on a matrix, and %s is none by its name: say which it is with "+
			"‹data-format› npy or npz; ‹data-format=lines› reads INDEX:VALUE lines", m.Dir, o.Path)
	case m.Data.Text && !o.Text:
		return nil, option.Errorf("%s was trained on text: add ‹text› and give LABEL<TAB>text lines", m.Dir)
	case !m.Data.Text && o.Text:
		return nil, option.Errorf("%s was trained on feature vectors: leave out ‹text›", m.Dir)
	}
	p, err := ProjectionOf(m)
	if err != nil {
		return nil, err
	}
	zero := m.Data.ZeroBased
	if o.ZeroGiven {
		zero = o.ZeroBased
	}
	options := dataset.ReaderOptions{Text: o.Text, ZeroBased: zero, Table: columns,
		Use: table.Use{Labels: o.Labels, Features: true, KeepBroken: o.Rows, Schema: m.Data.Table}}
	rows := &fileRows{ui: ui, p: p, keepLabels: o.Labels || o.Keep, keepRows: o.Rows, live: o.Live, names: Names{}}
	if isTable {
		if matrix := table.Matrix(columns.FormatOf(o.Path, o.Text)); (len(columns.Text) > 0 && !matrix) != m.Data.Text {
			return nil, option.Errorf("%s was trained on %s: name such columns with %s", m.Dir, trainedOn[m.Data.Text],
				columnFlags[m.Data.Text])
		}
		if o.Live {
			options.Use.Pause = rows.paused
		}
		rows.file, err = dataset.OpenReader(ctx, o.Files, o.Path, options)
		return rows, err
	}
	if o.Table.Given() {
		return nil, dataset.NotATable(o.Path)
	}
	f, err := fs.Open(ctx, o.Files, o.Path)
	if err != nil {
		return nil, err
	}
	if !o.Text && o.Table.Format != table.Lines {
		rows.classes = map[string]bool{}
		for _, l := range m.Labels {
			rows.classes[l] = true
		}
	}
	options.Name = f.Name()
	if o.Live && f.Waits() {
		rows.waits = fs.NewCancelReader(ctx, f)
		options.Pause = func() bool { return rows.paused(rows.waits) }
	}
	rows.file = dataset.NewFileReader(f, rows.waits, options)
	return rows, nil
}

// These are texts for errors: the kind of data of a model, and the options that name such columns.
var (
	trainedOn   = map[bool]string{true: "text", false: "numbers"}
	columnFlags = map[bool]string{true: "‹text-column›", false: "‹feature-columns›"}
)

// ProjectionOf returns the mapping of rows, in the form of the model's training data, to the
// model's columns.
func ProjectionOf(m *model.Model) (*dataset.Projection, error) {
	if m.Text != nil {
		return dataset.NewTextProjection(m.Data.Terms(), m.Text.Vocabulary, m.Text.IDF, m.Data.Table)
	}
	return dataset.NewProjection(m.Feature), nil
}

// LongestWait is how long a row may wait for others to be scored in the same batch. A fast stream
// fills its batches in that time, and an interactive user hardly notices it.
const LongestWait = 100 * time.Millisecond

// fileRows reads a stream of instances.
type fileRows struct {
	ui progress.Reporter
	// unknown counts instances without any feature of the model.
	unknown int64
	file    *dataset.FileReader
	// waits is the reader below file if a pause ends a batch, and nil otherwise.
	waits *fs.CancelReader
	// live reports that a pause ends a batch.
	live bool
	// batch is the number of rows in the batch so far.
	batch int
	// began is the time of the batch's first row.
	began time.Time
	p     *dataset.Projection
	v     dataset.Vector
	// emptyNoted reports that the user was told that an empty line gets no answer.
	emptyNoted bool
	keepLabels bool
	keepRows   bool
	// classes are the model's classes. They are set if they are needed to distinguish lines of
	// instances from lines of a table, and nil otherwise.
	classes map[string]bool
	names   Names
	row     []string
}

func (f *fileRows) Fill(b *scoring.Batch) error {
	for f.batch = 0; !b.Full(); f.batch++ {
		row, err := f.file.Read()
		if errors.Is(err, dataset.ErrPause) {
			return nil
		}
		if err != nil {
			return err
		}
		if f.live && f.batch == 0 {
			f.began = time.Now()
		}
		if err := f.notCells(row); err != nil {
			return err
		}
		f.p.Row(row, &f.v)
		if len(f.v.Index) == 0 && !row.Broken {
			f.unknown++
		}
		b.Add(f.v.Index, f.v.Value)
		if f.keepRows {
			b.IDs = append(b.IDs, row.ID)
			if row.Broken {
				b.Broken = append(b.Broken, b.Rows()-1)
			}
		}
		if f.keepLabels {
			f.row = f.names.Append(f.row[:0], row.Labels)
			b.AddLabels(f.row...)
		}
	}
	return nil
}

// notCells returns an error for a line without features that has several labels, none of which the
// model knows: it is a line of a table with commas.
func (f *fileRows) notCells(row *dataset.Row) error {
	if f.classes == nil || len(row.Index) > 0 || len(row.Labels) < 2 ||
		slices.ContainsFunc(row.Labels, func(l []byte) bool { return f.classes[string(l)] }) {
		return nil
	}
	return fs.Inputf(f.file.Name(), row.Line, "commas, no INDEX:VALUE, and no class of the model: is this a row of a "+
		"table? the model was trained on INDEX:VALUE lines; ‹data-format=lines› reads labels that it does not know")
}

// paused reports whether the rows read so far should be passed on. A user who waits for the answer
// to an empty line is told at once that there is none.
func (f *fileRows) paused(in *fs.CancelReader) bool {
	if f.batch == 0 && !f.emptyNoted && f.file.Counts().EmptyLines > 0 && !in.Within(LongestWait) {
		f.emptyNoted = true
		f.ui.Warn("%s: an empty line is no instance and gets no answer: %s", f.file.Name(), blankRow)
	}
	return f.batch > 0 && !in.Within(LongestWait-time.Since(f.began))
}

// Names interns label names.
type Names map[string]string

// Append appends the names of labels to dst. The bytes of labels may change afterwards.
func (n Names) Append(dst []string, labels [][]byte) []string {
	for _, l := range labels {
		name, ok := n[string(l)]
		if !ok {
			name = string(l)
			n[name] = name
		}
		dst = append(dst, name)
	}
	return dst
}

func (f *fileRows) progress() (done, total int64) {
	return f.file.BytesRead(), max(0, f.file.Size())
}

const blankRow = "an instance without labels and features is a line with a blank or tab"

func (f *fileRows) Warnings() []string {
	return append(PassedOver(f.file), warnUnknown(f.file.Name(), f.unknown)...)
}

// PassedOver returns warnings about empty and broken lines, which are not instances. Empty lines
// shift the lines of the output against the lines of the input.
func PassedOver(r *dataset.FileReader) (out []string) {
	c := r.Counts()
	if c.EmptyLines > 0 {
		out = append(out, fmt.Sprintf("%s: %s skipped: no instances, and without a line in predictions (%s)", r.Name(),
			format.Counted(c.EmptyLines, "empty line", "empty lines"), blankRow))
	}
	if c.Broken > 0 {
		out = append(out, fmt.Sprintf("%s: %s passed over, as ‹skip-broken› allows", r.Name(), format.Counted(c.Broken,
			"broken row", "broken rows")))
	}
	return out
}

// warnUnknown returns a warning about instances without any feature of the model.
func warnUnknown(path string, rows int64) []string {
	if rows == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s no feature that the model knows: the bias alone decides", path,
		format.Counted(rows, "instance has", "instances have"))}
}

func (f *fileRows) Close() error {
	if f.waits == nil {
		return f.file.Close()
	}
	return f.waits.WhenIdle(f.file.Close) // no read may use a closed decoder
}

// setRows reads an ingested data set.
type setRows struct {
	path string
	// unknown counts instances without any feature of the model.
	unknown int64
	set     *dataset.Set
	// p is nil if the set's columns are the model's.
	p          *dataset.Projection
	v          dataset.Vector
	row        dataset.Row
	next       int
	keepLabels bool
	names      []string
}

// openSetRows opens a data set. A set of text is refused unless it is the training data itself: it
// is weighted by its own idf and not by the model's.
func openSetRows(m *model.Model, o Input) (Rows, error) {
	set, err := dataset.Open(o.Path)
	if err != nil {
		return nil, err
	}
	s := &setRows{path: o.Path, set: set, keepLabels: o.Labels || o.Keep}
	if set.Fingerprint == m.Data.Fingerprint && set.Matrix.Cols == len(m.Feature) {
		return s, nil
	}
	if set.Vocabulary != nil || m.Text != nil {
		return nil, errors.Join(fs.Inputf(o.Path, 0, "is ingested text with word weights of its own: give the text file "+
			"itself, with ‹text›"), set.Close())
	}
	if is, was := set.Source.Strings, m.Data.Strings; is != was {
		return nil, errors.Join(fs.Inputf(o.Path, 0, "has other features than %s was trained on: %s, not %s", m.Dir,
			cmp.Or(is, "no strings"), cmp.Or(was, "no strings")), set.Close())
	}
	if s.p, err = ProjectionOf(m); err != nil {
		return nil, errors.Join(err, set.Close())
	}
	return s, nil
}

func (s *setRows) Fill(b *scoring.Batch) error {
	for ; !b.Full(); s.next++ {
		if s.next == s.set.Documents() {
			return io.EOF
		}
		columns, values := s.set.Matrix.Row(s.next)
		if s.p != nil {
			s.row.Index, s.row.Value = s.row.Index[:0], values
			for _, c := range columns {
				s.row.Index = append(s.row.Index, s.set.Feature[c])
			}
			s.p.Row(&s.row, &s.v)
			columns, values = s.v.Index, s.v.Value
		}
		if len(columns) == 0 {
			s.unknown++
		}
		b.Add(columns, values)
		if s.keepLabels {
			s.names = s.names[:0]
			for _, l := range s.set.LabelIndex[s.set.LabelBegin[s.next]:s.set.LabelBegin[s.next+1]] {
				s.names = append(s.names, s.set.Labels[l])
			}
			b.AddLabels(s.names...)
		}
	}
	return nil
}

func (s *setRows) progress() (done, total int64) { return int64(s.next), int64(s.set.Documents()) }

func (s *setRows) Warnings() []string { return warnUnknown(s.path, s.unknown) }

func (s *setRows) Close() error { return s.set.Close() }

// Score predicts all instances of rows and passes them to emit in input order, under a progress
// line named what. threads is as in Input. The caller must show the rows' warnings.
func Score(ctx context.Context, what string, p *scoring.Predictor, rows Rows, threads int, ui progress.Reporter,
	emit func(*scoring.Batch, *scoring.Result) error) error {
	_, total := rows.progress()
	start := ui.StartBytes
	if _, ok := rows.(*setRows); ok {
		start = ui.Start
	}
	line := start(what, total)
	defer line.Done()
	done := int64(0)
	fill := func(b *scoring.Batch) error {
		err := rows.Fill(b)
		done += int64(b.Rows())
		at, _ := rows.progress()
		line.Set(at, format.Count(done)+" instances")
		return err
	}
	return p.Stream(ctx, parallel.Threads(threads), fill, emit)
}
