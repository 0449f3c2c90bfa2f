package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"taxon/internal/cluster/client"
	taxonv1 "taxon/proto/taxon/v1"
)

// freeAddr is an address of loopback that nobody listens on just now.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// awaitReady asks /readyz until it answers so.
func awaitReady(t *testing.T, page string, want int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	got := 0
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+page+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			continue
		}
		_ = answer.Body.Close()
		if got = answer.StatusCode; got == want {
			return
		}
	}
	t.Fatalf("/readyz of %s answers %d, want %d", page, got, want)
}

// A process is ready when it can work, and says no before.
func TestReadyProbes(t *testing.T) {
	dir := t.TempDir()
	coordinator, pages := freeAddr(t), []string{freeAddr(t), freeAddr(t), freeAddr(t)}
	run(t, "store", "--dir", filepath.Join(dir, "s"), "--coordinator", coordinator, "--metrics", pages[0])
	run(t, "worker", "--dir", filepath.Join(dir, "w"), "--slots", "1", "--coordinator", coordinator, "--metrics", pages[1])
	awaitReady(t, pages[0], http.StatusServiceUnavailable)
	awaitReady(t, pages[1], http.StatusServiceUnavailable)
	c := run(t, "coordinator", "--dir", filepath.Join(dir, "c"), "--listen", coordinator, "--lease", "300ms", "--metrics",
		pages[2])
	c.ready(t, "ready on")
	for _, page := range pages {
		awaitReady(t, page, http.StatusOK)
	}
	cl, err := client.Dial(t.Context(), client.Options{Verb: "test", Coordinator: coordinator, Patience: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	r, err := cl.Jobs.Stores(t.Context(), &taxonv1.StoresRequest{})
	if err != nil || len(r.GetShards()) != 1 {
		t.Fatalf("%v, %v", r, err)
	}
	if s := r.GetShards()[0]; !s.GetEmpty() || s.GetFree() == 0 || s.GetReserve() == 0 {
		t.Errorf("an empty shard on disk says of itself: %v", s)
	}
}

// Uploaded data goes from the store with the last job that refers to it.
func TestDataIsCollected(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("data.svm"), []byte(strings.Repeat("a 1:1 2:0.5\nb 3:1 4:0.5\n", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := run(t, "coordinator", "--dir", in("c"), "--listen", "127.0.0.1:0", "--lease", "300ms", "--keep-data",
		"100ms").ready(t, `ready on (\S+),`)[1]
	run(t, "store", "--dir", in("s"), "--memory", "1GiB", "--coordinator", addr).ready(t, "ready on")
	run(t, "worker", "--dir", in("w"), "--slots", "1", "--coordinator", addr).ready(t, "ready on")
	if code, _, stderr := runWith(t, "", "submit", "--data", in("data.svm"), "--id", "j", "--wait", "--quiet",
		"--coordinator", addr); code != 0 {
		t.Fatal(stderr)
	}
	time.Sleep(500 * time.Millisecond) // several times as long as data is kept that nobody needs
	if code, _, stderr := runWith(t, "", "export", "--job", "j", "--format", "model", "--out", in("model"), "--quiet",
		"--coordinator", addr); code != 0 {
		t.Fatal(stderr)
	}
	if code, _, stderr := runWith(t, "", "cancel", "j", "--discard", "--yes", "--quiet", "--coordinator",
		addr); code != 0 {
		t.Fatal(stderr)
	}
	cl, err := client.Dial(t.Context(), client.Options{Verb: "test", Coordinator: addr, Patience: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		r, err := cl.Jobs.Stores(t.Context(), &taxonv1.StoresRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if r.GetShards()[0].GetEmpty() {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the shard still holds %v", r)
		}
	}
}
