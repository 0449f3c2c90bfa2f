package tune

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/train"
	"taxon/internal/data/dataset"
	"taxon/internal/data/textio"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/measure"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

// record is the folder of a search, on any file system. Several goroutines may use it.
type record struct {
	disk fs.FS
	dir  string
}

// recordIn returns the record of a search in dir. It can be written after ctx has ended.
func recordIn(ctx context.Context, dir string) record {
	return record{fs.For(context.WithoutCancel(ctx), dir), dir}
}

// These are the names of files and folders within the folder of a search.
const (
	// searchFile holds the identity of the search.
	searchFile = "search.json"
	tableFile  = "table.json"
	jobFile    = "job.yaml"
	// madeFile describes the model in the folder; see made.
	madeFile = "made.json"
	// jobsFile holds the prefix of the ids of a cluster's jobs.
	jobsFile = "jobs.json"
	// pointsDir holds a result and the predictions of each finished training and point.
	pointsDir = "points"
	// statesDir holds checkpoints, and the final states at which other trainings start.
	statesDir = "states"
)

// join returns a path within the folder.
func (r record) join(names ...string) string { return fs.Join(r.dir, names...) }

// file returns the path of a file for a point and a fold.
func (r record) file(p Point, fold int, ext string) string {
	return r.join(pointsDir, fmt.Sprintf("%s.%d%s", p.Name(), fold, ext))
}

// state returns the folder with the final state of a training without a fold, for the next one on
// its path.
func (r record) state(p Point, fold int) string {
	return r.join(statesDir, fmt.Sprintf("%s.%d", p.Name(), fold))
}

// checkpoint returns the folder of a job's checkpoint.
func (r record) checkpoint(job string) string { return r.join(statesDir, job) }

// has reports whether there is a file or folder of this name. It returns false if that can't be
// found out.
func (r record) has(path string) bool {
	_, err := r.disk.Stat(path)
	return err == nil
}

// free returns an error if the folder holds something other than a search.
func (r record) free() error {
	names, err := fs.NamesOn(r.disk, r.dir)
	names = slices.DeleteFunc(names, func(n string) bool { // half-written, by a killed search
		return strings.HasPrefix(n, "."+searchFile+".") && strings.HasSuffix(n, ".part")
	})
	if errors.Is(err, os.ErrNotExist) || err == nil && len(names) == 0 {
		return nil
	}
	if err != nil {
		return fs.Explain(r.dir, err)
	}
	if !r.has(r.join(searchFile)) {
		return option.Errorf("%s: is not a folder of a search: choose another ‹out›", r.dir)
	}
	return nil
}

// identity holds the properties that must be equal for a search to be continued. The points may
// differ. The results of finished points are used if the points are requested again.
type identity struct {
	Format string `json:"format"`
	// Options are the options outside the grid.
	Options train.Identity `json:"options"`
	// Said are the options that the user gave.
	Said registry.Values `json:"said"`
	// Rough are the options of the search's trainings alone.
	Rough registry.Values `json:"rough,omitempty"`
	// Losses reports that predictions are recorded with log-losses.
	Losses bool `json:"losses,omitempty"`
	// Places is the number of recorded places of rankings. Zero means measure.RankedPlaces.
	Places int  `json:"places,omitempty"`
	Folds  int  `json:"folds"`
	Text   bool `json:"text"`
}

// searchFormat names the format of the folder.
const searchFormat = "taxon-search-2"

// same reports whether two searches are the same.
func (id identity) same(other identity) bool {
	return id.Options.Same(other.Options) && maps.Equal(id.Said, other.Said) && maps.Equal(id.Rough, other.Rough) &&
		id.Losses == other.Losses && id.Places == other.Places && id.Folds == other.Folds && id.Text == other.Text
}

