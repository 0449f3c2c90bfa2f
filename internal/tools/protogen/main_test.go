package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

const root = "../../.."

// TestCommittedCodeIsCurrent fails when a .proto file has changed and its code has
// not, or when a tool's version has.
func TestCommittedCodeIsCurrent(t *testing.T) {
	if err := run(t.Context(), root, "proto", true); err != nil {
		t.Error(err)
	}
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), dir, "none", true); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if err := run(t.Context(), dir, ".", true); err == nil {
		t.Error("an empty folder is taken")
	}
	if err := os.WriteFile(filepath.Join(dir, "a.proto"), []byte("syntax = \"proto3\";\nmessage {"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), dir, ".", true); err == nil {
		t.Error("a broken file is taken")
	}
}
