package dataset

import (
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"

	"taxon/internal/data/table"
	"taxon/internal/data/text"
	"taxon/internal/fs"
)

// DefaultMemoryBytes is the value of Options.MemoryBytes if it is 0.
const DefaultMemoryBytes = 256 << 20

// Options configures an Ingest. Paths and Out are required.
type Options struct {
	// Paths are the inputs. They are read one after the other. The path "-" is standard input.
	Paths []string

	// Out is the folder to create.
	Out string

	// Replace allows an existing data set, or an empty folder, at Out to be replaced.
	Replace bool

	// Text says that the lines have the form label[,label...]<TAB>text.
	Text bool

	// Words selects the words of a text that become features.
	Words Words

	// Strings says that lines hold sequences, and which string kernel turns them into features. The
	// zero value means that lines do not hold sequences.
	Strings Strings

	// ZeroBased says that the feature indices of libsvm lines count from 0.
	ZeroBased bool

	// Weights is the path of a file with the weight of each instance, one per line. If the path is
	// empty, every weight is 1.
	Weights string

	// LabelText names texts about labels, which become rows behind the others. It needs text.
	LabelText LabelText

	// Table says how inputs that are tables are read.
	Table table.Options

	// FS opens the inputs. A nil FS stands for fs.Local{}.
	FS fs.Source

	// MemoryBytes bounds the buffers for rows. The least value is 1 MiB; 0 stands for
	// DefaultMemoryBytes. The bound does not include a few words for each feature, label and
	// vocabulary word, the longest line, or the decompressor's memory (64 MiB with xz -9).
	MemoryBytes int64

	// TempDir is the folder for the rows that are spilled between the two passes: 8 bytes for each
	// nonzero. If it is empty, rows are spilled next to Out.
	TempDir string

	// Threads is the number of threads that parse and, later, write. All cores are used if it is 0.
	Threads int

	// Progress is called from time to time, always from the same goroutine. Nothing is called if it
	// is nil.
	Progress func(Progress)
}

// Progress says how far an Ingest has come.
type Progress struct {
	// Phase is "read" during the first pass and "write" during the second.
	Phase string

	// BytesRead counts bytes of the inputs as they are stored, that is, compressed.
	BytesRead int64

	// BytesTotal is the size of the input as it is stored. It is -1 if the size is unknown: with
	// standard input, and with several inputs.
	BytesTotal int64

	// Rows is the number of rows read or written in this phase.
	Rows int64

	// RowsTotal is the number of rows in the data set, or -1 during the first pass.
	RowsTotal int64
}

// Report describes the data set that an Ingest has published.
type Report struct {
	Stats       Stats
	Warnings    []string
	Fingerprint string

	// Bytes is the size of the folder.
	Bytes int64
}

// Ingest reads the inputs once, as a stream, and publishes a data set at o.Out. Instances of weight
// 0 are left out, as if their lines did not exist.
//
// The first pass parses the rows, numbers the labels by first appearance, counts the features, and
// spills the rows to a temporary file. The second pass numbers the features by falling document
// frequency (ties: the smaller original index first; in text, the smaller word first) and writes
// the rows as shards. The files depend on the content alone, not on compression, paths, threads,
// memory or the order of indices within a line.
//
// A failed or cancelled Ingest leaves no files.
func Ingest(ctx context.Context, o Options) (*Report, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	dir, err := fs.CreateDir(o.Out, o.Replace)
	if err != nil {
		return nil, err
	}
	defer dir.Abort()
	return ingest(ctx, o, dir)
}

// ingest writes the data set's files into dir and publishes the folder.
func ingest(ctx context.Context, o Options, dir *fs.OutDir) (*Report, error) {
	sp, err := newSpill(dir, o.TempDir, o.bufBytes(), o.MemoryBytes/8)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sp.remove() }()
	in := &intake{o: o, spill: sp, labelIDs: map[string]uint32{}}
	if len(o.LabelText.Paths) > 0 {
		in.inDocuments = &featureTable{}
	}
	if o.Text {
		stop, err := o.Words.stopWords(ctx, o.FS)
		if err != nil {
			return nil, err
		}
		in.words = newWords(func() *counter {
			return newCounter(func() *text.Analyser {
				return text.New(o.Words.Options, func(word string) bool { return stop[word] })
			}, o.termsPerThread())
		})
	}
	if err := in.readWeighed(ctx, dir); err != nil {
		return nil, err
	}
	out := &publisher{o: o, dir: dir, in: in}
	return out.publish(ctx)
}