// begin creates the folder, or returns an error if it holds another search.
func (r record) begin(id identity, force bool) error {
	path := r.join(searchFile)
	var old identity
	there, err := r.readJSON(path, &old)
	switch {
	case there && !force && err != nil:
		return option.Errorf("%s: is damaged: use ‹force› to search anew", path)
	case there && !force && old.Format != id.Format:
		return option.Errorf("%s: holds a search of another version of taxon: choose another ‹out›, or use "+
			"‹force› to search anew", r.dir)
	case there && !force && !old.same(id):
		return option.Errorf("%s: holds a search on other data or with other options: choose another ‹out›, or use "+
			"‹force› to search anew", r.dir)
	case there && !force:
		return r.makeFolders()
	case !there && err != nil:
		return err
	case !there:
		// This file first, as a folder without it is no search's, should the process be killed here.
		if err := r.disk.MkdirAll(r.dir); err != nil {
			return fs.Explain(r.dir, err)
		}
		if err := r.writeJSON(path, id); err != nil {
			return err
		}
		return r.makeFolders()
	}
	for _, name := range []string{pointsDir, statesDir, jobFile, tableFile, madeFile, jobsFile} { // left by another search
		if err := r.disk.RemoveAll(r.join(name)); err != nil {
			return fs.Explain(r.join(name), err)
		}
	}
	if err := r.makeFolders(); err != nil {
		return err
	}
	return r.writeJSON(path, id)
}

// makeFolders creates the folders within the search's folder.
func (r record) makeFolders() error {
	for _, name := range []string{pointsDir, statesDir} {
		if err := r.disk.MkdirAll(r.join(name)); err != nil {
			return fs.Explain(r.join(name), err)
		}
	}
	return nil
}

// result is the record of a point on a fold.
type result struct {
	Point
	outcome
}

// outcome holds the fields of a result besides the point.
type outcome struct {
	Fold     int             `json:"fold"`
	Measures *measure.Result `json:"measures"`
	// Sweeps is 0 if the point shares the training of another. Both times are then 0, too.
	Sweeps     int     `json:"sweeps"`
	Gap        float64 `json:"gap"`
	StoppedBy  string  `json:"stopped_by"`
	CPUSeconds float64 `json:"cpu_seconds"`
	Seconds    float64 `json:"seconds"`
	Bytes      int64   `json:"model_bytes"`
	// From is the C at whose final state the training started. It is nil if it started at zero.
	From *float64 `json:"from_C,omitempty"`
}

// MarshalJSON writes point and outcome as one object.
func (r *result) MarshalJSON() ([]byte, error) { return model.JoinObjects(r.Point, r.outcome) }

// UnmarshalJSON reads what MarshalJSON writes.
func (r *result) UnmarshalJSON(data []byte) error {
	return errors.Join(json.Unmarshal(data, &r.Point), json.Unmarshal(data, &r.outcome))
}

// results reads the results of points that share a training on a fold. It is nil unless all exist.
func (r record) results(points []Point, fold int) ([]*result, error) {
	var out []*result
	for _, p := range points {
		path, one := r.file(p, fold, ".json"), &result{}
		there, err := r.readJSON(path, one)
		switch {
		case !there:
			return nil, err
		case err != nil || one.Measures == nil || !one.Equal(p):
			return nil, fs.Inputf(path, 0, "is damaged: delete it, or use ‹force› to search anew")
		}
		out = append(out, one)
	}
	return out, nil
}

// keep writes a result. Its training counts as done from then on.
func (r record) keep(one *result) error {
	return r.writeJSON(r.file(one.Point, one.Fold, ".json"), one)
}

// finished counts the results.
func (r record) finished() (n int) {
	names, _ := fs.NamesOn(r.disk, r.join(pointsDir))
	for _, name := range names {
		if strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".") {
			n++
		}
	}
	return n
}

