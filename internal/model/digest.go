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

// Digest computes weights_sha256: the SHA-256 of the node records in node order. A Writer has
// one. Used alone, it gives the digest of weights that are not stored.
type Digest struct {
	tree    *taxonomy.Tree
	form    form.Form
	columns int // of the weight vectors, the bias included
	next    int // node expected next

	path      *shard.Path[float32] // effective vectors, to drop redundant overrides
	kept      []uint32             // scratch: the record's columns
	values    []float32
	buf       []byte // the last record
	overrides int
	weights   hash.Hash
}

// NewDigest begins the digest of a tree's weights over so many columns (the features, and one
// more with a bias), in the form of a model.
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
		// The path keeps the columns, so they must not be in the scratch slice.
		d.path.Override(int32(n), slices.Clone(d.kept), d.values)
	}
	d.next++
	d.overrides += len(d.kept)
	d.buf = shard.AppendRecord(d.buf[:0], n, d.kept, d.values)
	d.weights.Write(d.buf)
	return nil
}

// keep copies the pairs that differ from the parent's into kept and values.
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

// Sum is the digest in hex, after every node was written.
func (d *Digest) Sum() (string, error) {
	if err := d.whole(); err != nil {
		return "", err
	}
	return d.sum(), nil
}

func (d *Digest) sum() string { return hex.EncodeToString(d.weights.Sum(nil)) }

// whole says whether every node was written.
func (d *Digest) whole() error {
	if n := d.tree.Len(); d.next != n {
		return fmt.Errorf("write model: %d of %d nodes written", d.next, n)
	}
	return nil
}
