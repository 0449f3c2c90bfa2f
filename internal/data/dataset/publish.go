package dataset

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"taxon/internal/data/textio"
	"taxon/internal/fs"
	"taxon/internal/linalg/sparse"
)

// noColumn marks an index that is not a feature, for example that of a word that only one row has.
const noColumn = math.MaxUint32

// publisher is the state of the second pass.
type publisher struct {
	o        Options
	dir      *fs.OutDir
	in       *intake
	features []feature // by column
	idf      []float64 // by column, text only
	weigher  weigher   // text only
	nnz      []int64   // by shard
	constant []uint32  // indices of numbers that never change
	numbers  int       // number features beside words; they have the first indices
	terms    []string  // of these
	mu       sync.Mutex
	rows     int64 // written, for progress
}

func (p *publisher) publish(ctx context.Context) (*Report, error) {
	p.standardise()
	if p.numbers = p.in.numbers(); p.numbers > 0 {
		p.terms = p.in.schema.Terms()
	}
	p.number()
	steps := []func(context.Context) error{p.writeRows, p.writePostings, p.writeFeatures, p.writeNames, p.writeTerms,
		p.writeTable}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.in.spill.remove(); err != nil { // before the size of the folder is computed
		return nil, err
	}
	return p.seal(ctx)
}

// number assigns columns to the features, in the first pass's table.
func (p *publisher) number() {
	t := &p.in.table
	before := cmp.Compare[uint32]
	if p.in.words != nil {
		n := uint32(p.numbers)
		before = func(a, b uint32) int {
			if a <= n || b <= n {
				return cmp.Compare(a, b)
			}
			return strings.Compare(p.term(a), p.term(b))
		}
	}
	p.features = t.ranked(before)
	if p.o.Text {
		p.dropWords()
		p.weigher, _ = newWeigher(p.o.Words.Options, p.idf, func(column int) string { // checked before
			return p.term(p.features[column].index)
		})
	}
	for column, f := range p.features {
		t.put(f.index, uint32(column))
	}
	for _, index := range p.constant {
		t.put(index, noColumn)
	}
}

// term returns the word, or the name of the number, at an index.
func (p *publisher) term(index uint32) string {
	if int(index) > p.numbers {
		return p.in.words.list[int(index)-p.numbers-1]
	}
	return p.terms[index-1]
}

// dropWords drops the words that Options.Words excludes by their document frequency, and the words
// that every row has.
func (p *publisher) dropWords() {
	kept := p.features[:0]
	for _, f := range p.features {
		if int(f.index) <= p.numbers {
			kept, p.idf = append(kept, f), append(p.idf, 1)
			continue
		}
		idf := p.inverseFrequency(f)
		if !p.o.Words.keeps(int64(f.rows), p.in.stats.Rows) || idf == 0 {
			p.in.table.put(f.index, noColumn)
			continue
		}
		kept = append(kept, f)
		p.idf = append(p.idf, idf)
	}
	p.features = kept
}

// inverseFrequency returns the idf of a word, which documents determine. A word of terms alone has that
// of a word of one document.
func (p *publisher) inverseFrequency(f feature) float64 {
	if p.in.inDocuments == nil {
		return inverseFrequency(p.in.stats.Rows, int64(f.rows))
	}
	return inverseFrequency(p.in.stats.Rows-p.in.stats.Terms, max(int64(p.in.inDocuments.get(f.index)), 1))
}

// writeRows writes the shards and the rows' labels, several shards concurrently.
func (p *publisher) writeRows(ctx context.Context) error {
	sp, st := p.in.spill, &p.in.stats
	labels, err := createBinary(p.dir, rowLabelsFile, header{kindLabels, uint64(st.Rows), uint64(st.LabelEntries),
		uint64(st.Labels)})
	if err != nil {
		return err
	}
	p.nnz = make([]int64, len(sp.shards))
	zero := make([]int64, len(sp.shards))
	most := make([]int64, len(sp.shards))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(p.o.Threads)
	for i := range sp.shards {
		g.Go(func() error {
			w := &shardWriter{p: p, shard: i, labels: labels}
			err := w.write(ctx)
			zero[i], most[i] = w.zeroRows, w.maxFeatures
			return err
		})
	}
	if err := labels.close(g.Wait()); err != nil {
		return err
	}
	for i := range sp.shards {
		st.Nonzeros += p.nnz[i]
		st.MaxFeatures = max(st.MaxFeatures, most[i])
		if p.o.Text {
			st.ZeroRows += zero[i]
		}
	}
	st.Columns = int64(len(p.features))
	return nil
}

