package model

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"taxon/internal/data/taxonomy"
	"taxon/internal/model/form"
	"taxon/internal/model/shard"
)

func FuzzManifest(f *testing.F) {
	good, err := encodeManifest(Manifest{Format: formatName, Version: Version, Counts: Counts{Nodes: 2},
		Files: []File{{Name: shard.Name(0), SHA256: zeroSum, Nodes: 2}, {Name: fileStructure, SHA256: zeroSum},
			{Name: fileLabels, SHA256: zeroSum}, {Name: fileFeatures, SHA256: zeroSum}, {Name: fileTrace, SHA256: zeroSum}}})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := parseManifest(good); err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(checksumPrefix + zeroSum))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := parseManifest(b); err == nil {
			if _, err := encodeManifest(*m); err != nil {
				t.Errorf("accepted but cannot be written: %v", err)
			}
		}
	})
}

func FuzzTables(f *testing.F) {
	meta := Meta{Labels: []string{"a", "b"}, LabelCounts: []uint32{2, 1}, Feature: []uint32{7, 2, 100},
		Structure: &taxonomy.Structure{Names: []string{"a", "b"}, Parents: []uint32{0}, Children: []uint32{1}},
		Tree: &taxonomy.Tree{Parent: []int32{-1, 0, 0}, Kind: []taxonomy.Kind{taxonomy.Virtual, taxonomy.Node, taxonomy.Node},
			Name:  []string{"", "a", "b"},
			Label: []int32{-1, 0, 1}, Depth: []int32{0, 1, 1}, Leaf: []bool{false, true, true}}}
	f.Add(encodeStructure(&meta))
	f.Add(encodeLabels(&meta))
	f.Add(encodeFeatures(meta.Feature))
	f.Add(encodeVocabulary(&Text{Vocabulary: []string{"a"}, IDF: []float64{1.5}}))
	f.Add([]byte("taxon structure 1\nnodes\t99999999999\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if tree, user, err := parseStructure("f", b); err == nil && checkTree(tree, 1<<30) == nil &&
			(user == nil || checkStructure(user) == nil) {
			again, user2, err := parseStructure("f", encodeStructure(&Meta{Tree: tree, Structure: user}))
			if err != nil || !reflect.DeepEqual(again, tree) || !reflect.DeepEqual(user, user2) {
				t.Errorf("structure does not survive a round trip: %v", err)
			}
		}
		if names, counts, err := parseLabels("f", b); err == nil && len(names) != len(counts) {
			t.Error("labels")
		}
		if features, err := parseFeatures("f", b); err == nil && !bytes.Equal(encodeFeatures(features), b) {
			t.Error("features do not survive a round trip")
		}
		if text, err := parseVocabulary("f", b); err == nil && len(text.IDF) != len(text.Vocabulary) {
			t.Error("vocabulary")
		}
		parseTrace("f", b)
	})
}

// TestFormNeedsVersion: a manifest with a form says so by its version.
func TestFormNeedsVersion(t *testing.T) {
	man := Manifest{Format: formatName, Version: Version, Form: form.Form{Weights: form.Whole, Predictor: form.Descent}}
	b, err := encodeManifest(man)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseManifest(b); err == nil || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("a form in version 1: %v", err)
	}
}
