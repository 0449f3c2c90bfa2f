// Command gen generates the demo's files from WordNet's data.noun (Debian package wordnet-base,
// folder /usr/share/wordnet):
//
//	go run ./internal/app/demo/gen --wordnet DIR
//
// It writes train.txt.gz, test.txt.gz, hierarchy.txt.gz and LICENSE.wordnet to --out. The same
// input gives the same bytes. Package demo describes the selection.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"taxon/internal/fs/vfs"
)

func main() {
	from := flag.String("wordnet", "", "folder that holds WordNet 3.0's data.noun")
	out := flag.String("out", filepath.Join("internal", "demo"), "folder to write to")
	flag.Parse()
	if *from == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "gen: --wordnet DIR is required, and nothing else: the folder that holds data.noun")
		os.Exit(2)
	}
	if err := generate(*from, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate reads WordNet from the folder from and writes the files to the folder out.
func generate(from, out string) error {
	f, err := vfs.OS.Open(filepath.Join(from, "data.noun"))
	if err != nil {
		return err
	}
	defer f.Close()
	nouns, err := readNouns(f)
	if err != nil {
		return err
	}
	c := choose(nouns)
	if len(c.train) == 0 {
		return fmt.Errorf("data.noun holds none of the chosen subtrees: is it WordNet 3.0?")
	}
	for name, text := range map[string][]byte{
		"train.txt.gz":     instances(c, c.train),
		"test.txt.gz":      instances(c, c.test),
		"hierarchy.txt.gz": hierarchy(c),
	} {
		packed, err := pack(text)
		if err != nil {
			return err
		}
		if err := vfs.WriteFile(vfs.OS, filepath.Join(out, name), packed, 0o644); err != nil {
			return err
		}
	}
	return vfs.WriteFile(vfs.OS, filepath.Join(out, "LICENSE.wordnet"), []byte(nouns.notice), 0o644)
}

// pack compresses text without a name or a time, so that equal texts give equal files.
func pack(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
