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

	"taxon/internal/calibration"
	"taxon/internal/fs"
	"taxon/internal/labelset"
)

// encodeFitted renders what was fitted after the training; its shortest decimals read back to the same float64.
func encodeFitted(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode what was fitted: %w", err)
	}
	return append(b, '\n'), nil
}

// parseFitted reads one; whether it fits the model is for Meta.validate to say.
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

// AddCutoffs puts cut-offs that were fitted after the training, in so many seconds of time and of CPU, into
// the model in dir, in place of any that it has. Its weights stay as they are.
func AddCutoffs(dir string, c *labelset.Cutoffs, seconds, cpuSeconds float64) (*Report, error) {
	return addFitted(dir, fileCutoffs, c, func(m *Manifest) error {
		held := c.HeldOut
		m.Report.CutoffSeconds, m.Report.CutoffCPU, m.Report.HeldOut = &seconds, &cpuSeconds, &held
		m.Report.CutoffGoal, m.Report.CutoffRule = string(c.Goal), string(c.Rule)
		return c.Check(m.Counts.Labels, m.Counts.Terminals)
	})
}

// AddCalibration does the same with a calibration.
func AddCalibration(dir string, c *calibration.Calibration, seconds, cpuSeconds float64) (*Report, error) {
	return addFitted(dir, fileCalibration, c, func(m *Manifest) error {
		held := c.HeldOut
		m.Report.Calibration = &Calibrated{Kind: c.Kind, Seconds: seconds, CPUSeconds: cpuSeconds, HeldOut: held}
		return c.Check()
	})
}

// Calibrated is what a report tells of a calibration.
type Calibrated struct {
	Kind       string              `json:"kind"`
	Seconds    float64             `json:"seconds"` // beside the training's
	CPUSeconds float64             `json:"cpu_seconds"`
	HeldOut    calibration.HeldOut `json:"held_out"`
}

// addFitted puts a file into the model in dir; report tells of it, or refuses it.
// The manifest is replaced last, so a model cut short by a crash is found damaged, never
// taken for one with another file.
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

// MultiLabel says whether instances have so many labels that the best class alone will not do.
func (d DataInfo) MultiLabel() bool {
	return float64(d.Positives) > maxSingleLabel*float64(d.Instances)
}
