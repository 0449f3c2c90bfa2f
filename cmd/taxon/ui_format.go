package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/term"

	"taxon/internal/text"
)

// What package text words, as the verbs call it.
var (
	oneLine     = text.Line
	quoteIfOdd  = text.Quoted
	formatCount = text.Number
	counted     = text.Counted
	formatBytes = text.Bytes
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

// formatClock writes a duration as 0:07, 12:03 or 3:04:05, rounded to seconds.
func formatClock(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// formatSeconds writes a measured time to about three digits: 0.041 s, 4.21 s, 312 s.
func formatSeconds(s float64) string {
	switch {
	case s < 0.1:
		return fmt.Sprintf("%.3f s", s)
	case s < 10:
		return fmt.Sprintf("%.2f s", s)
	case s < 100:
		return fmt.Sprintf("%.1f s", s)
	}
	return fmt.Sprintf("%.0f s", s)
}

// mostLeft bounds the times to go that are worth a word, in seconds: a guess of more than a
// week is made of too little to plan by.
const mostLeft = 7 * 24 * 3600

// formatLeft writes a time to go as people read it: 42 s, 2 m 10 s, 10 h 32 m, 3 d 4 h.
// It is empty where there is none (0 or less, not a number) or no guess worth telling.
func formatLeft(seconds float64) string {
	if !(seconds > 0 && seconds <= mostLeft) {
		return ""
	}
	s := max(1, int64(math.Round(seconds)))
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d m %d s", s/60, s%60)
	case s < 24*3600:
		return fmt.Sprintf("%d h %d m", s/3600, s/60%60)
	}
	return fmt.Sprintf("%d d %d h", s/(24*3600), s/3600%24)
}

// formatGap writes a relative gap to three digits: 1.20e-02, and from 1 on, where a power of
// ten helps nobody, 1.23, 45.6 or 12,345.
func formatGap(gap float64) string {
	switch {
	case gap >= 1 && gap < 99.95:
		return fmt.Sprintf("%.3g", gap)
	case gap >= 99.95 && gap < 1e15:
		return formatCount(int64(math.Round(gap)))
	}
	return fmt.Sprintf("%.2e", gap)
}
