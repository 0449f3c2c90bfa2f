package program

import (
	"cmp"
	"fmt"
	"slices"

	"taxon/worker/codec"
)

// Layout describes values of a method that begin with the same bytes. store/FORMAT.md lists all layouts.
type Layout struct {
	// Owner is the folder of the method. It is empty for the values of all methods.
	Owner string
	// Names are the names of the families, in Markdown.
	Names string
	// By says which tasks write the values, and Holds says what is in them.
	By, Holds string
	// Formats are the first bytes that tell such a value from others.
	Formats []byte
}

// shared are the formats that values of all methods may begin with.
var shared = []byte{codec.FormatVector, codec.FormatNarrow, FormatWeights}

// layouts lists all layouts in the order of their declaration.
var layouts = []Layout{{Names: "`weights`", By: "every emitting task of any method", Holds: "final weights of nodes",
	Formats: []byte{FormatWeights}}}

// Declare adds the layouts of a method's values. The method's package calls it in init. It panics
// if values of another layout begin with the same byte. Only vectors of package codec and weights
// may share theirs.
func Declare(owner string, added ...Layout) {
	for _, l := range added {
		l.Owner = owner
		for _, format := range l.Formats {
			if other := declared(format); other != nil && !slices.Contains(shared, format) {
				panic(fmt.Sprintf("%s of %s and %s of %s begin with the same byte %02x: take one that is not in store/FORMAT.md",
					other.Names, other.Owner, l.Names, owner, format))
			}
		}
		layouts = append(layouts, l)
	}
}

// declared returns a layout of a format, or nil.
func declared(format byte) *Layout {
	for i := range layouts {
		if slices.Contains(layouts[i].Formats, format) {
			return &layouts[i]
		}
	}
	return nil
}

// Declared reports whether a value begins with the byte of a declared layout. Tests of methods ask it.
func Declared(value []byte) bool { return len(value) > 0 && declared(value[0]) != nil }

// Layouts lists all layouts, by the names of their owners.
func Layouts() []Layout {
	return slices.SortedStableFunc(slices.Values(layouts), func(a, b Layout) int { return cmp.Compare(a.Owner, b.Owner) })
}
