package dataset

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"taxon/internal/ui/option"
)

// Strings turn lines LABEL[,LABEL...]<TAB>SEQUENCE into the features of a string kernel ([JMLR]
// 2.2). There is one feature for each string u of p symbols, so that the inner product of two rows
// is the normalised kernel:
//
//	spectrum   phi_u(s) = how often u occurs in s
//	gappy      phi_u(s) = sum over occurrences of u in s, with gaps of g symbols in all at most, of decay^gaps
//
// (Leslie, Eskin, Noble 2002; Lodhi et al. 2002. The latter raise decay to the length of the whole
// span, which differs by the factor decay^p, and normalising removes that.) The index of u is the
// number that its symbols write in the alphabet's base, plus 1. So two strings never share a
// feature, there is no vocabulary, and data read with the same options have the same features. The
// zero value reads no line as a sequence.
type Strings struct {
	// Kernel is "spectrum" or "gappy". It is empty if lines are not sequences.
	Kernel string

	// Length is p, the number of symbols of a string.
	Length int

	// Gaps is g, the largest number of gaps in an occurrence. Only the gappy kernel has gaps.
	Gaps int

	// Decay is the factor per gap, above 0 and at most 1. Only the gappy kernel uses it.
	Decay float64

	// Alphabet is the set of symbols: "letters", "printable" or "bytes".
	Alphabet string
}

// Kernels and Alphabets list the values that the fields of Strings accept.
var (
	Kernels   = []string{"spectrum", "gappy"}
	Alphabets = []string{"letters", "printable", "bytes"}
)

// maxGapped bounds the number of occurrences that may begin at one symbol.
const maxGapped = 10000

// Flags returns the flags of `taxon ingest --strings` that give these features. It is empty if no
// line is a sequence.
func (o *Strings) Flags() string {
	switch o.Kernel {
	case "":
		return ""
	case "spectrum":
		return option.Flags(fmt.Sprintf("‹kernel=spectrum› ‹length=%d› ‹alphabet=%s›", o.Length, o.Alphabet))
	}
	return option.Flags(fmt.Sprintf("‹kernel=%s› ‹length=%d› ‹gaps=%d› ‹decay=%g› ‹alphabet=%s›", o.Kernel, o.Length,
		o.Gaps, o.Decay, o.Alphabet))
}

// symbols returns the number of symbols of the alphabet, and its first byte.
func (o *Strings) symbols() (n, first int) {
	switch o.Alphabet {
	case "letters":
		return 26, 'A'
	case "printable":
		return 95, ' '
	}
	return 256, 0
}

// longest returns the greatest length p for which all strings have different indices.
func (o *Strings) longest() (p int) {
	n, _ := o.symbols()
	for all := n; all < maxIndex; all *= n {
		p++
	}
	return p
}

// Check returns an error that says which option is invalid.
func (o *Strings) Check() error {
	if o.Kernel == "" {
		return nil
	}
	if p := o.longest(); o.Length < 1 || o.Length > p {
		more := ""
		if o.Alphabet != "letters" {
			more = "; ‹alphabet=letters›, A to Z, takes longer ones"
		}
		return fmt.Errorf("‹length=%d›: must be from 1 to %d with ‹alphabet=%s›, so that each string has a "+
			"feature of its own%s", o.Length, p, o.Alphabet, more)
	}
	if o.Kernel == "spectrum" {
		return nil
	}
	ways := 1.0 // number of ways to put g gaps or fewer between p symbols
	for k := 1; k <= o.Gaps; k++ {
		ways = ways * float64(o.Length-1+k) / float64(k)
	}
	switch {
	case o.Gaps < 0 || ways > maxGapped:
		return fmt.Errorf("‹gaps=%d›: from each symbol of a sequence %.0f strings of length %d would begin: must be 0 or "+
			"more, and at most %d strings", o.Gaps, ways, o.Length, maxGapped)
	case !(o.Decay > 0 && o.Decay <= 1):
		return fmt.Errorf("‹decay=%g›: must be above 0 and at most 1", o.Decay)
	}
	return nil
}

// occurrence is the index of a string that occurs in a sequence, and the occurrence's weight in
// phi.
type occurrence struct {
	index  uint32
	weight float64
}

// stringRow converts lines to rows. It owns the scratch memory.
type stringRow struct {
	o    Strings
	code []uint32
	all  []occurrence
}

// parse parses a line into a row of unit length with ascending indices.
func (s *stringRow) parse(line []byte, row *Row) error {
	if err := parseTextLine(line, row); err != nil {
		return err
	}
	text := row.Text
	row.Text = nil
	n, first := s.o.symbols()
	s.code, s.all = s.code[:0], s.all[:0]
	for k, c := range text {
		if s.o.Alphabet == "letters" && 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if int(c) < first || int(c) >= first+n {
			return fmt.Errorf("byte %d of the sequence, %s, is none of ‹alphabet=%s›: use another one, %s", k+1,
				show(text[k:k+1]), s.o.Alphabet, strings.Join(Alphabets, ", "))
		}
		s.code = append(s.code, uint32(int(c)-first))
	}
	gaps := s.o.Gaps
	if s.o.Kernel == "spectrum" {
		gaps = 0
	}
	for at := range s.code {
		s.from(at, s.o.Length, gaps, 0, 1, uint32(n))
	}
	slices.SortStableFunc(s.all, func(a, b occurrence) int { return cmp.Compare(a.index, b.index) })
	m, square := 0, 0.0
	for k := 0; k < len(s.all); m++ {
		sum, index := 0.0, s.all[k].index
		for ; k < len(s.all) && s.all[k].index == index; k++ {
			sum += s.all[k].weight
		}
		s.all[m] = occurrence{index, sum}
		square += float64(sum * sum)
	}
	norm := math.Sqrt(square)
	for _, u := range s.all[:m] {
		row.Index, row.Value = append(row.Index, u.index+1), append(row.Value, float32(u.weight/norm))
	}
	return nil
}

// from adds the occurrences whose next symbol is at position `at`. They have `left` more symbols,
// that one included, with at most `gaps` gaps between them. prefix and weight describe the symbols
// before, and n is the size of the alphabet. It recurses once per symbol.
func (s *stringRow) from(at, left, gaps int, prefix uint32, weight float64, n uint32) {
	prefix = prefix*n + s.code[at]
	if left == 1 {
		s.all = append(s.all, occurrence{prefix, weight})
		return
	}
	for g := 0; g <= gaps && at+1+g < len(s.code); g++ {
		s.from(at+1+g, left-1, gaps-g, prefix, weight, n)
		weight *= s.o.Decay
	}
}
