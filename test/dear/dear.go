// Package dear holds back what is too slow for each `go test ./...`: `make test-dear` runs it, as a
// part of ci-long.
package dear

import (
	"os"
	"testing"
)

// all says whether dear cases run.
func all() bool { return os.Getenv("TAXON_TEST_DEAR") != "" }

// Some are the first n of a list of cases, or all of them where dear cases run.
func Some[T any](cases []T, n int) []T {
	if all() {
		return cases
	}
	return cases[:n]
}

// Only skips a test that runs only where dear cases do.
func Only(t *testing.T) {
	t.Helper()
	if !all() {
		t.Skip("dear: make test-dear runs it")
	}
}
