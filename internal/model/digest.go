package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model/form"
	"taxon/internal/model/shard"
)

// Digest computes weights_sha256, the SHA-256 of the node records in node order. A Writer contains
// one. Used alone, it gives the digest of weights that are not stored.
type Digest struct {
	tree *taxonomy.Tree
	form form.Form
	// columns is the length of the weight vectors, including the bias.
	columns int
	// next is the node that must follow.
	next int

	// path holds effective vectors, to find redundant overrides.
	path *shard.Path[float32]
	// kept and values are scratch memory for a record.
	kept   []uint32
	values []float32
	// buf is the last record.
	buf       []byte
	overrides int
	weights   hash.Hash
}

// NewDigest starts the digest of a tree's weights in a model form. The number of columns is the
// number of features, plus one if there is a bias.
func NewDigest(tree *taxonomy.Tree, columns int, form form.Form) *Digest {
	columns = form.Width(columns)
	return &Digest{tree: tree, form: form, columns: columns, path: shard.NewPath[float32](columns), weights: sha256.New()}
}

// WriteNode adds the overrides of node n; see Writer.WriteNode.
func (d *Digest) WriteNode(n int, columns []uint32, values []float32) error {
	if n != d.next || n >= d.tree.Len() {
		return fmt.Errorf("write model: node %d where %d of %d belongs", n, d.next, d.tree.Len())
	}
	if len(columns) != len(values) {
		return fmt.Errorf("write model: node %d: %d columns, %d values", n, len(columns), len(values))
	}
	if err := (shard.Record{Columns: columns, Values: values}).Check(d.columns); err != nil {
		return fmt.Errorf("write model: node %d: %w", n, err)
	}
	d.path.LeaveTo(d.form.Above(d.tree.Parent[n]))
	d.keep(columns, values)
	if !d.tree.Leaf[n] && d.form.Weights == form.Overrides {
		// The path retains the columns, so it gets a copy of the scratch slice.
		d.path.Override(int32(n), slices.Clone(d.kept), d.values)
	}
	d.next++
	d.overrides += len(d.kept)
	d.buf = shard.AppendRecord(d.buf[:0], n, d.kept, d.values)
	d.weights.Write(d.buf)
	return nil
}

// keep copies the pairs that differ from the parent's values into kept and values.
func (d *Digest) keep(columns []uint32, values []float32) {
	kept := slices.Grow(d.kept[:0], len(columns))[:len(columns)]
	other := slices.Grow(d.values[:0], len(columns))[:len(columns)]
	at := 0
	for i, c := range columns {
		v := values[i] + 0 // -0 + 0 is +0
		kept[at], other[at] = c, v
		if v != d.path.Current[c] {
			at++
		}
	}
	d.kept, d.values = kept[:at], other[:at]
}

// Sum returns the digest in hex. It returns an error unless every node was written.
func (d *Digest) Sum() (string, error) {
	if err := d.whole(); err != nil {
		return "", err
	}
	return d.sum(), nil
}

// sum returns the digest of the nodes so far, in hex.
func (d *Digest) sum() string { return hex.EncodeToString(d.weights.Sum(nil)) }

// whole returns an error unless every node was written.
func (d *Digest) whole() error {
	if n := d.tree.Len(); d.next != n {
		return fmt.Errorf("write model: %d of %d nodes written", d.next, n)
	}
	return nil
}