// wrote reports progress. Shards call it from their goroutines.
func (p *publisher) wrote(rows int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows += rows
	p.o.Progress(Progress{Phase: "write", BytesRead: p.in.done, BytesTotal: p.in.done, Rows: p.rows,
		RowsTotal: p.in.stats.Rows})
}

func (p *publisher) writeFeatures(context.Context) error {
	f, err := createBinary(p.dir, featuresFile, header{kind: kindFeatures, a: uint64(len(p.features))})
	if err != nil {
		return err
	}
	index, rows := f.array(0, 0, p.o.bufBytes()), f.array(1, 0, p.o.bufBytes())
	for column, ft := range p.features {
		if p.o.Text {
			ft.index = uint32(column + 1)
		}
		index.u32(ft.index)
		rows.u32(ft.rows)
	}
	if err := f.close(cmp.Or(index.flush(), rows.flush())); err != nil || !p.o.Text {
		return err
	}
	f, err = createBinary(p.dir, idfFile, header{kind: kindIDF, a: uint64(len(p.features))})
	if err != nil {
		return err
	}
	idf := f.array(0, 0, p.o.bufBytes())
	for _, v := range p.idf {
		idf.u64(math.Float64bits(v))
	}
	return f.close(idf.flush())
}

func (p *publisher) writeNames(context.Context) error {
	if err := p.writeList(labelsFile, func(yield func(string) bool) {
		for _, name := range p.in.labels {
			if !yield(textio.Field(name)) {
				return
			}
		}
	}); err != nil || !p.o.Text {
		return err
	}
	return p.writeList(vocabularyFile, func(yield func(string) bool) {
		for _, f := range p.features {
			if !yield(p.term(f.index)) {
				return
			}
		}
	})
}

// seal computes the checksums of all files, writes the manifest and publishes the folder.
func (p *publisher) seal(ctx context.Context) (*Report, error) {
	names, err := p.dir.Names()
	if err != nil {
		return nil, err
	}
	var words *Words
	if len(p.o.Words.Flags()) > 0 {
		words = &p.o.Words
	}
	m := manifest{Format: manifestFormat, Version: version, Stats: p.in.stats,
		Source: Source{Paths: p.o.Paths, Form: p.in.form, ZeroBased: p.o.ZeroBased, Weights: p.o.Weights, Words: words,
			Strings: p.o.Strings.Flags()}}
	if p.in.stats.Terms > 0 {
		m.Source.LabelText, m.Source.LabelWeight = p.o.LabelText.Paths, p.o.LabelText.weight()
	}
	report := &Report{Stats: m.Stats, Warnings: append(m.Stats.Warnings(), p.in.schema.Warnings(p.in.labels)...)}
	for _, name := range names {
		if name == fs.MarkName {
			continue
		}
		if !p.made(name) {
			return nil, fs.Inputf(p.dir.Join(name), 0, "is not a file of a data set, and is in the way of one: remove "+
				"it and ingest again")
		}
		item, err := seal(ctx, p.dir, name)
		if err != nil {
			return nil, err
		}
		m.Files = append(m.Files, item)
		report.Bytes += item.Bytes
	}
	m.Fingerprint = fingerprint(m.Files)
	report.Fingerprint = m.Fingerprint
	doc, err := m.encode()
	if err != nil {
		return nil, err
	}
	report.Bytes += int64(len(doc))
	if err := p.dir.Write(manifestFile, doc); err != nil {
		return nil, err
	}
	return report, p.dir.Commit()
}

// made reports whether a file of this name belongs to this data set.
func (p *publisher) made(name string) bool {
	for i := range p.in.spill.shards {
		if name == shardFile(i) {
			return true
		}
	}
	return slices.Contains([]string{rowLabelsFile, postingsFile, featuresFile, idfFile, labelsFile, vocabularyFile,
		tableFile, weightsFile, termsFile}, name)
}

