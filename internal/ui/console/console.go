// Package console shows messages to a person at a terminal: a live progress line, notes and
// warnings, text with emphasis, folded and clipped to a width. Without a terminal it writes plain
// lines.
package console

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
)

// UI is a progress.Reporter that writes to stderr. On a terminal, progress is one live line.
// Elsewhere it is a plain line every 10 s, or as TAXON_PROGRESS_EVERY says.
//
// Its methods may be called concurrently.
type UI struct {
	mu   sync.Mutex
	w    io.Writer
	live bool
	// Quiet suppresses progress and notes. Warnings are still shown.
	Quiet bool
	// Options renders the options within notes and warnings. New sets it to [option.Flags].
	Options func(text string) string

	// plain is the interval between plain lines.
	plain time.Duration
	width func() int
	now   func() time.Time
	tick  func(time.Duration) (c <-chan time.Time, stop func())

	// shown is the live line on the screen.
	shown   string
	current *bar
}

const (
	liveEvery  = 100 * time.Millisecond // fast enough to look live, slow enough to be cheap
	plainEvery = 10 * time.Second
)

// New returns a UI that writes to w. It is live if w is a terminal that can redraw a line.
func New(w io.Writer) *UI {
	u := &UI{w: w, Options: option.Flags, plain: plainEvery, now: time.Now, width: func() int { return Width }}
	u.tick = func(every time.Duration) (<-chan time.Time, func()) {
		t := time.NewTicker(every)
		return t.C, t.Stop
	}
	if s, err := strconv.ParseFloat(os.Getenv("TAXON_PROGRESS_EVERY"), 64); err == nil && s >= liveEvery.Seconds() &&
		s < 1e6 {
		u.plain = time.Duration(s * float64(time.Second))
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		u.live = true
		u.width = func() int {
			if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
				return n
			}
			return Width
		}
	}
	return u
}

// Start starts a progress line. what describes the work, and total is the number of items, where
// zero means unknown. A progress line that is still open is ended. Done must be called on the
// result.
func (u *UI) Start(what string, total int64) progress.Progress {
	return u.start(what, total, format.Count)
}

// StartBytes is Start for an amount of bytes.
func (u *UI) StartBytes(what string, total int64) progress.Progress {
	return u.start(what, total, format.Bytes)
}

// start starts a progress line whose amounts are formatted by format.
func (u *UI) start(what string, total int64, format func(int64) string) *bar {
	u.Close()
	p := &bar{ui: u, what: what, total: total, format: format, began: u.now()}
	if u.Quiet {
		return p
	}
	every := u.plain
	if u.live {
		every = liveEvery
	}
	ticks, stopTicks := u.tick(every)
	p.quit, p.ended = make(chan struct{}), make(chan struct{})
	u.mu.Lock()
	u.current = p
	u.mu.Unlock()
	go func() {
		defer close(p.ended)
		defer stopTicks()
		for {
			select {
			case <-ticks:
				p.draw()
			case <-p.quit:
				return
			}
		}
	}()
	return p
}

// Note prints a line for the user: what was done, or what to try next.
func (u *UI) Note(format string, args ...any) {
	if !u.Quiet {
		u.say("", format, args...)
	}
}

// warningLead is the prefix of a warning.
const warningLead = "taxon: warning: "

// Warn prints a line about something that the user may want to change, even if Quiet.
func (u *UI) Warn(format string, args ...any) { u.say(warningLead, format, args...) }

// say prints a line.
func (u *UI) say(lead, text string, args ...any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.erase()
	fmt.Fprintf(u.w, "%s%s\n", lead, format.Safe(u.Options(strings.TrimRight(fmt.Sprintf(text, args...), "\n"))))
}

// Close ends the open progress line, if there is one.
func (u *UI) Close() {
	u.mu.Lock()
	p := u.current
	u.mu.Unlock()
	if p != nil {
		p.Done()
	}
}

// erase clears the live line. The caller must hold mu.
func (u *UI) erase() {
	if u.shown != "" {
		fmt.Fprint(u.w, "\r\x1b[K")
		u.shown = ""
	}
}

// bar is the progress of one piece of work. The zero value of its counters is the start.
type bar struct {
	ui     *UI
	what   string
	total  int64
	format func(int64) string
	began  time.Time

	mu sync.Mutex
	// first is the amount done by earlier runs, which does not count towards the rate.
	first int64
	done  int64
	// grown is the time of the last increase of done.
	grown time.Time
	extra []string

	once sync.Once
	// quit and ended are nil if the UI is quiet.
	quit, ended chan struct{}
}

// Set sets the amount done, and text to add to the line, such as "gap 1.2e-02". It does not write,
// so it may be called often.
func (p *bar) Set(done int64, extra ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done != p.done {
		p.grown = p.ui.now()
	}
	p.done, p.extra = done, append(p.extra[:0], extra...)
}

// Resume sets the amount that earlier runs have done. It may be called several times.
func (p *bar) Resume(done int64) {
	p.mu.Lock()
	p.first, p.done = done, max(done, p.done)
	p.mu.Unlock()
}

// Total corrects the number of items.
func (p *bar) Total(total int64) {
	p.mu.Lock()
	p.total = total
	p.mu.Unlock()
}

// Done ends the progress, erases its live line, and waits for its goroutine. It may be called more
// than once.
func (p *bar) Done() {
	p.once.Do(func() {
		if p.quit == nil {
			return
		}
		close(p.quit)
		<-p.ended
		p.ui.mu.Lock()
		defer p.ui.mu.Unlock()
		p.ui.erase()
		if p.ui.current == p {
			p.ui.current = nil
		}
	})
}

// draw prints the current line.
func (p *bar) draw() {
	u := p.ui
	line := format.OneLine(p.line(u.now()))
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.live {
		fmt.Fprintln(u.w, line)
		return
	}
	if line = Clip(line, u.width()-1); line != u.shown {
		fmt.Fprint(u.w, "\r"+line+"\x1b[K")
		u.shown = line
	}
}

// line returns the progress as text: what, done/total, share, rate, time left, and additions.
func (p *bar) line(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := now.Sub(p.began)
	parts := []string{p.what}
	add := func(s string) { parts = append(parts, s) }
	switch {
	case p.total > 0:
		add(fmt.Sprintf("%s/%s", p.format(p.done), p.format(p.total)))
		add(fmt.Sprintf("%d%%", min(100, 100*p.done/p.total)))
	case p.done > 0:
		add(p.format(p.done))
	}
	rate := 0.0
	if s := elapsed.Seconds(); s > 0 && p.done > p.first {
		rate = float64(p.done-p.first) / s
		add(p.rate(rate))
	}
	parts = append(parts, p.extra...)
	if left := format.Left(p.left(now)); left != "" {
		add("ETA " + left)
	}
	add(format.Clock(elapsed))
	return strings.Join(parts, "  ")
}

// left estimates the remaining seconds. It is 0 if unknown. The estimate is the mean time per item,
// updated whenever an item ends, and counts down in between. If one item takes longer than all
// remaining ones were estimated to take, the estimate is unknown. The caller must hold mu.
func (p *bar) left(now time.Time) float64 {
	if p.done <= p.first || p.total <= p.done {
		return 0
	}
	item := p.grown.Sub(p.began).Seconds() / float64(p.done-p.first)
	return item*float64(p.total-p.done) - now.Sub(p.grown).Seconds()
}

// rate formats a rate.
func (p *bar) rate(perSecond float64) string {
	if perSecond < 10 {
		return fmt.Sprintf("%.2g/s", perSecond)
	}
	return p.format(int64(perSecond)) + "/s"
}
