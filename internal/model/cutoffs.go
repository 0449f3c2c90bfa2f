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

// encodeFitted encodes what was fitted after the training. Decimals are the shortest that read
// back to the same float64.
func encodeFitted(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode what was fitted: %w", err)
	}
	return append(b, '\n'), nil
}

// parseFitted decodes it. Meta.validate checks whether it fits the model.
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

// AddCutoffs puts cut-offs that were fitted after the training into the model in dir, in place of
// any that it has, with the seconds and CPU seconds that fitting took. The weights do not change.
func AddCutoffs(dir string, c *labelset.Cutoffs, seconds, cpuSeconds float64) (*Report, error) {
	return addFitted(dir, fileCutoffs, c, func(m *Manifest) error {
		held := c.HeldOut
		m.Report.CutoffSeconds, m.Report.CutoffCPU, m.Report.HeldOut = &seconds, &cpuSeconds, &held
		m.Report.CutoffGoal, m.Report.CutoffRule = string(c.Goal), string(c.Rule)
		return c.Check(m.Counts.Labels, m.Counts.Terminals)
	})
}

// AddCalibration does the same for a calibration.
func AddCalibration(dir string, c *calibration.Calibration, seconds, cpuSeconds float64) (*Report, error) {
	return addFitted(dir, fileCalibration, c, func(m *Manifest) error {
		held := c.HeldOut
		m.Report.Calibration = &Calibrated{Kind: c.Kind, Seconds: seconds, CPUSeconds: cpuSeconds, HeldOut: held}
		return c.Check()
	})
}

// Calibrated is what a report says about a calibration.
type Calibrated struct {
	Kind       string              `json:"kind"`
	Seconds    float64             `json:"seconds"` // beside the training's
	CPUSeconds float64             `json:"cpu_seconds"`
	HeldOut    calibration.HeldOut `json:"held_out"`
}

// addFitted puts a file into the model in dir; report adds it to the manifest, or refuses it. The
// manifest is replaced last. So if a crash interrupts the call the model is found damaged, and is
// never taken for one with the other file.
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
