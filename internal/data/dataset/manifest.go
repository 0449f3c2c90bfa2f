package dataset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"taxon/internal/fs"
)

const (
	manifestFile   = "manifest.json"
	manifestFormat = "taxon-data"
	// maxManifestBytes is far above the size of a manifest of 2^31 rows.
	maxManifestBytes = 64 << 20
)

// manifest is the content of the file that is written last. It lists the other files with their
// checksums.
type manifest struct {
	Format      string         `json:"format"`
	Version     int            `json:"version"`
	Fingerprint string         `json:"fingerprint"`
	Stats       Stats          `json:"stats"`
	Files       []manifestItem `json:"files"`
	Source      Source         `json:"source"`
	SHA256      string         `json:"sha256"` // checksum of this document with this field empty
}

type manifestItem struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Source describes the inputs of a data set. It is informational and not part of the fingerprint.
type Source struct {
	Paths []string `json:"paths"`

	// Form is "libsvm", "xmc", "text" or the format of the tables.
	Form      string `json:"form"`
	ZeroBased bool   `json:"zero_based"`

	// Weights is the path of the file of weights. It is empty if there is none.
	Weights string `json:"weights,omitempty"`

	// LabelText lists the files with the terms of labels. LabelWeight is the weight of each term in the
	// loss. Both are zero if there are no terms.
	LabelText   []string `json:"label_text,omitempty"`
	LabelWeight float64  `json:"label_weight,omitempty"`

	// Words is nil unless the instances are texts and the options differ from the default.
	Words *Words `json:"words,omitempty"`

	// Strings holds the options of the string kernel. It is empty if the features are not those of
	// one.
	Strings string `json:"strings,omitempty"`
}

// encode sets the manifest's checksum and returns the document.
func (m *manifest) encode() ([]byte, error) {
	m.SHA256 = ""
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	m.SHA256 = hex.EncodeToString(sum[:])
	b, err = json.MarshalIndent(m, "", "  ")
	return append(b, '\n'), err
}

// decodeManifest parses and checks a document. A document that does not encode to the same bytes is
// refused, so that a change of any byte is detected.
func decodeManifest(b []byte) (*manifest, error) {
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("damaged (not JSON): ingest the data again: %w", err)
	}
	if head.Format != manifestFormat {
		return nil, fmt.Errorf("format %q, a data set has %q", head.Format, manifestFormat)
	}
	if head.Version != version {
		return nil, fmt.Errorf("format version %d, this build reads %d: ingest the data again", head.Version, version)
	}
	m := new(manifest)
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(m); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	again, err := m.encode()
	if err != nil || !bytes.Equal(again, b) {
		return nil, errors.New("damaged (its checksum does not match)")
	}
	if m.Fingerprint != fingerprint(m.Files) {
		return nil, errors.New("damaged (the fingerprint does not match the files)")
	}
	return m, nil
}

// fingerprint is the SHA-256 over the names, sizes and checksums of the data files. It depends on
// the content alone, not on the inputs' paths or the folder's location.
func fingerprint(files []manifestItem) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d\n", manifestFormat, version)
	for _, f := range files {
		fmt.Fprintf(h, "%s %d %s\n", f.Name, f.Bytes, f.SHA256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// seal returns the manifest's entry for a file in dir.
func seal(ctx context.Context, dir *fs.OutDir, name string) (manifestItem, error) {
	f, err := dir.Open(name)
	if err != nil {
		return manifestItem{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, ctxReader{ctx, f})
	if err != nil {
		return manifestItem{}, fs.Explain(dir.Name(), err)
	}
	return manifestItem{Name: name, Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

// ctxReader is a reader whose Read fails once the context is done.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// LooksIngested reports whether Ingest wrote the folder at path. It reads the manifest's format. If
// the manifest is unreadable, it looks for a file that only data sets have. Only Open checks
// whether the folder is complete.
func LooksIngested(path string) bool {
	b, err := readManifest(path)
	var head struct {
		Format string `json:"format"`
	}
	if err == nil && json.Unmarshal(b, &head) == nil {
		return head.Format == manifestFormat
	}
	return path != "" && fs.Exists(fs.Join(path, rowLabelsFile))
}

func readManifest(dir string) ([]byte, error) {
	f, err := fs.OpenRaw(fs.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err == nil && len(b) > maxManifestBytes {
		err = errors.New("the manifest is too long")
	}
	return b, err
}

// Stats counts the content of a data set and the oddities of its source.
type Stats struct {
	Counts
	Columns      int64 `json:"columns"`       // features that occur
	Nonzeros     int64 `json:"nonzeros"`      // stored values
	Labels       int64 `json:"labels"`        // distinct names
	LabelEntries int64 `json:"label_entries"` // (row, label) pairs
	MaxLabels    int64 `json:"max_labels"`    // most labels of a row
	MaxFeatures  int64 `json:"max_features"`  // most features of a row
	Text         bool  `json:"text"`

	// LeftOut counts the rows of weight 0. The other counts do not include them.
	LeftOut int64 `json:"left_out,omitempty"`

	// Terms counts the rows that are texts about labels; the other rows are documents.
	Terms int64 `json:"terms,omitempty"`

	// EmptyTerms and RepeatedTerms count the terms that were left out.
	EmptyTerms    int64 `json:"empty_terms,omitempty"`
	RepeatedTerms int64 `json:"repeated_terms,omitempty"`

	// Weight is the sum of the rows' weights. It is 0 if every weight is 1.
	Weight float64 `json:"weight,omitempty"`
}

// Warnings returns one line for each oddity that a user should know about, in a fixed order.
func (s Stats) Warnings() []string {
	var out []string
	for _, w := range []struct {
		n         int64
		one, many string
	}{
		{s.EmptyLines, "empty line skipped", "empty lines skipped"},
		{s.Broken, "broken row left out", "broken rows left out"},
		{s.Unlabelled, "instance has no label: it is negative for every class", "instances have no label: they are " +
			"negative for every class"},
		{s.ZeroRows, "instance has no features", "instances have no features"},
		{s.RepeatedLabels, "repeated label within a line, taken once", "repeated labels within a line, taken once"},
		{s.ExplicitZeros, "explicit zero value left out", "explicit zero values left out"},
		{s.EmptyTerms, "term of a label without text left out", "terms of labels without text left out"},
		{s.RepeatedTerms, "repeated term of a label, taken once", "repeated terms of labels, taken once"},
	} {
		switch {
		case w.n == 1:
			out = append(out, "1 "+w.one)
		case w.n > 1:
			out = append(out, fmt.Sprintf("%d %s", w.n, w.many))
		}
	}
	return out
}
