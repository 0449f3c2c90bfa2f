package backup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"taxon/store"
)

const (
	manifestName = "manifest"
	manifestHead = "taxon snapshot 1 "
	// maxManifest bounds what is read of one: some 100 bytes a file.
	maxManifest = 16 << 20
	maxFiles    = 1 << 16
)

// File is one file of a snapshot.
type File struct {
	Name   string `json:"name"`
	Bytes  uint64 `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
	Values uint64 `json:"values,omitempty"` // of a part
}

// Manifest says what a snapshot holds.
type Manifest struct {
	Job    string `json:"job"`
	Values uint64 `json:"values"`
	Bytes  uint64 `json:"bytes"` // of the values
	Parts  []File `json:"parts"` // values, in files of store.Snapshot's format
	Extra  []File `json:"extra"` // what the writer put beside them
}

// encode gives the manifest's bytes: a line with the checksum and size of the JSON
// behind it.
func (m *Manifest) encode() ([]byte, error) {
	body, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, fmt.Errorf("snapshot: manifest: %w", err)
	}
	return fmt.Appendf(nil, "%s%08x %d\n%s", manifestHead, store.Checksum(body), len(body), body), nil
}

// parseManifest checks and reads a manifest's bytes; store.ErrSnapshot otherwise.
func parseManifest(b []byte) (*Manifest, error) {
	head, body, _ := bytes.Cut(b, []byte("\n"))
	if string(head) != fmt.Sprintf("%s%08x %d", manifestHead, store.Checksum(body), len(body)) {
		return nil, fmt.Errorf("%w: the manifest is damaged, or of another version than 1", store.ErrSnapshot)
	}
	m := &Manifest{}
	if err := json.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("%w: the manifest is no JSON: %s", store.ErrSnapshot, err.Error())
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: manifest: %s", store.ErrSnapshot, err.Error())
	}
	return m, nil
}

func (m *Manifest) check() error {
	if err := store.ValidateJob(m.Job); err != nil {
		return err
	}
	if len(m.Parts)+len(m.Extra) > maxFiles {
		return fmt.Errorf("%d files, at most %d", len(m.Parts)+len(m.Extra), maxFiles)
	}
	seen := map[string]bool{manifestName: true}
	var values uint64
	for _, list := range [][]File{m.Parts, m.Extra} {
		for _, f := range list {
			if err := checkName(f.Name); err != nil {
				return err
			}
			if seen[f.Name] {
				return fmt.Errorf("two files named %q", f.Name)
			}
			seen[f.Name] = true
			values += f.Values
		}
	}
	if values != m.Values {
		return fmt.Errorf("%d values in parts, %d in all", values, m.Values)
	}
	return nil
}

// checkName keeps files within the folder.
func checkName(name string) error {
	if strings.Contains(name, "/") || store.ValidateJob(name) != nil { // same rule
		return fmt.Errorf("file name %q: letters, digits, '.', '_', '-', and first a letter or digit", name)
	}
	return nil
}
