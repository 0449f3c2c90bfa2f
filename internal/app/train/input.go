package train

import (
	"context"
	"path/filepath"

	"taxon/internal/data/dataset"
	"taxon/internal/data/taxonomy"
	"taxon/internal/fs"
	"taxon/internal/ui/option"
)

// readStructure reads the hierarchy or the graph and shows its warnings.
func (t *Training) readStructure(ctx context.Context) (err error) {
	path, into, read := t.o.Hierarchy, &t.Structure, taxonomy.Read
	switch {
	case t.o.Graph != "":
		path, into, read = t.o.Graph, &t.Edges, taxonomy.ReadGraph
	case path == "" || path == FromLabels:
		return nil // it is made from the labels, once they are read
	case t.o.DAG == "refuse" && !t.o.flat():
		read = taxonomy.ReadTree
	}
	s, warnings, err := taxonomy.ReadFile(ctx, t.o.Files, path, read)
	for _, w := range warnings {
		t.ui.Warn("%s", w)
	}
	*into = s
	return err
}

// openData opens the given folder, or ingests the data into a folder next to the model's place.
func (t *Training) openData(ctx context.Context) (err error) {
	dir := t.o.Data[0]
	if !Ingested(t.o.Data) {
		if dir, err = t.ingest(ctx); err != nil {
			return err
		}
	}
	t.Dir = dir
	if t.Set, err = dataset.Open(dir); err != nil {
		return err
	}
	if err := t.structureOfLabels(); err != nil {
		t.Close()
		return err
	}
	if t.Set.Stats.LabelEntries > 0 {
		// Without labels an error follows that covers all that the warnings would say.
		for _, w := range t.Set.Warnings {
			t.ui.Warn("%s", w)
		}
	}
	return nil
}

// structureOfLabels makes the hierarchy from labels that are paths.
func (t *Training) structureOfLabels() (err error) {
	separator := t.o.Table.PathSeparator
	if _, yes := learns(t.o.Job); yes {
		return nil
	}
	if separator == "" && t.Set.Table != nil {
		separator = t.Set.Table.PathSeparator
	}
	switch {
	case t.o.Hierarchy == FromLabels && separator == "":
		return option.Errorf("train: ‹hierarchy=%s› needs ‹path-separator›: say what stands between the parts of a label, "+
			"as in ‹path-separator=' > '›", FromLabels)
	case t.o.Hierarchy != FromLabels && (separator == "" || t.o.Hierarchy != "" || t.o.Graph != ""):
		return nil
	}
	t.Structure, err = taxonomy.OfPaths(t.Set.Labels, separator)
	if err != nil {
		return fs.Inputf(t.o.Data[0], 0, "%w", err)
	}
	return nil
}

// ingest ingests the data into the scratch folder and returns the path of the data set.
func (t *Training) ingest(ctx context.Context) (string, error) {
	dir := filepath.Join(t.scratch, "data")
	progress, end := IngestLines(t.ui)
	defer end()
	o := dataset.Options{
		Paths: t.o.Data, Out: dir, Replace: true, Text: t.o.Text, Words: t.o.Words, ZeroBased: t.o.ZeroBased,
		Weights: t.o.Weights, LabelText: t.o.LabelText, Table: t.o.Table,
		FS: t.o.Files, Threads: t.o.Threads, Progress: progress,
	}
	if t.o.Memory > 0 {
		o.MemoryBytes = max(t.o.Memory/4, 1<<20)
	}
	_, err := dataset.Ingest(ctx, o)
	return dir, err
}
