package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"taxon/internal/model/form"
	"taxon/internal/model/shard"
)

// These are the versions of the format. A model as it was trained has Version, a pruned model has
// PrunedVersion, and either has FormVersion if its form is not the default. A reader rejects any
// other version.
const (
	Version       = 1
	PrunedVersion = 2
	FormVersion   = 3
)

const formatName = "taxon-model"

// maxManifestBytes bounds what a reader accepts before anything is verified. A manifest takes about
// 150 bytes per weight shard, so this allows 400,000 shards.
const maxManifestBytes = 64 << 20

// Counts are the sizes of a model.
type Counts struct {
	Nodes     int `json:"nodes"`
	Terminals int `json:"terminals"`
	// Features does not include the bias.
	Features int `json:"features"`
	Labels   int `json:"labels"`
	// Edges is the number of edges of the structure file, or -1 if none was given.
	Edges int `json:"edges"`
	// Overrides is the number of stored weights.
	Overrides int `json:"overrides"`
}

// File describes one file of the model.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// FirstNode and Nodes are set for weight shards only.
	FirstNode int `json:"first_node,omitempty"`
	Nodes     int `json:"nodes,omitempty"`

	// FirstColumn and Columns are set for packed shards only.
	FirstColumn int `json:"first_column,omitempty"`
	Columns     int `json:"columns,omitempty"`
}

// Manifest is the content of manifest.json.
type Manifest struct {
	// Checksum is the first field of the file; see encodeManifest.
	Checksum string   `json:"checksum"`
	Format   string   `json:"format"`
	Version  int      `json:"version"`
	Options  Options  `json:"options"`
	Data     DataInfo `json:"data"`
	Counts   Counts   `json:"counts"`
	// Pruned is nil unless the model is pruned.
	Pruned *Pruned `json:"pruned,omitempty"`

	// Form is set in version 3 only.
	Form form.Form `json:"form,omitzero"`

	Report Report `json:"report"`
	Files  []File `json:"files"`
}

// version returns the version of a manifest with these contents.
func (m *Manifest) version() int {
	switch {
	case m.Form != form.Form{}:
		return FormVersion
	case m.Pruned != nil:
		return PrunedVersion
	}
	return Version
}

// checksumPrefix is the beginning of every manifest, followed by 64 hex digits.
const checksumPrefix = "{\n  \"checksum\": \""

var zeroSum = strings.Repeat("0", hex.EncodedLen(sha256.Size))

// encodeManifest encodes m with its checksum: the SHA-256 of the file's bytes with sixty-four '0'
// in the checksum's place. It covers bytes, so any program can verify it without our JSON encoder.
func encodeManifest(m Manifest) ([]byte, error) {
	m.Checksum = zeroSum
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	b = append(b, '\n')
	sum := sha256.Sum256(b)
	hex.Encode(b[len(checksumPrefix):], sum[:])
	return b, nil
}

// parseManifest verifies and decodes a manifest.
func parseManifest(b []byte) (*Manifest, error) {
	body := len(checksumPrefix) + len(zeroSum)
	if len(b) < body || string(b[:len(checksumPrefix)]) != checksumPrefix {
		return nil, fmt.Errorf("not the manifest of a taxon model")
	}
	zeroed := bytes.Clone(b)
	copy(zeroed[len(checksumPrefix):], zeroSum)
	sum := sha256.Sum256(zeroed)
	if hex.EncodeToString(sum[:]) != string(b[len(checksumPrefix):body]) {
		return nil, fmt.Errorf("checksum does not match: the file is damaged or was edited")
	}
	m := new(Manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("broken JSON: %w", err)
	}
	if m.Format != formatName {
		return nil, fmt.Errorf("format %q, want %q", m.Format, formatName)
	}
	if m.Version < Version || m.Version > FormVersion {
		return nil, fmt.Errorf("model format version %d; this taxon reads versions %d to %d", m.Version, Version, FormVersion)
	}
	if err := m.checkPruned(); err != nil {
		return nil, err
	}
	return m, m.check()
}

// check verifies that the list of files is complete and consistent.
func (m *Manifest) check() error {
	need := map[string]bool{fileStructure: true, fileLabels: true, fileFeatures: true, fileTrace: true}
	if m.Data.Text {
		need[fileVocabulary] = true
	}
	optional := map[string]bool{fileCutoffs: true, fileCalibration: true} // each at most once
	at, shards := 0, 0                                                    // nodes, or columns, in the shards so far
	for _, f := range m.Files {
		if len(f.SHA256) != len(zeroSum) || f.Bytes < 0 {
			return fmt.Errorf("file %q: no size or SHA-256", f.Name)
		}
		if need[f.Name] {
			delete(need, f.Name)
			continue
		}
		if optional[f.Name] {
			delete(optional, f.Name)
			continue
		}
		name, first, size := shard.Name(shards), f.FirstNode, f.Nodes
		if m.Pruned != nil {
			name, first, size = shard.PackedName(shards), f.FirstColumn, f.Columns
		}
		if f.Name != name || first != at || size < 0 || size == 0 && m.Pruned == nil {
			return fmt.Errorf("file %q: not expected here", f.Name)
		}
		shards++
		if at += size; at > m.shardSpan() {
			break
		}
	}
	for _, name := range []string{fileStructure, fileLabels, fileFeatures, fileTrace, fileVocabulary} {
		if need[name] {
			return fmt.Errorf("file %q is not listed", name)
		}
	}
	switch {
	case at == m.shardSpan() && shards > 0:
		return nil
	case m.Pruned != nil:
		return fmt.Errorf("packed shards hold %d columns, the model has %d", at, m.shardSpan())
	}
	return fmt.Errorf("weight shards hold %d nodes, the model has %d", at, m.shardSpan())
}

// shardSpan returns the number of nodes in all shards, or of columns if the model is pruned.
func (m *Manifest) shardSpan() int {
	switch {
	case m.Pruned == nil:
		return m.Counts.Nodes
	case m.Options.Bias > 0:
		return m.Counts.Features + 1
	}
	return m.Counts.Features
}

// checkPruned verifies that version, form and pruning are consistent.
func (m *Manifest) checkPruned() error {
	p := m.Pruned
	switch {
	case m.Version != m.version():
		return fmt.Errorf("version %d does not go together with \"pruned\" and \"form\"", m.Version)
	case p != nil && p.Check() != nil:
		return fmt.Errorf("pruned: threshold %g, values %q: not known", p.Threshold, p.Values)
	}
	return nil
}
