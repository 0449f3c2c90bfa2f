package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"taxon/internal/human"
)

// style puts emphasis on text for a terminal; the zero value leaves text as it is.
type style struct{ on bool }

// newStyle emphasises if w is a terminal and neither NO_COLOR nor a dumb terminal forbids it.
func newStyle(w io.Writer) style {
	f, ok := w.(*os.File)
	return style{ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))}
}

func (s style) bold(t string) string  { return s.wrap("1", t) }
func (s style) dim(t string) string   { return s.wrap("2", t) }
func (s style) green(t string) string { return s.wrap("32", t) }
func (s style) red(t string) string   { return s.wrap("31", t) }

func (s style) wrap(code, t string) string {
	if !s.on || t == "" {
		return t
	}
	return "\x1b[" + code + "m" + t + "\x1b[0m"
}

// What the packages below write, too.
var (
	formatBytes   = human.Bytes
	formatCount   = human.Count
	counted       = human.Counted
	formatClock   = human.Clock
	formatSeconds = human.Seconds
	formatLeft    = human.Left
	formatGap     = human.Gap
	oneLine       = human.OneLine
	quoteIfOdd    = human.QuoteIfOdd
	nearest       = human.Nearest
)
