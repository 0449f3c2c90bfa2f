package option

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
)

func TestRender(t *testing.T) {
	for _, c := range []struct{ text, flags, names string }{
		{"nothing here", "nothing here", "nothing here"},
		{"‹model› and ‹pred› exclude each other", "--model and --pred exclude each other",
			"model and pred exclude each other"},
		{"‹C=0›: must be above 0", "--C 0: must be above 0", "C=0: must be above 0"},
		{`‹data=""›: give a file`, `--data "": give a file`, `data="": give a file`},
		{"‹path-separator= > ›, ‹x=a=b›", "--path-separator  > , --x a=b", "path-separator= > , x=a=b"},
		{"`taxon status j ‹watch›` shows it, or give ‹job=j›", "`taxon status j --watch` shows it, or give --job j",
			"`taxon status j --watch` shows it, or give job=j"},
		{"what is no name stays: ‹›, ‹two words›, ‹-x›, ‹x", "what is no name stays: ‹›, ‹two words›, ‹-x›, ‹x",
			"what is no name stays: ‹›, ‹two words›, ‹-x›, ‹x"},
	} {
		if got := Flags(c.text); got != c.flags {
			t.Errorf("flags of %q: %q, want %q", c.text, got, c.flags)
		}
		if got := Names(c.text); got != c.names {
			t.Errorf("names of %q: %q, want %q", c.text, got, c.names)
		}
	}
}

// TestHasNoFlag: what has no flag is given by --x, also within commands, and what a caller writes itself stays.
func TestHasNoFlag(t *testing.T) {
	HasNoFlag = func(name string) bool { return name == "schedule" }
	t.Cleanup(func() { HasNoFlag = nil })
	const text = "`taxon train ‹C=1› ‹schedule=parity›`: ‹schedule› means nothing to ‹method=td›"
	if got, want := Flags(text), "`taxon train --C 1 --x schedule=parity`: --x schedule means nothing to --method "+
		"td"; got != want {
		t.Errorf("flags: %q, want %q", got, want)
	}
	if got, want := Commands(text), "`taxon train --C 1 --x schedule=parity`: ‹schedule› means nothing to "+
		"‹method=td›"; got != want {
		t.Errorf("commands: %q, want %q", got, want)
	}
	got := Replace("‹a=1› ‹b›", func(name, value string) (string, bool) { return name + ":" + value, name == "a" })
	if want := "a:1 ‹b›"; got != want {
		t.Errorf("replaced: %q, want %q", got, want)
	}
}

func TestErrors(t *testing.T) {
	var e *Error
	if err := Errorf("%s: must be 2 or more: %w", Value("folds", 1),
		io.EOF); err.Error() != "‹folds=1›: must be 2 or more: EOF" ||
		!errors.As(err, &e) || e.Lines != nil || !errors.Is(err, io.EOF) || !Is(fmt.Errorf("tune: %w", err)) || Is(io.EOF) {
		t.Errorf("%v", err)
	}
	if err := Join(nil, nil); err != nil {
		t.Errorf("joined nothing: %v", err)
	}
	err := Join(Errorf("a"), nil, Join(errors.New("b"), io.EOF))
	if !errors.As(err, &e) || !slices.Equal(e.Lines, []string{"a", "b", "EOF"}) || !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
}
