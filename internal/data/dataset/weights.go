package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"taxon/internal/data/textio"
	"taxon/internal/fs"
	"taxon/internal/linalg/sparse"
)

// Positive weights must lie within these bounds, so that products with C are representable in
// float32.
const (
	minWeight = 1e-15
	maxWeight = 1e15
)

// WeightReader reads a file with the weights of instances, one per line.
type WeightReader struct {
	in     *fs.File
	lines  *textio.Reader
	read   int64
	kept   int64
	sum    float64
	differ bool // some weight is not 1
}

// OpenWeights opens a file of weights. The caller closes the reader.
func OpenWeights(ctx context.Context, files fs.Source, path string) (*WeightReader, error) {
	if path == fs.Stdin {
		return nil, fs.Inputf("", 0, "instance weights from standard input: name a file")
	}
	in, err := fs.Open(ctx, files, path)
	if err != nil {
		return nil, err
	}
	return &WeightReader{in: in, lines: textio.NewReader(in, in.Name())}, nil
}

// Sum returns the sum of the weights read so far. It returns 0 if every weight is 1.
func (w *WeightReader) Sum() float64 {
	if w.differ {
		return w.sum
	}
	return 0
}

// Close closes the file.
func (w *WeightReader) Close() {
	if w.in != nil {
		w.in.Close()
	}
}

// weighing reads the weights along with the instances, and writes the weights of those instances
// that are not left out.
type weighing struct {
	*WeightReader
	to    *binaryFile
	array *arrayWriter
	text  string // weight of the table's current row
}

func openWeights(ctx context.Context, o Options, dir *fs.OutDir) (w *weighing, err error) {
	w = &weighing{WeightReader: &WeightReader{}}
	if o.Weights == "" { // a column of a table has them, or only terms do
		w.text = "1"
	} else if w.WeightReader, err = OpenWeights(ctx, o.FS, o.Weights); err != nil {
		return nil, err
	}
	if w.to, err = createBinary(dir, weightsFile, header{kind: kindWeights}); err != nil {
		w.Close()
		return nil, err
	}
	w.array = w.to.array(0, 0, o.bufBytes())
	return w, nil
}

// next returns the weight of the next instance. An instance of weight 0 is left out.
func (w *weighing) next() (x float64, err error) {
	if w.in == nil {
		if x, err = w.parse(w.text); err != nil {
			err = &weightError{err}
		}
	} else {
		x, err = w.Next()
	}
	if x > 0 {
		w.array.u64(math.Float64bits(x))
	}
	return x, err
}

// Next returns the weight of the next instance. An instance of weight 0 is left out.
func (w *WeightReader) Next() (float64, error) {
	line, err := w.lines.Next()
	if errors.Is(err, io.EOF) {
		return 0, fs.Inputf(w.in.Name(), w.read, "the weights end here, and the data goes on: want a "+
			"number for each instance")
	}
	if err != nil {
		return 0, err
	}
	w.read++
	x, err := w.parse(string(line))
	if err != nil {
		return 0, w.lines.Errorf("%v", err)
	}
	return x, nil
}

// parse parses and counts a weight.
func (w *WeightReader) parse(text string) (float64, error) {
	text = strings.TrimSpace(text)
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case math.IsInf(x, 0) || math.IsNaN(x):
		return 0, fmt.Errorf("weight %s is not finite: want a number of 0 or more", text)
	case err != nil || strings.ContainsAny(text, "_xX"): // only decimal numbers are valid, as in the data
		return 0, fmt.Errorf("%s is not a number: want one weight an instance, 0 or more", strconv.Quote(text))
	case x < 0:
		return 0, fmt.Errorf("weight %s is below 0: want a number of 0 or more", text)
	case x > 0 && (x < minWeight || x > maxWeight):
		return 0, outOfRange(text)
	case x > 0:
		w.kept++
		w.sum += x
		w.differ = w.differ || x != 1
	}
	return x, nil
}

func outOfRange(x string) error {
	return fmt.Errorf("weight %s: want 0, or a number from %g to %g", x, minWeight, maxWeight)
}

// End returns an error if weights are left over, blank lines aside, or if every weight is 0.
func (w *WeightReader) End() error {
	if w.in == nil { // the weights were in the data's rows
		return w.someLeft("the weight column")
	}
	line, err := w.lines.Next()
	for err == nil && len(bytes.TrimSpace(line)) == 0 {
		line, err = w.lines.Next()
	}
	if err == nil {
		return w.lines.Errorf("a weight more than the %d instances of the data: want a number for each", w.read)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return w.someLeft(w.in.Name())
}

func (w *WeightReader) someLeft(where string) error {
	if w.kept == 0 {
		return fs.Inputf(where, 0, "all weights are 0: no instance is left")
	}
	return nil
}

// end checks that no weight is left over. It writes the file of weights unless every weight is 1.
func (w *weighing) end(dir *fs.OutDir) error {
	if err := w.End(); err != nil {
		return err
	}
	if !w.differ {
		return dir.Remove(weightsFile)
	}
	h := header{kind: kindWeights, a: uint64(w.kept)}
	if _, err := w.to.f.WriteAt(h.encode(), 0); err != nil {
		return fs.Explain(dir.Name(), err)
	}
	return w.array.flush()
}

// close closes both files. It returns err if it is not nil.
func (w *weighing) close(err error) error {
	w.Close()
	return w.to.close(err)
}

// readWeights reads the weights if the folder has any.
func (o *opener) readWeights() error {
	if _, ok := o.files[weightsFile]; !ok {
		return nil
	}
	part, err := o.section(weightsFile, kindWeights, o.m.Stats.Rows, 0, 0)
	if err != nil {
		return err
	}
	o.set.Weight = sparse.View[float64](part[0])
	for i, x := range o.set.Weight {
		if !(x >= minWeight && x <= maxWeight) {
			return fs.Inputf(filepath.Join(o.dir, weightsFile), 0, "instance %d: %w (instances of weight 0 are "+
				"no part of a data set)", i+1, outOfRange(fmt.Sprint(x)))
		}
	}
	return nil
}
