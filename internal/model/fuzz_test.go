package model

import (
	"bytes"
	"reflect"
	"testing"
)

func FuzzManifest(f *testing.F) {
	good, err := encodeManifest(Manifest{Format: formatName, Version: Version, Counts: Counts{Nodes: 2},
		Files: []File{{Name: shardName(0), SHA256: zeroSum, Nodes: 2}, {Name: fileStructure, SHA256: zeroSum},
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

func FuzzShard(f *testing.F) {
	b := appendShardHeader(nil, 3)
	b = appendRecord(b, 3, []uint32{0, 4}, []float32{1, -2})
	b = appendRecord(b, 4, nil, nil)
	f.Add(b, 3, 2, 5)
	f.Add(b[:len(b)-1], 3, 2, 5)
	f.Add(b, 3, -1, 0)
	f.Fuzz(func(t *testing.T, b []byte, first, nodes, columns int) {
		recs, err := parseShard(b, first, nodes, columns)
		if err != nil {
			return
		}
		again := appendShardHeader(nil, first)
		for i, r := range recs {
			for _, c := range r.columns {
				if int64(c) >= int64(columns) {
					t.Fatalf("column %d of %d", c, columns)
				}
			}
			again = appendRecord(again, first+i, r.columns, r.values)
		}
		if !bytes.Equal(again, b) {
			t.Error("accepted bytes are not what the records encode to")
		}
	})
}

func FuzzTables(f *testing.F) {
	meta := tinyMeta()
	f.Add(encodeStructure(&meta))
	f.Add(encodeLabels(&meta))
	f.Add(encodeFeatures(meta.Feature))
	f.Add(encodeVocabulary(&Text{Vocabulary: []string{"a"}, IDF: []float64{1.5}}))
	f.Add([]byte("taxon structure 1\nnodes\t99999999999\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if tree, user, err := parseStructure("f", b); err == nil && checkTree(tree, 1<<30) == nil && (user == nil || checkStructure(user) == nil) {
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

func FuzzPacked(f *testing.F) {
	for values, scale := range map[string][]float32{Singles: nil, Halves: nil, Bytes: {0.5, 0, 0.25}} {
		b := appendPacked(nil, 3, []uint32{2, 0, 1}, []uint32{1, 200, 0}, []float32{1, -2, 0.5}, values, scale)
		f.Add(b, 3, 3, 201)
		f.Add(b[:len(b)-1], 3, 3, 201)
		f.Add(b, 3, 3, 200)
		f.Add(b, 3, 3, -9) // once taken for a great number
	}
	f.Fuzz(func(t *testing.T, b []byte, first, columns, nodes int) {
		s, err := parsePacked(b, first, columns, nodes)
		if err != nil {
			return
		}
		var ids []uint32
		var deltas []float32
		counts := make([]uint32, columns)
		for i := range counts {
			s.eachEntry(i, func(node uint32, delta float32) {
				if int64(node) >= int64(nodes) {
					t.Fatalf("node %d of %d", node, nodes)
				}
				counts[i]++
				ids, deltas = append(ids, node), append(deltas, delta)
			})
		}
		values := Singles
		switch {
		case s.bytes != nil:
			values = Bytes
		case s.values == nil:
			values = Halves
		}
		if !bytes.Equal(appendPacked(nil, first, counts, ids, deltas, values, s.scale), b) {
			t.Error("accepted bytes are not what the entries encode to")
		}
	})
}
