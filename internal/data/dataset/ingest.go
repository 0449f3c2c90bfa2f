package dataset

import (
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"

	"taxon/internal/data/table"
	"taxon/internal/fs"
)

// DefaultMemoryBytes bounds an ingest's buffers if Options have no bound.
const DefaultMemoryBytes = 256 << 20

// Options of an Ingest.
type Options struct {
	Paths   []string // inputs, read one after the other; "-" is standard input
	Out     string   // folder to make
	Replace bool     // an existing data set or empty folder at Out is replaced
	Text    bool     // label[,label...]<TAB>text
	Words   Words    // of text
	// label[,label...]<TAB>sequence, as features of a string kernel
	Strings   Strings
	ZeroBased bool // libsvm indices count from 0
	// a file of the instances' weights, a line each; "": all are 1
	Weights string
	Table   table.Options
	FS      fs.Source // nil: fs.Local{}

	// MemoryBytes bounds the buffers for rows (0: DefaultMemoryBytes; at least 1 MiB). Not
	// included are a few words for each feature, label and vocabulary word, the longest line, and
	// what the decompressor needs (xz -9: 64 MiB).
	MemoryBytes int64
	TempDir     string         // for rows on their way, 8 bytes a nonzero; "": next to Out
	Threads     int            // threads that parse, then write; 0: all cores
	Progress    func(Progress) // called now and then from one goroutine; may be nil
}

// Progress of an Ingest.
type Progress struct {
	Phase      string // "read", then "write"
	BytesRead  int64  // of the inputs as stored
	BytesTotal int64  // -1: unknown (standard input)
	Rows       int64  // read or written in this phase
	RowsTotal  int64  // -1 while reading
}

// Report of an Ingest.
type Report struct {
	Stats       Stats
	Warnings    []string
	Fingerprint string
	Bytes       int64 // of the folder
}

// Ingest reads the inputs once, as a stream, and publishes a data set at o.Out. An instance of
// weight 0 is left out, as if its line were not there.
//
// First pass: rows are parsed, labels numbered by first appearance, features counted, and the
// rows spilled to a temporary file. Second pass: features are numbered by falling document
// frequency (ties: smaller original index first; in text, smaller word first), and the rows are
// written as shards. The files depend on the content alone, not on compression, paths, threads,
// memory or the order of indices within a line.
//
// A failed or cancelled Ingest leaves nothing behind.
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

