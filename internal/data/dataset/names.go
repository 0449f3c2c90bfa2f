package dataset

import (
	"fmt"
	"slices"

	"taxon/internal/fs"
)

// File describes one file of a data set's folder.
type File struct {
	Name   string // name without its folder
	Bytes  int64
	SHA256 string // hex
}

// Listing holds the content of a manifest: enough to copy the folder elsewhere.
type Listing struct {
	Fingerprint string
	Files       []File // files sorted by name, without the manifest itself
	Manifest    []byte // the document itself
	Stats       Stats  // counts as stated in the document
}

// ManifestName is the name of the file that holds Listing.Manifest. A copy of a data set must write
// it last.
const ManifestName = manifestFile

// LabelsName is the name of the file that holds the labels' names, one per line.
const LabelsName = labelsFile

// List reads the manifest of a folder that Ingest wrote, but not the other files. It returns the
// errors of Open.
func List(dir string) (*Listing, error) {
	if _, err := loadManifest(dir); err != nil {
		return nil, err
	}
	doc, err := readManifest(dir)
	if err != nil {
		return nil, fs.Explain(dir, err)
	}
	return ParseManifest(doc)
}

// ParseManifest parses a manifest from another host. It refuses a manifest that is damaged or that
// names a file outside its folder.
func ParseManifest(doc []byte) (*Listing, error) {
	m, err := decodeManifest(doc)
	if err == nil {
		err = m.Stats.check()
	}
	if err != nil {
		return nil, fmt.Errorf("manifest of a data set: %w", err)
	}
	l := &Listing{Fingerprint: m.Fingerprint, Manifest: doc, Stats: m.Stats}
	for _, f := range m.Files {
		if !plainName(f.Name) || f.Bytes < 0 || f.Bytes > maxCount {
			return nil, fmt.Errorf("manifest of a data set: damaged (file %q of %d bytes)", f.Name, f.Bytes)
		}
		l.Files = append(l.Files, File(f))
	}
	return l, nil
}

// plainName reports whether a name has the form of those that Ingest chooses, which cannot lead out
// of a folder.
func plainName(name string) bool {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-') {
			return false
		}
	}
	return name != "" && name[0] != '.' && name != manifestFile
}

// namesFiles lists the files with the names of columns and labels, their terms and the weights of words, which
// are everything that a model keeps of its training data.
var namesFiles = []string{labelsFile, featuresFile, idfFile, vocabularyFile, tableFile, termsFile}

// HoldsNames reports whether OpenNames reads the file.
func HoldsNames(name string) bool { return slices.Contains(namesFiles, name) }

// OpenNames opens a data set without its instances. The set's Matrix has its counts but no rows;
// LabelBegin, LabelIndex, PosBegin and PosRows are nil. The files of instances need not exist.
func OpenNames(dir string) (*Set, error) {
	m, err := loadManifest(dir)
	if err != nil {
		return nil, err
	}
	m.Files = slices.DeleteFunc(m.Files, func(f manifestItem) bool { return !HoldsNames(f.Name) })
	o := newOpener(dir, m)
	if err := o.openNames(); err != nil {
		o.set.Close()
		return nil, err
	}
	return o.set, nil
}

// openNames maps and checks the files that OpenNames needs.
func (o *opener) openNames() error {
	if err := o.mapFiles(); err != nil {
		return err
	}
	if err := o.readFeatures(); err != nil {
		return err
	}
	if err := o.readNames(); err != nil {
		return err
	}
	if err := o.readTerms(); err != nil {
		return err
	}
	return o.readTable()
}
