package main

import (
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	taxonv1 "taxon/proto/taxon/v1"
)

func TestMain(m *testing.M) {
	// heaps are small here: the collector would run all the time
	debug.SetGCPercent(400)
	goleak.VerifyTestMain(m)
}

// TestLogLinesHaveTheirDate: jobs last for days.
func TestLogLinesHaveTheirDate(t *testing.T) {
	var out strings.Builder
	a := &app{stdout: &out}
	at := time.Date(2026, 11, 22, 23, 59, 59, 5e6, time.UTC)
	if err := a.printLog(&taxonv1.LogLine{UnixMs: at.UnixMilli(), Level: "info", Text: "sweep 3 committed"}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "2026-11-22 23:59:59.005  info  sweep 3 committed\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseBytes(t *testing.T) {
	for s, want := range map[string]int64{
		"1": 1, "512MiB": 512 << 20, "4GB": 4e9, "2G": 2 << 30, "1.5kib": 1536, "1e9": 1e9, "7B": 7, "1 GiB": 1 << 30,
	} {
		if got, ok := parseBytes(s); !ok || got != want {
			t.Errorf("parseBytes(%q) = %d, %v, want %d", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "0", "-1", "MiB", "1XB", "1MiBiB", "NaN", "inf", "1e30", "0.5", "1 2"} {
		if got, ok := parseBytes(s); ok {
			t.Errorf("parseBytes(%q) = %d, want an error", s, got)
		}
	}
}
