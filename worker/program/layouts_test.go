package program

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"taxon/worker/codec"
)

// TestDeclare: layouts of two methods may not begin with the same byte, which both are named for,
// nor two of one method. Those of package codec may be anybody's.
func TestDeclare(t *testing.T) {
	before := slices.Clone(layouts)
	t.Cleanup(func() { layouts = before })
	refused := func(owner string, l Layout) (why string) {
		defer func() {
			if r := recover(); r != nil {
				why = fmt.Sprint(r)
			}
		}()
		Declare(owner, l)
		return ""
	}
	first := Layout{Names: "`a`", Formats: []byte{0xf1, codec.FormatVector}}
	if why := refused("one", first); why != "" {
		t.Fatal(why)
	}
	for _, owner := range []string{"one", "other"} {
		why := refused(owner, Layout{Names: "`b`", Formats: []byte{0xf2, 0xf1}})
		if !strings.Contains(why, "`a` of one and `b` of "+owner) || !strings.Contains(why, "f1") {
			t.Errorf("a second layout of %s with byte f1: %q", owner, why)
		}
	}
	if why := refused("other", Layout{Names: "`c`", Formats: []byte{codec.FormatVector, codec.FormatNarrow}}); why != "" {
		t.Error(why)
	}
	if !Declared([]byte{0xf1, 0}) || Declared([]byte{0xf7}) || Declared(nil) || !Declared(EncodeWeights(nil)) {
		t.Error("what is declared is not known, or what is not is")
	}
	if all := Layouts(); all[0].Names != "`weights`" || all[1].Owner != "one" || all[2].Owner != "other" {
		t.Errorf("%+v", all)
	}
}