// shardWriter writes one shard with its features renumbered to columns.
type shardWriter struct {
	p           *publisher
	shard       int
	labels      *binaryFile
	pairs       []uint64
	numbers     []uint64 // numbers beside words, which are joined with pairs later
	zeroRows    int64
	maxFeatures int64
}

func (w *shardWriter) write(ctx context.Context) error {
	p, sh, buf := w.p, w.p.in.spill.shards[w.shard], w.p.o.bufBytes()
	nnz := sh.features
	if p.o.Text || len(p.constant) > 0 {
		var err error
		if nnz, err = w.countKept(ctx); err != nil {
			return err
		}
	}
	p.nnz[w.shard] = nnz
	f, err := createBinary(p.dir, shardFile(w.shard), header{kindShard, uint64(sh.rows), uint64(nnz),
		uint64(len(p.features))})
	if err != nil {
		return err
	}
	begin, index, value := f.array(0, 0, buf), f.array(1, 0, buf), f.array(2, 0, buf)
	first := int64(w.shard) << sparse.RowShift
	labelBegin, labelIndex := w.labels.array(0, 8*first, buf), w.labels.array(1, 4*sh.before, buf)
	at, labelAt := uint64(0), uint64(sh.before)
	in := p.in.spill.reader(w.shard, buf)
	for i := range sh.rows {
		if err = w.step(ctx, i); err == nil {
			err = in.next()
		}
		if err != nil {
			return f.close(err)
		}
		w.renumber(in)
		begin.u64(at)
		labelBegin.u64(labelAt)
		for _, pair := range w.pairs {
			index.u32(uint32(pair >> 32))
			value.u32(uint32(pair))
		}
		for _, l := range in.labels {
			labelIndex.u32(l)
		}
		at += uint64(len(w.pairs))
		labelAt += uint64(len(in.labels))
	}
	begin.u64(at)
	if w.shard == len(p.in.spill.shards)-1 {
		labelBegin.u64(labelAt)
	}
	p.wrote(int64(sh.rows % progressRows))
	return f.close(cmp.Or(begin.flush(), index.flush(), value.flush(), labelBegin.flush(), labelIndex.flush()))
}

// step checks for cancellation and reports progress, once in progressRows rows.
func (w *shardWriter) step(ctx context.Context, row int) error {
	if row%progressRows != 0 {
		return nil
	}
	if row > 0 {
		w.p.wrote(progressRows)
	}
	return ctx.Err()
}

// renumber converts a row to column<<32 | bits of the value, ascending. It standardises the numbers
// of tables.
func (w *shardWriter) renumber(in *spillReader) {
	t := &w.p.in.table
	w.pairs = w.pairs[:0]
	w.numbers = w.numbers[:0]
	for _, pair := range in.pairs {
		if column := t.get(uint32(pair)); column != noColumn {
			w.pairs = append(w.pairs, uint64(column)<<32|pair>>32)
		}
	}
	for _, n := range in.numbers {
		if column := t.get(n.index); column != noColumn {
			w.numbers = append(w.numbers, uint64(column)<<32|uint64(floatBits(w.p.in.schema.Standardise(n.index, n.value))))
		}
	}
	slices.Sort(w.pairs)
	if w.p.o.Text {
		w.p.weigher.weigh(w.pairs)
	}
	if len(w.numbers) > 0 {
		w.pairs = append(w.pairs, w.numbers...)
		slices.Sort(w.pairs)
	}
	if len(w.pairs) == 0 {
		w.zeroRows++
	}
	w.maxFeatures = max(w.maxFeatures, int64(len(w.pairs)))
}

// countKept counts the shard's entries that have a column. The count determines the file's layout,
// so it must be known before the first row is written.
func (w *shardWriter) countKept(ctx context.Context) (n int64, err error) {
	in := w.p.in.spill.reader(w.shard, w.p.o.bufBytes())
	for range w.p.in.spill.shards[w.shard].rows {
		if err := in.next(); err != nil {
			return 0, err
		}
		for _, pair := range in.pairs {
			if w.p.in.table.get(uint32(pair)) != noColumn {
				n++
			}
		}
		for _, x := range in.numbers {
			if w.p.in.table.get(x.index) != noColumn {
				n++
			}
		}
	}
	return n, ctx.Err()
}
