package program

import (
	"cmp"
	"math"
	"slices"

	"taxon/worker/codec"
)

// WeightsName is the name of the value with the final weights of a task.
const WeightsName = "weights"

// NodeWeights are final weights of one node: ascending columns, the bias last, and the values
// there. Whether they are whole vectors or differences from the parent is defined by the model's
// form.
type NodeWeights struct {
	Node    uint32
	Columns []uint32
	Values  []float32
}

// FormatWeights is the format byte of the encoded weights.
const FormatWeights = 0x42

// EncodeWeights encodes the value of name WeightsName, in the layout of store/FORMAT.md. It sorts
// nodes in place.
func EncodeWeights(nodes []NodeWeights) []byte {
	nodes = slices.DeleteFunc(nodes, func(n NodeWeights) bool { return len(n.Columns) == 0 })
	slices.SortFunc(nodes, func(a, b NodeWeights) int { return cmp.Compare(a.Node, b.Node) })
	numbers, entries, base := make([]uint32, len(nodes)), 0, uint32(math.MaxUint32)
	for i, n := range nodes {
		numbers[i] = n.Node
		entries += len(n.Columns)
		base = min(base, n.Columns[0])
	}
	if len(nodes) == 0 {
		base = 0
	}
	e := codec.Encoder{B: make([]byte, 0, 32+4*len(nodes)+5*entries+entries/4)} // most differences fit a byte
	e.Byte(FormatWeights)
	e.Uvarint(len(nodes))
	e.Uvarint(entries)
	e.Uvarint(int(base))
	e.Ascending(numbers, 0)
	for _, n := range nodes {
		e.Uvarint(len(n.Columns))
		e.Ascending(n.Columns, base)
		e.F32(n.Values)
	}
	return e.B
}

// DecodeWeights decodes what EncodeWeights wrote, into records of 32-bit words, one after the
// other: the node, the number m of its columns, m columns, and the bits of m values. For a value
// with many columns per node, the words take at most 8/5 of its bytes.
func DecodeWeights(b []byte) (words []uint32, err error) {
	d := codec.Decoder{B: b}
	d.Format(FormatWeights)
	nodes := d.Count(2 + 1 + 4) // number, m, a column, a value
	entries := d.Count(5)
	base := uint32(d.Number(math.MaxUint32))
	numbers := make([]uint32, nodes)
	d.Ascending(numbers, 0, math.MaxUint32)
	words = make([]uint32, 0, 2*nodes+2*entries)
	for _, n := range numbers {
		m := d.Count(5)
		if d.Err != nil || m == 0 || m > entries {
			d.Fail()
			break
		}
		entries -= m
		at := len(words) + 2
		words = append(words, n, uint32(m))[:at+2*m]
		d.Ascending(words[at:at+m], base, math.MaxUint32)
		d.U32(words[at+m:])
	}
	if entries > 0 {
		d.Fail()
	}
	return words, d.End("weights")
}