// writePredictions writes a line for each row of a fold: its labels, a tab, its best classes and,
// if losses is not nil, the sum and the number of terms of its log-loss.
func (r record) writePredictions(p Point, fold, rows int, losses []logLoss, of func(row int) (labels,
	ranked []string)) error {
	path := r.file(p, fold, ".pred")
	file, err := r.disk.Create(path)
	if err != nil {
		return err
	}
	defer file.Abort()
	w := bufio.NewWriter(file)
	for i := range rows {
		labels, ranked := of(i)
		fmt.Fprintf(w, "%s\t%s", textio.AppendNames(nil, labels...), textio.AppendNames(nil, ranked...))
		if losses != nil {
			fmt.Fprintf(w, "\t%g\t%g", losses[i].sum, losses[i].of)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return fs.Explain(path, err)
	}
	return file.Commit()
}

// predictions reads what writePredictions wrote, row by row.
func (r record) predictions(p Point, fold, rows int, each func(row int, labels, ranked []string)) error {
	path := r.file(p, fold, ".pred")
	data, err := fs.ReadFileOn(r.disk, path)
	if err != nil {
		return fs.Explain(path, err)
	}
	all := strings.Split(string(data), "\n")
	if len(all) != rows+1 || all[rows] != "" {
		return fs.Inputf(path, 0, "is damaged: use ‹force› to search anew")
	}
	for i, line := range all[:rows] {
		labels, ranked, _ := strings.Cut(line, "\t")
		ranked, _, _ = strings.Cut(ranked, "\t")
		each(i, names(labels), names(ranked))
	}
	return nil
}

// names splits a list of names.
func names(s string) (out []string) {
	for rest := []byte(s); len(rest) > 0; {
		name, behind, err := textio.CutLabel(rest)
		if err != nil || len(name) == 0 {
			return out // a damaged line has too few, as the caller sees
		}
		out, rest = append(out, string(name)), bytes.TrimPrefix(behind, []byte(","))
	}
	return out
}

// writeJob writes a point as lines `flag: value`, for train and submit, under a comment that gives
// its origin. on is the structure that is trained on.
func (r record) writeJob(t *train.Options, j *taxonv1.Options, shift float64, on method.Structure,
	origin string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\ndata:\n", origin)
	for _, d := range t.Data {
		fmt.Fprintf(&b, "  - %s\n", anywhere(d))
	}
	line := func(wanted bool, flag string, value any) {
		if wanted {
			fmt.Fprintf(&b, "%s: %v\n", flag, value)
		}
	}
	line(t.Text, "text", true)
	for _, w := range t.Words.Flags() {
		if w[0] == "stop-words" && w[1] != dataset.English {
			w[1] = anywhere(w[1])
		}
		line(true, w[0], w[1])
	}
	if len(t.LabelText.Paths) > 0 {
		b.WriteString("label-text:\n")
		for _, p := range t.LabelText.Paths {
			fmt.Fprintf(&b, "  - %s\n", anywhere(p))
		}
	}
	if len(t.LabelText.Columns) > 0 {
		b.WriteString("label-text-columns:\n")
		for _, c := range t.LabelText.Columns {
			fmt.Fprintf(&b, "  - %q\n", c)
		}
	}
	line(t.LabelText.Weight != 0, "label-weight", t.LabelText.Weight)
	line(t.ZeroBased, "zero-based", true)
	c := &t.Table
	last := ""
	for _, f := range c.Flags() {
		if f[0] == "text-column" || strings.HasSuffix(f[0], "-columns") { // a list
			line(f[0] != last, f[0], "")
			fmt.Fprintf(&b, "  - %q\n", f[1])
		} else {
			line(true, f[0], strconv.Quote(f[1]))
		}
		last = f[0]
	}
	line(c.Format != "" && c.Format != "auto", "data-format", c.Format)
	line(c.Labels != "", "labels", anywhere(c.Labels))
	line(c.SkipBroken > 0, "skip-broken", c.SkipBroken)
	line(t.Weights != "", "instance-weights", anywhere(t.Weights))
	line(t.Hierarchy == train.FromLabels, "hierarchy", t.Hierarchy)
	line(t.Hierarchy != "" && t.Hierarchy != train.FromLabels, "hierarchy", anywhere(t.Hierarchy))
	line(t.Hierarchy != "", "dag", t.DAG)
	line(t.Graph != "", "graph", anywhere(t.Graph))
	line(true, "goal", t.Goal)
	line(true, "method", j.GetMethod())
	for _, p := range registry.Of(j.GetMethod()) {
		capped := p.Effect == method.OnEnd && p.Name != method.GapWanted.Name // a limit for the search's trainings only
		switch {
		case p.Name == method.PriorShift.Name:
			line(shift != 0, p.Name, shift)
		case p.On == method.Graphs:
			line(on == method.Graphs && p.With == "", p.Name, p.Of(j))
		default:
			line(!p.Carried && !capped && p.Effect != method.OnNothing, p.Name, p.Of(j))
		}
	}
	return r.disk.WriteFile(r.join(jobFile), []byte(b.String()))
}

// anywhere returns a path in a quoted form that is valid from any folder.
func anywhere(path string) string {
	if whole, err := fs.Abs(path); err == nil {
		path = whole
	}
	return strconv.Quote(path)
}

func (r record) writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return r.disk.WriteFile(path, append(data, '\n'))
}

// readJSON reads a file into v. The result there reports whether the file exists and could be read,
// even if its content is invalid. A missing file is no error.
func (r record) readJSON(path string, v any) (there bool, err error) {
	data, err := fs.ReadFileOn(r.disk, path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fs.Explain(path, err)
	}
	return true, json.Unmarshal(data, v)
}
