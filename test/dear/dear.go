// Package dear holds back tests that are too slow for each `go test ./...`. `make test-dear` runs
// them, as a part of ci-long.
package dear

import (
	"os"
	"testing"
)

// all reports whether the slow cases run.
func all() bool { return os.Getenv("TAXON_TEST_DEAR") != "" }

// Some returns the first n cases, or all of them if the slow cases run.
func Some[T any](cases []T, n int) []T {
	if all() {
		return cases
	}
	return cases[:n]
}

// Only skips a test unless the slow cases run.
func Only(t *testing.T) {
	t.Helper()
	if !all() {
		t.Skip("dear: make test-dear runs it")
	}
}