// withDefaults replaces the zero values that stand for a default.
func (o Options) withDefaults() Options {
	if o.MemoryBytes == 0 {
		o.MemoryBytes = DefaultMemoryBytes
	}
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.FS == nil {
		o.FS = fs.Local{}
	}
	o.Text = o.Text || len(o.Table.Text) > 0
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	return o
}

// validate returns an error that names the first invalid option.
func (o Options) validate() error {
	switch {
	case len(o.Paths) == 0:
		return fs.Inputf("", 0, "no input: give a file, or - for standard input")
	case o.MemoryBytes < 1<<20:
		return fs.Inputf("", 0, "memory bound of %d bytes: an ingest needs at least 1 MiB", o.MemoryBytes)
	case o.Text && len(o.Table.Features) > 0 && len(o.Table.Text) == 0:
		return fs.Inputf("", 0, "‹feature-columns› alone has no text: leave out ‹text›, or name the text with ‹text-column›")
	case o.Weights != "" && o.Table.Weight != "":
		return fs.Inputf("", 0, "‹instance-weights› and ‹weight-column› exclude each other")
	case o.Replace && !replaceable(o.Out):
		return fs.Inputf(o.Out, 0, "is a folder that holds something other than a data set: choose another place")
	}
	if err := errors.Join(o.Words.Check(o.Text), o.LabelText.Check(o.Text), o.Strings.Check()); err != nil {
		return fs.Inputf("", 0, "%w", err)
	}
	if o.TempDir != "" {
		if info, err := fs.Stat(o.TempDir); err != nil {
			return fs.Explain(o.TempDir, err)
		} else if !info.IsDir() {
			return fs.Inputf(o.TempDir, 0, "is a file: give a folder for temporary files")
		}
	}
	return nil
}

// replaceable reports whether out may be replaced. Folders that Ingest did not write are protected,
// even with Replace.
func replaceable(out string) bool {
	names, err := fs.ReadDirNames(out)
	return err != nil || len(names) == 0 || LooksIngested(fs.Clean(out))
}

// bufBytes returns the size of one stream buffer. All buffers together take at most half of
// MemoryBytes: six for each thread of the second pass; two for each thread of the first pass (the
// text of a piece, half a buffer, and its parsed rows), and four more. Spilled rows take up to an
// eighth of the bound before they go to disk, and the postings a quarter.
func (o Options) bufBytes() int {
	share := o.MemoryBytes / int64(2*(6*o.Threads+4))
	return int(min(max(share, 8<<10), 1<<20))
}

// termsPerThread returns how many terms each thread of the first pass remembers: those of all threads
// take some 100 bytes each and a quarter of MemoryBytes.
func (o Options) termsPerThread() int { return int(o.MemoryBytes / int64(400*o.Threads)) }

// intake is the state of the first pass.
type intake struct {
	o        Options
	spill    *spill
	labelIDs map[string]uint32
	labels   []string

	// perLabel counts the rows of each label.
	perLabel []uint64
	table    featureTable

	// words numbers the words of texts. It is nil for other forms.
	words *words

	// schema is the schema of the tables read so far. It is nil if the inputs are lines.
	schema *table.Schema

	// spread holds the mean and variance of each number feature, by feature.
	spread []spread

	// weights reads the instances' weights. A nil weights gives every instance weight 1.
	weights *weighing
	stats   Stats
	form    string
	ids     []uint32

	// inDocuments counts the documents that have each feature. It is nil unless there are terms.
	inDocuments *featureTable

	// terms are the texts about labels.
	terms []Term

	// done counts the bytes of the inputs that have been read to their end.
	done  int64
	total int64
}

// progressRows is the number of rows between two reports of progress. Cancellation is checked as
// often.
const progressRows = 4096