// ingest fills the data set's folder and publishes it.
func ingest(ctx context.Context, o Options, dir *fs.OutDir) (*Report, error) {
	sp, err := newSpill(dir, o.TempDir, o.bufBytes(), o.MemoryBytes/8)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sp.remove() }()
	in := &intake{o: o, spill: sp, labelIDs: map[string]uint32{}}
	if o.Text {
		stop, err := o.Words.stopWords(ctx, o.FS)
		if err != nil {
			return nil, err
		}
		in.words = newWords(terms{ngrams: o.Words.Ngrams, stop: stop})
	}
	if err := in.readWeighed(ctx, dir); err != nil {
		return nil, err
	}
	out := &publisher{o: o, dir: dir, in: in}
	return out.publish(ctx)
}

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
	if err := errors.Join(o.Words.Check(o.Text), o.Strings.Check()); err != nil {
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

// replaceable protects other people's folders from --force.
func replaceable(out string) bool {
	names, err := fs.ReadDirNames(out)
	return err != nil || len(names) == 0 || LooksIngested(fs.Clean(out))
}

// bufBytes is the size of one stream buffer. A thread of the second pass holds six. A thread of
// the first pass holds two (the text of a piece, half a buffer, and what is parsed of it), and
// there are four more for all. Together they take at most half the bound. Spilled rows take an
// eighth of it before they go to disk, the postings a quarter.
func (o Options) bufBytes() int {
	share := o.MemoryBytes / int64(2*(6*o.Threads+4))
	return int(min(max(share, 8<<10), 1<<20))
}

// intake is the first pass.
type intake struct {
	o        Options
	spill    *spill
	labelIDs map[string]uint32
	labels   []string
	perLabel []uint64 // rows of each label
	table    featureTable
	words    *words        // text only
	schema   *table.Schema // of tables; nil: lines
	spread   []spread      // spread of the numbers, by feature

	weights *weighing // nil: none
	stats   Stats
	form    string
	ids     []uint32
	done    int64 // bytes of the inputs finished
	total   int64
}

// progressRows is how often progress is reported and cancellation checked.
const progressRows = 4096

// readWeighed reads the inputs, together with their weights if there are any.
func (in *intake) readWeighed(ctx context.Context, dir *fs.OutDir) (err error) {
	if in.o.Weights == "" && in.o.Table.Weight == "" {
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
	in.stats.Text = in.o.Text
	in.stats.Labels = int64(len(in.labels))
	return in.spill.flush()
}

// expand lists the files of a pattern or of a folder of parts. They are read one by one, so that
// errors name file and line.
func (in *intake) expand(ctx context.Context, path string) ([]string, error) {
	if _, ok := in.o.FS.(fs.Local); !ok {
		return []string{path}, nil
	}
	return fs.Expand(ctx, path)
}

func (in *intake) readPath(ctx context.Context, path string) error {
	if in.o.Table.FormatOf(path, in.o.Text) != "" {
		return in.readTable(ctx, path)
	}
	if in.schema != nil {
		return fs.Inputf(path, 0, "is no table, as those before it: ingest one kind of file at a time")
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
	s := startPieces(ctx, f, o, in.o.Threads, in.o.bufBytes()/2)
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
		in.tell(f, src.counts.Rows)
	}
	in.form = formOf(o, src.header)
	in.stats.Counts.add(src.counts)
	in.tell(f, 0)
	in.done += f.BytesRead()
	return nil
}

// source is what is known of the input being read.
type source struct {
	o      ReaderOptions
	header *xmcHeader
	counts Counts
	line   int64 // lines taken
}

// each calls f with the rows of a piece. It returns io.EOF after the last one if the whole input
// was sound.
func (s *source) each(p *piece, f func(row batchRow, labels [][]byte, index, bits []uint32) error) error {
	b := &p.rows
	labels, entries := 0, 0
	for i, row := range b.rows {
		if s.header != nil {
			if taken, err := s.header.take(s.counts.Rows+int64(i), row.labels-labels+row.entries-entries); err != nil {
				return fs.Inputf(s.o.Name, s.line+row.line, "%w", err)
			} else if !taken {
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
			return s.place(err, 0)
		}
	}
	if b.err != nil {
		return s.place(b.err, 0)
	}
	s.counts.add(b.counts)
	s.line += b.lines
	switch {
	case p.err == io.EOF:
		return checkEnd(s.o.Name, s.header, s.counts)
	case p.err != nil:
		return s.place(p.err, 1)
	}
	return nil
}

// place turns an error's line within a piece into one of the input; line is used if the error has
// none.
func (s *source) place(err error, line int64) error {
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

func (in *intake) tell(f *fs.File, rows int64) {
	total := int64(-1)
	if f.Size() >= 0 && len(in.o.Paths) == 1 {
		total = f.Size()
	}
	in.o.Progress(Progress{Phase: "read", BytesRead: in.done + f.BytesRead(), BytesTotal: total,
		Rows: in.stats.Rows + rows, RowsTotal: -1})
}

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

// maxRows keeps row numbers within 31 bits. All packages rely on that.
const maxRows = math.MaxInt32

// add takes one row: label names, and either feature indices with the bits of their values, or a
// text, or numbers.
func (in *intake) add(row batchRow, labels [][]byte, index, bits []uint32) error {
	if n := len(in.spill.shards); n > maxRows>>16 {
		return fs.Inputf("", 0, "more than %d instances: split the data", maxRows)
	}
	if in.weights != nil {
		if w, err := in.weights.next(); err != nil || w == 0 {
			in.leaveOut(labels, len(index)+len(row.numbers))
			return err
		}
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
		terms, tf := in.words.count(row.text)
		index, bits = append(index, terms...), append(bits, tf...)
	}
	for _, x := range index {
		in.table.add(x)
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
