package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A store that is gone is shown, and forgotten when it is meant; jobs' values that go are
// told of before, and nobody drops weights unasked.
func TestStoresAndKeptValues(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("data.svm"), []byte(strings.Repeat("a 1:1 2:0.5\nb 3:1 4:0.5\n", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := run(t, "coordinator", "--dir", in("c"), "--listen", "127.0.0.1:0", "--lease", "300ms", "--keep-jobs", "2",
		"--keep-days", "9", "--snapshots", in("snapshots"), "--snapshot-every", "1", "--snapshot-pause", "1ms").ready(t,
		`ready on (\S+),`)[1]
	t.Setenv("TAXON_COORDINATOR", addr)
	stores := map[string]*member{}
	for _, name := range []string{"one", "two"} {
		stores[name] = run(t, "store", "--dir", in(name), "--memory", "1GiB", "--name", name, "--coordinator", addr)
		stores[name].ready(t, "ready on")
	}
	run(t, "worker", "--dir", in("w"), "--slots", "1", "--coordinator", addr).ready(t, "ready on")
	says := func(want int, text string, args ...string) string {
		t.Helper()
		code, stdout, stderr := runWith(t, "", args...)
		if code != want || !strings.Contains(stdout+stderr, text) {
			t.Errorf("%s: exit status %d, %q %q; want %d, %q", args, code, stdout, stderr, want, text)
		}
		return stdout
	}
	// until asks until a list's line of a name is as it should be.
	until := func(verb, name string, ok func(line map[string]any) bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			var lines []map[string]any
			if err := json.Unmarshal([]byte(says(0, "", verb, "--json")), &lines); err != nil {
				t.Fatal(err)
			}
			for _, l := range lines {
				if (l["id"] == name || l["job"] == name) && ok(l) {
					return
				}
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %v", verb, lines)
			}
		}
	}
	submit := func(job string) {
		t.Helper()
		says(0, "", "submit", "--data", in("data.svm"), "--id", job, "--wait", "--quiet")
	}
	submit("j")
	until("stores", "one", func(l map[string]any) bool {
		jobs, _ := l["jobs"].([]any)
		return l["state"] == "up" && l["refuses_writes"] == false && l["free_bytes"].(float64) > 1<<29 && len(jobs) == 1 &&
			jobs[0] == "j"
	})
	says(0, "WRITES", "stores")
	says(2, "it is up", "stores", "forget", "two", "--yes")
	stores["two"].stop()
	until("stores", "two", func(l map[string]any) bool { return l["state"] == "down" })
	says(2, "jobs have values on store two: j: give --yes", "stores", "forget", "two")
	until("stores", "two", func(map[string]any) bool { return true })
	says(0, "two: forgotten", "stores", "forget", "two", "--yes")
	if list := says(0, "one", "stores"); strings.Contains(list, "two") {
		t.Errorf("a store that was forgotten is listed: %s", list)
	}
	says(2, "no such member", "stores", "forget", "two")

	submit("k") // on the store that is left
	days := time.Now().Add(9 * 24 * time.Hour).UTC().Format("2006-01")
	until("jobs", "k", func(l map[string]any) bool {
		at, _ := l["values_until"].(string)
		return l["values"] == "kept" && l["values_jobs"] == 2.0 && strings.HasPrefix(at, days)
	})
	says(0, "or 1 more job", "jobs") // j
	says(2, "cancel: job k is done, and this drops its weights for good: give --yes", "cancel", "k", "--discard")
	says(2, "rm: job k is done, and this drops its weights for good: give --yes", "rm", "k")
	says(0, "", "export", "--job", "k", "--format", "model", "--out", in("model"), "--quiet")
	says(0, "its values are dropped", "cancel", "k", "--discard", "--yes")
	until("jobs", "k", func(l map[string]any) bool { return l["state"] == "discarded" && l["values"] == "discarded" })
	says(0, "discarded", "status", "k")
	says(0, `"state": "discarded"`, "status", "k", "--json")
	if _, err := os.Stat(in("snapshots/j")); err != nil {
		t.Fatal(err)
	}
	submit("l") // k was discarded and does not count
	until("jobs", "j", func(l map[string]any) bool {
		return l["state"] == "done" && l["values"] == "kept" && l["values_jobs"] == 1.0 && l["copies_there"] == 0.0
	})
	says(0, "only 0 of 1 copy", "jobs")
	says(0, "the weights of j are dropped", "submit", "--data", in("data.svm"), "--id", "m", "--wait")
	until("jobs", "j", func(l map[string]any) bool {
		return l["state"] == "done" && l["values"] == "dropped" && l["values_until"] == ""
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		// nobody waits for the store that was forgotten
		if _, err := os.Stat(in("snapshots/j")); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the values of j are dropped, but not where they can be")
		}
	}
	says(0, "dropped", "status", "j")
	says(0, "its values are dropped: those of 2 such jobs", "logs", "j")
}

// What can't be undone is asked for on a terminal, and needs --yes without one.
func TestConfirm(t *testing.T) {
	for _, c := range []struct {
		answer        string
		terminal, yes bool
		want          string
	}{
		{"", false, true, ""},
		{"y\n", false, false, "give --yes"},
		{"y\n", true, false, ""},
		{"YES\n", true, false, ""},
		{"\n", true, false, "nothing was done"},
		{"no\n", true, false, "nothing was done"},
		{"", true, false, "EOF"},
	} {
		var asked strings.Builder
		err := (&app{stdin: strings.NewReader(c.answer), stderr: &asked, terminal: c.terminal}).confirm(c.yes,
			"cancel: it goes", "Drop it?")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) &&
			!errors.Is(err, io.EOF) {
			t.Errorf("%+v: %v", c, err)
		}
		if asks := c.terminal && !c.yes; asks != strings.Contains(asked.String(), "Drop it? [y/N]") {
			t.Errorf("%+v: asked %q", c, asked.String())
		}
	}
}
