package model

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"

	"taxon/internal/fs"
)

// Replaceable returns nil if a model may be published as dir: nothing is there, or an empty
// folder, or one with nothing but a model's files. Anything else belongs to the user.
func Replaceable(dir string) error {
	names, err := fs.ReadDirNames(dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		if st, e := fs.Stat(dir); e == nil && !st.IsDir() {
			return &fs.InputError{Path: dir, Msg: "is a file; a model is a directory: choose another --out"}
		}
		return fs.Explain(dir, err)
	}
	for _, name := range names {
		if !modelFile(name) && !(name == hadoopMark && fs.IsRemote(dir)) {
			return &fs.InputError{Path: dir, Msg: fmt.Sprintf("holds %q, which is no part of a model: choose another --out or empty it", name)}
		}
	}
	return nil
}

// Publish publishes a copy of the model in from, a folder of this machine, as dir, in one step,
// replacing an older model. from stays as it is.
func Publish(from, dir string) error {
	if err := Replaceable(dir); err != nil {
		return err
	}
	out, err := fs.CreateDir(dir, true)
	if err != nil {
		return err
	}
	defer out.Abort()
	if err := out.Fill(from); err != nil {
		return err
	}
	if err := Replaceable(dir); err != nil { // it may have changed meanwhile
		return err
	}
	return out.Commit()
}

func modelFile(name string) bool {
	switch name {
	case fileManifest, fileStructure, fileLabels, fileFeatures, fileVocabulary, fileTrace, fileCutoffs, fileCalibration, fs.MarkName:
		return true
	}
	return (strings.HasPrefix(name, "weights-") || strings.HasPrefix(name, "packed-")) && strings.HasSuffix(name, ".bin")
}
