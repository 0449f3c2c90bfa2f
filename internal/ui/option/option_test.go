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
