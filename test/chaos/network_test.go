package chaos

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"taxon/test/cluster"
)

// TestNetwork cuts the connections between the processes, silences them for longer than a lease,
// and slows them down. Messages that arrive late or twice must change nothing.
func TestNetwork(t *testing.T) {
	thorough(t)
	t.Parallel()
	_, gap, _ := settings(t)
	want := bench.Embedded(t, gap)
	dir := t.TempDir()
	const lease = 500 * time.Millisecond
	pause := 60 * time.Millisecond
	if os.Getenv("TAXON_DATA") != "" {
		pause = time.Second
	}
	coordinator := bench.Process(t, "coordinator", "--dir", filepath.Join(dir, "coordinator"), "--listen", "127.0.0.1:0",
		"--lease", lease.String())
	c := bench.Join(coordinator)
	var proxies []*proxy
	for _, name := range []string{"store-0", "store-1"} { // all processes reach a store through its proxy
		p := newProxy(t)
		p.forward(bench.Process(t, "store", "--dir", filepath.Join(dir, name), "--coordinator", coordinator, "--listen",
			"127.0.0.1:0", "--advertise", p.addr()))
		proxies = append(proxies, p)
	}
	for _, name := range []string{"worker-0", "worker-1"} { // a worker reaches the coordinator through its own proxy
		p := newProxy(t)
		p.forward(coordinator)
		bench.Process(t, "worker", "--dir", filepath.Join(dir, name), "--name", name, "--slots", "1", "--coordinator",
			p.addr())
		proxies = append(proxies, p)
	}
	job := c.Submit(t, gap)
	w := &trouble{random: rand.New(rand.NewPCG(3, 3)), proxies: proxies, most: 2 * lease, pause: pause,
		made: map[string]int{}}
	s := c.Done(t, job, want, func(cluster.Status) { w.strike() })
	t.Logf("%v; %d attempts repeated, %d workers lost", w.made, s.Tasks.Retried, s.Lost)
	if len(w.made) == 0 {
		t.Error("nothing was done to the network")
	}
}
