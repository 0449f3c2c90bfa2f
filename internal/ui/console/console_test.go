package console

import (
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"taxon/internal/ui/format"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// screen is a ui on a hand-driven clock; each beat draws once.
type screen struct {
	*UI
	out  lockedBuffer
	time time.Time
	c    chan time.Time
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newScreen(live bool) *screen {
	s := &screen{time: time.Unix(0, 0), c: make(chan time.Time)}
	s.UI = New(&s.out)
	s.live = live
	s.now = func() time.Time { return s.time }
	s.tick = func(time.Duration) (<-chan time.Time, func()) { return s.c, func() {} }
	return s
}

// begin is Start, with what lies behind it.
func (s *screen) begin(what string, total int64) *bar { return s.start(what, total, format.Count) }

// beat lets d pass and returns when the line of that moment is out.
func (s *screen) beat(p *bar, d time.Duration) {
	s.time = s.time.Add(d)
	p.draw()
}

func TestProgressPlain(t *testing.T) {
	s := newScreen(false)
	p := s.begin("train: sweep", 30)
	s.time = s.time.Add(12 * time.Second)
	p.Set(3, "gap 1.2e-01")
	s.beat(p, 0)
	s.time = s.time.Add(10 * time.Second)
	p.Set(6, "gap 4.0e-02")
	s.beat(p, 0)
	p.Done()
	p.Done()
	want := "train: sweep  3/30  10%  0.25/s  gap 1.2e-01  ETA 1 m 48 s  0:12\n" +
		"train: sweep  6/30  20%  0.27/s  gap 4.0e-02  ETA 1 m 28 s  0:22\n"
	if got := s.out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestProgressLive(t *testing.T) {
	s := newScreen(true)
	s.width = func() int { return 24 }
	p := s.start("ingest", 4<<20, format.Bytes)
	s.beat(p, 0)
	p.Set(1 << 20)
	s.beat(p, time.Second)
	s.Note("a note\n")
	s.beat(p, 0)
	s.beat(p, 0) // nothing new: nothing written
	p.Done()
	want := "\ringest  0B/4MiB  0%  0…\x1b[K" +
		"\ringest  1MiB/4MiB  25%…\x1b[K" +
		"\r\x1b[Ka note\n" +
		"\ringest  1MiB/4MiB  25%…\x1b[K" +
		"\r\x1b[K"
	if got := s.out.String(); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// TestTimeLeftFalls: while an item takes long the time left falls, and what an earlier run had
// done, told bit by bit, is no speed of this one's. Items that are not needed shorten it.
func TestTimeLeftFalls(t *testing.T) {
	s := newScreen(false)
	p := s.begin("tune: training", 20)
	defer p.Done()
	left := func(wait time.Duration, want float64) {
		t.Helper()
		s.time = s.time.Add(wait)
		p.mu.Lock()
		defer p.mu.Unlock()
		if got := p.left(s.time); got != want {
			t.Errorf("%g s left, want %g", got, want)
		}
	}
	for n := range int64(8) {
		p.Resume(n + 1)
		p.Set(n + 1)
	}
	left(10*time.Second, 0) // nothing is known
	p.Set(9)
	left(0, 110)
	left(30*time.Second, 80)
	left(30*time.Second, 50)
	p.Total(17)
	left(0, 20)
	p.Set(10)
	left(0, 35*7)
}

// A line that has hardly begun guesses years, which no one wants to read.
func TestNoTimeLeftBeyondDays(t *testing.T) {
	s := newScreen(false)
	p := s.begin("read", 1_000_000_000)
	defer p.Done()
	p.Set(1)
	s.beat(p, 10*time.Second)
	if got := s.out.String(); strings.Contains(got, "ETA") {
		t.Errorf("got %q", got)
	}
}

func TestProgressWithoutTotal(t *testing.T) {
	s := newScreen(false)
	p := s.begin("read", 0)
	defer p.Done()
	p.Resume(1000)
	p.Set(61_000)
	s.beat(p, 10*time.Second)
	if got, want := s.out.String(), "read  61,000  6,000/s  0:10\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProgressTicks(t *testing.T) {
	s := newScreen(false)
	p := s.begin("read", 0)
	s.c <- time.Time{}
	s.c <- time.Time{} // taken only after the first was drawn
	p.Done()
	if got := s.out.String(); !strings.HasPrefix(got, "read  0:00\n") {
		t.Errorf("got %q", got)
	}
}

// Quiet leaves out what passes, not what is wrong.
func TestQuietWritesWarningsAlone(t *testing.T) {
	s := newScreen(true)
	s.Quiet = true
	p := s.begin("read", 10)
	p.Set(5)
	s.Note("note")
	s.Warn("warning")
	p.Done()
	s.Close()
	if got := s.out.String(); got != "taxon: warning: warning\n" {
		t.Errorf("wrote %q", got)
	}
}

func TestStartEndsTheProgressBefore(t *testing.T) {
	s := newScreen(true)
	one := s.begin("one", 1)
	two := s.begin("two", 1)
	select {
	case <-one.ended:
	default:
		t.Error("the first progress still runs")
	}
	s.Close()
	select {
	case <-two.ended:
	default:
		t.Error("Close left the second running")
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Clip("abcdef", 4), "abc…"},
		{Clip("abc", 4), "abc"},
		{Fold("one two three", 8, 2), "one\n  two\n  three"},
		{Style{}.Bold("x"), "x"},
		{Style{true}.Bold("x"), "\x1b[1mx\x1b[0m"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
