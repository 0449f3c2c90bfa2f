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
	"taxon/internal/model/calibration"
	"taxon/internal/model/labelset"
)

// encodeFitted encodes a table that was fitted after the training. Decimals are the shortest that
// read back to the same float64.
func encodeFitted(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode what was fitted: %w", err)
	}
	return append(b, '\n'), nil
}

// parseFitted decodes a table that was fitted after the training. Meta.validate checks whether it
// fits the model.
func parseFitted(path string, b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return &fs.InputError{Path: path, Msg: "broken JSON: " + err.Error()}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &fs.InputError{Path: path, Msg: "text after the end"}
	}
	return nil
}

// AddCutoffs adds cut-offs that were fitted after the training to the model in dir. It replaces any
// earlier ones. seconds and cpuSeconds are the time of fitting. The weights do not change.
func AddCutoffs(dir string, c *labelset.Cutoffs, seconds, cpuSeconds float64) (*Report, error) {
	return addFitted(dir, fileCutoffs, c, func(m *Manifest) error {
		held := c.HeldOut
		m.Report.CutoffSeconds, m.Report.CutoffCPU, m.Report.HeldOut = &seconds, &cpuSeconds, &held
		m.Report.CutoffGoal, m.Report.CutoffRule = string(c.Goal), string(c.Rule)
		return c.Check(m.Counts.Labels, m.Counts.Terminals)
	})
}

// AddCalibration adds a calibration to the model in dir, as AddCutoffs does with cut-offs.
func AddCalibration(dir string, c *calibration.Calibration, seconds, cpuSeconds float64) (*Report, error) {
	return addFitted(dir, fileCalibration, c, func(m *Manifest) error {
		held := c.HeldOut
		m.Report.Calibration = &Calibrated{Kind: c.Kind, Seconds: seconds, CPUSeconds: cpuSeconds, HeldOut: held}
		return c.Check()
	})
}

// Calibrated describes a calibration in a report.
type Calibrated struct {
	Kind string `json:"kind"`
	// Seconds is the time of fitting, in addition to the training's.
	Seconds    float64             `json:"seconds"`
	CPUSeconds float64             `json:"cpu_seconds"`
	HeldOut    calibration.HeldOut `json:"held_out"`
}

// addFitted adds a file to the model in dir. report adds it to the manifest, or returns an error.
// The manifest is replaced last, so a crash leaves a model that is recognised as damaged and never
// one that is taken for another.
func addFitted(dir, name string, v any, report func(*Manifest) error) (*Report, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	if err := report(m); err != nil {
		return nil, err
	}
	b, err := encodeFitted(v)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	m.Files = slices.DeleteFunc(m.Files, func(f File) bool { return f.Name == name })
	m.Files = append(m.Files, File{Name: name, Bytes: int64(len(b)), SHA256: hex.EncodeToString(sum[:])})
	text, err := encodeManifest(*m)
	if err != nil {
		return nil, err
	}
	if err := fs.WriteFile(fs.Join(dir, name), b); err != nil {
		return nil, err
	}
	if err := fs.WriteFile(fs.Join(dir, fileManifest), text); err != nil {
		return nil, err
	}
	return &m.Report, nil
}
