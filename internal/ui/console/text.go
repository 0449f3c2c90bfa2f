package console

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Width is the number of columns for text.
const Width = 80

// Style emphasises text on a terminal. The zero value leaves text unchanged.
type Style struct{ on bool }

// NewStyle returns a style that emphasises if w is a terminal, NO_COLOR is not set, and the
// terminal is not dumb.
func NewStyle(w io.Writer) Style {
	f, ok := w.(*os.File)
	return Style{ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))}
}

// Bold returns t in bold type. Dim, Green and Red are its siblings.
func (s Style) Bold(t string) string  { return s.wrap("1", t) }
func (s Style) Dim(t string) string   { return s.wrap("2", t) }
func (s Style) Green(t string) string { return s.wrap("32", t) }
func (s Style) Red(t string) string   { return s.wrap("31", t) }

func (s Style) wrap(code, t string) string {
	if !s.on || t == "" {
		return t
	}
	return "\x1b[" + code + "m" + t + "\x1b[0m"
}

// Fold breaks a text into lines of at most width columns, indenting all but the first.
func Fold(text string, width, indent int) string {
	var b strings.Builder
	column := indent
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// Clip shortens a line to n columns. A live line that wraps could not be redrawn.
func Clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	if n < 2 {
		return ""
	}
	return string(r[:n-1]) + "…"
}
