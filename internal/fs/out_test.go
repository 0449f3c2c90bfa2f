package fs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckWritable checks that the place of a result is tested before the work, without leaving a
// file.
func TestCheckWritable(t *testing.T) {
	dir := t.TempDir()
	if err := CheckWritable(filepath.Join(dir, "new", "model")); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "new")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	file := filepath.Join(dir, "plain")
	if err := os.WriteFile(file, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := CheckWritable(filepath.Join(file, "below", "model")); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("below a plain file: %v", err)
	}
}