// readWeighed reads the inputs, and their weights if Options name some.
func (in *intake) readWeighed(ctx context.Context, dir *fs.OutDir) (err error) {
	if in.o.Weights == "" && in.o.Table.Weight == "" && !in.o.LabelText.Weighs() {
		return in.read(ctx)
	}
	if in.weights, err = openWeights(ctx, in.o, dir); err != nil {
		return err
	}
	if err = in.read(ctx); err == nil {
		err = in.weights.end(dir)
	}
	in.stats.Weight = in.weights.Sum()
	return in.weights.close(err)
}

// read reads all inputs in order.
func (in *intake) read(ctx context.Context) error {
	in.total = 0
	for _, p := range in.o.Paths {
		files, err := in.expand(ctx, p)
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := in.readPath(ctx, f); err != nil {
				return err
			}
		}
	}
	if err := in.readTerms(ctx); err != nil {
		return err
	}
	in.stats.Text = in.o.Text
	in.stats.Labels = int64(len(in.labels))
	return in.spill.flush()
}

// expand lists the files of a pattern or of a folder of parts. The files are read one by one, so
// that errors name file and line.
func (in *intake) expand(ctx context.Context, path string) ([]string, error) {
	if _, ok := in.o.FS.(fs.Local); !ok {
		return []string{path}, nil
	}
	return fs.Expand(ctx, path)
}

// readPath reads one input: a table, or lines.
func (in *intake) readPath(ctx context.Context, path string) error {
	if in.o.Table.FormatOf(path, in.o.Text) != "" {
		return in.readTable(ctx, path)
	}
	if in.schema != nil {
		return fs.Inputf(path, 0, "is not a table, as the files before it are: ingest one kind of file at a time")
	}
	if in.o.Table.Given() {
		return NotATable(path)
	}
	f, err := fs.Open(ctx, in.o.FS, path)
	if err != nil {
		return err
	}
	o := ReaderOptions{Name: f.Name(), Text: in.o.Text, ZeroBased: in.o.ZeroBased, Strings: in.o.Strings}
	o.Table.SkipBroken = in.o.Table.SkipBroken - in.stats.Broken
	o.Table.PathSeparator = in.o.Table.PathSeparator
	size, count := in.o.bufBytes()/2, (func() *counter)(nil)
	if in.words != nil {
		size, count = size/textGrowth, in.words.counter
	}
	s := startPieces(ctx, f, o, in.o.Threads, size, count)
	defer s.Close()
	src := &source{o: o}
	for {
		p, err := s.next()
		if err != nil {
			return err
		}
		if p.first {
			src.header = s.header
		}
		if err := src.each(p, in.add); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		s.release(p)
		in.report(f, src.counts.Rows)
	}
	in.form = formOf(o, src.header)
	in.stats.Counts.add(src.counts)
	in.report(f, 0)
	in.done += f.BytesRead()
	return nil
}

// source is the state of the input that is being read.
type source struct {
	o      ReaderOptions
	header *xmcHeader
	counts Counts

	// line counts the lines that the pieces so far have held.
	line int64
}

// each calls f with the rows of a piece. It returns io.EOF after the last piece if the whole input
// is valid.
func (s *source) each(p *piece, f func(row batchRow, labels [][]byte, index, bits []uint32) error) error {
	b := &p.rows
	labels, entries := 0, 0
	for i, row := range b.rows {
		if s.header != nil {
			if admitted, err := s.header.admits(s.counts.Rows+int64(i), row.labels-labels+row.entries-entries); err != nil {
				return fs.Inputf(s.o.Name, s.line+row.line, "%w", err)
			} else if !admitted {
				b.counts.add(Counts{Rows: -1, Unlabelled: -1, ZeroRows: -1, EmptyLines: 1})
				continue
			}
		}
		if err := f(row, b.labels[labels:row.labels], b.index[entries:row.entries], b.bits[entries:row.entries]); err != nil {
			return err
		}
		labels, entries = row.labels, row.entries
	}
	for i, err := range b.broken {
		if s.counts.Broken+int64(i) >= s.o.Table.SkipBroken {
			return s.locate(err, 0)
		}
	}
	if b.err != nil {
		return s.locate(b.err, 0)
	}
	s.counts.add(b.counts)
	s.line += b.lines
	switch {
	case p.err == io.EOF:
		return checkEnd(s.o.Name, s.header, s.counts)
	case p.err != nil:
		return s.locate(p.err, 1)
	}
	return nil
}

