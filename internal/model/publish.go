package model

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"

	"taxon/internal/fs"
)

// partialSuffix names the folder a model is written in, beside its place. The name is
// fixed so that the next run finds and removes what a killed one left.
const partialSuffix = ".partial"

// retiredSuffix names an older model for the instant in which it is replaced, where
// the system cannot exchange two folders.
const retiredSuffix = ".replaced"

// Replaceable reports whether a model may be published as dir: nil if nothing is
// there, or an empty folder, or one that holds nothing but files of a model. Anything
// else belongs to the user.
func Replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		if st, e := os.Stat(dir); e == nil && !st.IsDir() {
			return &fs.InputError{Path: dir, Msg: "is a file; a model is a directory: choose another --out"}
		}
		return fmt.Errorf("write model: %w", err)
	}
	for _, e := range entries {
		if !modelFile(e.Name()) {
			return &fs.InputError{Path: dir, Msg: fmt.Sprintf("holds %q, which is no part of a model: choose another --out or empty it", e.Name())}
		}
	}
	return nil
}

func modelFile(name string) bool {
	switch name {
	case fileManifest, fileStructure, fileLabels, fileFeatures, fileVocabulary, fileTrace:
		return true
	}
	return strings.HasPrefix(name, "weights-") && strings.HasSuffix(name, ".bin")
}

// publish puts the folder tmp in the place of dir. At every instant dir is the old
// model, the new one, or (only where exchange is not supported) absent.
func publish(tmp, dir string) error {
	if err := syncDir(tmp); err != nil {
		return err
	}
	if err := Replaceable(dir); err != nil { // someone may have put something there meanwhile
		return err
	}
	err := swap(tmp, dir)
	if err != nil {
		return fmt.Errorf("write model: %w", err)
	}
	return syncDir(filepath.Dir(dir))
}

func swap(tmp, dir string) error {
	err := os.Rename(tmp, dir) // works if dir is absent or empty
	if err == nil {
		return nil
	}
	if exchange(tmp, dir) == nil {
		return os.RemoveAll(tmp) // the older model lies there now
	}
	return swapByTwo(tmp, dir)
}

// swapByTwo is swap for systems that cannot exchange two folders.
func swapByTwo(tmp, dir string) error {
	retired := dir + retiredSuffix
	if err := os.RemoveAll(retired); err != nil {
		return err
	}
	if err := os.Rename(dir, retired); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return errors.Join(err, os.Rename(retired, dir))
	}
	return os.RemoveAll(retired)
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("write model: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write model: sync %s: %w", dir, err)
	}
	return nil
}
