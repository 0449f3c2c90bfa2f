package main

import (
	"strings"
	"testing"
)

// TestTrainRefusesBelowTheProgram: the program alone takes more than a few MiB, however
// little the data.
func TestTrainRefusesBelowTheProgram(t *testing.T) {
	code, _, stderr := runWith(t, "a 1:1\nb 2:1\n", "train", "--data", "-", "--memory", "30MiB", "--threads", "1", "--out",
		t.TempDir()+"/m")
	if code == 0 || !strings.Contains(stderr, "--memory is 30MiB") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}