// locate turns the line number of an error, which is relative to its piece, into one of the whole
// input. An error without a line number gets `line`.
func (s *source) locate(err error, line int64) error {
	var in *fs.InputError
	if !errors.As(err, &in) {
		return err
	}
	at := *in
	if at.Path == "" {
		at.Path = s.o.Name
	}
	line = s.line + max(at.Line, line)
	if at.Line == 0 {
		return fs.AtLine(&at, line)
	}
	at.Line = line
	return &at
}

// report reports progress: rows is the number of rows read so far.
func (in *intake) report(f *fs.File, rows int64) {
	total := int64(-1)
	if f.Size() >= 0 && len(in.o.Paths) == 1 {
		total = f.Size()
	}
	in.o.Progress(Progress{Phase: "read", BytesRead: in.done + f.BytesRead(), BytesTotal: total,
		Rows: in.stats.Rows + rows, RowsTotal: -1})
}

// add adds the counts of another part of the input.
func (c *Counts) add(d Counts) {
	c.Rows += d.Rows
	c.EmptyLines += d.EmptyLines
	c.Comments += d.Comments
	c.Unlabelled += d.Unlabelled
	c.ZeroRows += d.ZeroRows
	c.RepeatedLabels += d.RepeatedLabels
	c.ExplicitZeros += d.ExplicitZeros
	c.Broken += d.Broken
}

// maxRows keeps row numbers within 31 bits, on which all packages rely.
const maxRows = math.MaxInt32

// add takes one row: its label names and one of three contents. These are feature indices with the
// bits of their values, a text, or numbers.
func (in *intake) add(row batchRow, labels [][]byte, index, bits []uint32) error {
	if in.weights != nil {
		if w, err := in.weights.next(); err != nil || w == 0 {
			in.leaveOut(labels, len(index)+len(row.numbers))
			return err
		}
	}
	return in.put(row, labels, index, bits, false)
}

// put numbers and spills a row.
func (in *intake) put(row batchRow, labels [][]byte, index, bits []uint32, term bool) error {
	if n := len(in.spill.shards); n > maxRows>>16 {
		return fs.Inputf("", 0, "more than %d instances: split the data", maxRows)
	}
	in.measure(row.numbers)
	in.ids = in.ids[:0]
	for _, name := range labels {
		in.ids = append(in.ids, in.labelID(name))
	}
	slices.Sort(in.ids)
	in.stats.LabelEntries += int64(len(in.ids))
	in.stats.MaxLabels = max(in.stats.MaxLabels, int64(len(in.ids)))
	if in.words != nil {
		in.words.above = uint32(in.numbers())
		index, bits = in.words.of(row, index, bits)
	}
	for _, x := range index {
		in.table.add(x)
		if in.inDocuments != nil && !term {
			in.inDocuments.add(x)
		}
	}
	for _, n := range row.numbers {
		in.table.add(n.index)
	}
	return in.spill.add(in.ids, index, bits, row.numbers)
}

// leaveOut removes a row from the counts.
func (in *intake) leaveOut(labels [][]byte, features int) {
	in.stats.LeftOut++
	in.stats.Rows--
	if len(labels) == 0 {
		in.stats.Unlabelled--
	}
	if features == 0 && !in.o.Text {
		in.stats.ZeroRows--
	}
}

// labelID numbers a name when it first appears, and counts its rows.
func (in *intake) labelID(name []byte) uint32 {
	id, ok := in.labelIDs[string(name)]
	if !ok {
		id = uint32(len(in.labels))
		own := string(name)
		in.labelIDs[own] = id
		in.labels = append(in.labels, own)
		in.perLabel = append(in.perLabel, 0)
	}
	in.perLabel[id]++
	return id
}
