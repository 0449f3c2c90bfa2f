package chaos

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy forwards TCP connections to a target. It can cut, hold and delay them.
type proxy struct {
	listener net.Listener

	mu     sync.Mutex
	target string
	conns  map[net.Conn]bool
	held   time.Time     // nothing is forwarded before this time
	delay  time.Duration // delay of each piece
}

// newProxy listens for connections. forward sets the target.
func newProxy(t *testing.T) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, conns: map[net.Conn]bool{}}
	go p.accept()
	t.Cleanup(func() {
		l.Close()
		p.cut()
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) forward(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// cut closes all connections and drops data in transit.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset instead of an orderly end
		}
		c.Close()
	}
}

// hold stops all traffic for a while, so that both sides see a silent network.
func (p *proxy) hold(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = time.Now().Add(d)
}

// slow delays each piece from now on.
func (p *proxy) slow(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		out, err := net.Dial("tcp", target)
		if err != nil {
			in.Close()
			continue
		}
		go p.copy(in, out)
		go p.copy(out, in)
	}
}

// copy forwards one direction until either side ends.
func (p *proxy) copy(from, to net.Conn) {
	p.mu.Lock()
	p.conns[from] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, from)
		p.mu.Unlock()
		from.Close()
		to.Close()
	}()
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		p.wait()
		if n > 0 {
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait waits before a piece is forwarded.
func (p *proxy) wait() {
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	time.Sleep(delay)
	for {
		p.mu.Lock()
		left := time.Until(p.held)
		p.mu.Unlock()
		if left <= 0 {
			return
		}
		time.Sleep(left)
	}
}

// trouble disturbs a network at intervals.
type trouble struct {
	random  *rand.Rand
	proxies []*proxy
	most    time.Duration // longest silence
	next    time.Time
	pause   time.Duration // mean time between two disturbances
	made    map[string]int
}

func (w *trouble) strike() {
	if time.Now().Before(w.next) {
		return
	}
	p := w.proxies[w.random.IntN(len(w.proxies))]
	switch w.random.IntN(3) {
	case 0:
		p.cut()
		w.made["cut"]++
	case 1:
		p.hold(w.most/10 + time.Duration(w.random.Int64N(int64(w.most))))
		w.made["held"]++
	case 2:
		p.slow(time.Duration(w.random.Int64N(int64(5 * time.Millisecond))))
		w.made["slowed"]++
	}
	w.next = time.Now().Add(w.pause/2 + time.Duration(w.random.Int64N(int64(w.pause))))
}
