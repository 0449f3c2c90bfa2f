package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"taxon/internal/fs"
	"taxon/internal/labelset"
)

// encodeCutoffs renders cutoffs.json; its shortest decimals read back to the same float64.
func encodeCutoffs(c *labelset.Cutoffs) ([]byte, error) {
	b, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode cut-offs: %w", err)
	}
	return append(b, '\n'), nil
}

// parseCutoffs reads a cutoffs.json; whether it fits the model is for Meta.validate to say.
func parseCutoffs(path string, b []byte) (*labelset.Cutoffs, error) {
	c := new(labelset.Cutoffs)
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, &fs.InputError{Path: path, Msg: "broken JSON: " + err.Error()}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, &fs.InputError{Path: path, Msg: "text after the end"}
	}
	return c, nil
}

// AddCutoffs puts cut-offs that were fitted after the training, in so many seconds of time and of CPU, into
// the model in dir, in place of any that it has. Its weights stay as they are.
// The manifest is replaced last, so a model cut short by a crash is found damaged, never
// taken for one with other cut-offs.
func AddCutoffs(dir string, c *labelset.Cutoffs, seconds, cpuSeconds float64) (*Report, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	if err := c.Check(m.Counts.Labels, m.Counts.Terminals); err != nil {
		return nil, err
	}
	b, err := encodeCutoffs(c)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	m.Files = slices.DeleteFunc(m.Files, func(f File) bool { return f.Name == fileCutoffs })
	m.Files = append(m.Files, File{Name: fileCutoffs, Bytes: int64(len(b)), SHA256: hex.EncodeToString(sum[:])})
	held := c.HeldOut
	m.Report.CutoffSeconds, m.Report.CutoffCPU, m.Report.HeldOut = &seconds, &cpuSeconds, &held
	m.Report.CutoffGoal, m.Report.CutoffRule = string(c.Goal), string(c.Rule)
	text, err := encodeManifest(*m)
	if err != nil {
		return nil, err
	}
	if err := fs.WriteFile(fs.Join(dir, fileCutoffs), b); err != nil {
		return nil, err
	}
	if err := fs.WriteFile(fs.Join(dir, fileManifest), text); err != nil {
		return nil, err
	}
	return &m.Report, nil
}

// MultiLabel says whether instances have so many labels that the best class alone will not do.
func (d DataInfo) MultiLabel() bool {
	return float64(d.Positives) > maxSingleLabel*float64(d.Instances)
}
