// Package demo holds the data of `taxon demo`: real text, small enough to be part of the program,
// with a hierarchy deep enough to show the benefit of one.
//
// The text is a part of WordNet 3.0: the nouns below animal, food and artifact. A document is a
// noun's synonyms and gloss. Its classes are its direct hypernyms; a few documents have two. The
// hierarchy follows first hypernyms up to "entity". Classes with fewer than 8 documents are
// omitted. A hash selects one document in five of each class for the test. A class is named by its
// first synonym, made unique by a number.
//
// The program in folder gen generates the files and documents the reasons for these choices.
// WordNet may be redistributed with Princeton's notice, LICENSE.wordnet.
package demo

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"strings"
)

//go:generate go run ./gen --wordnet /usr/share/wordnet --out .

//go:embed train.txt.gz test.txt.gz hierarchy.txt.gz LICENSE.wordnet
var files embed.FS

// Files returns training and test documents in the text format (`label[,label]<TAB>text` lines),
// the hierarchy (`parent child` lines) and the licence notice that must go with them. The caller
// may change the slices.
func Files() (train, test, hierarchy []byte, notice string, err error) {
	for _, f := range []struct {
		name string
		text *[]byte
	}{{"train.txt.gz", &train}, {"test.txt.gz", &test}, {"hierarchy.txt.gz", &hierarchy}} {
		if *f.text, err = unpack(f.name); err != nil {
			return nil, nil, nil, "", fmt.Errorf("demo data inside the binary: %s: %w", f.name, err)
		}
	}
	text, err := files.ReadFile("LICENSE.wordnet")
	if err != nil {
		return nil, nil, nil, "", fmt.Errorf("demo data inside the binary: %w", err)
	}
	return train, test, hierarchy, string(text), nil
}

// Credit returns the line of the notice that names the owner.
func Credit(notice string) string {
	for _, line := range strings.Split(notice, "\n") {
		if strings.Contains(line, "Copyright") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// unpack decompresses an embedded file.
func unpack(name string) ([]byte, error) {
	packed, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
