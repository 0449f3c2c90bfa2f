package main

import (
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"taxon/internal/fs"
)

// exportJobOptions are the flags of export that name a cluster's job.
type exportJobOptions struct {
	job    string
	client clientOptions
	shards int // of the job's store: so many parts at least
}

// runExportJob exports the result of a cluster's job: it is put together as a model
// first, checked against the job's digest, and exported like any model.
func runExportJob(cmd *cobra.Command, a *app, o exportOptions) error {
	if o.model != "" {
		return o.check(a)
	}
	if err := o.check(a); err != nil {
		return err
	}
	whole := o.format == "model" && o.threshold == (thresholdValue{}) && o.values == "float32"
	if o.format == "model" {
		dir, err := o.modelDir()
		if err != nil {
			return err
		}
		o.out = dir
	}
	c, err := o.client.dial(cmd.Context(), a)
	if err != nil {
		return err
	}
	defer c.Close()
	began := time.Now()
	if whole {
		r, err := c.FetchModel(cmd.Context(), o.job, o.out)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(exportReport{Out: o.out, Format: o.format, Nodes: r.Nodes, Seconds: time.Since(began).Seconds()})
		}
		a.ui.Note("%s nodes fetched in %s, sha256 %s", formatCount(int64(r.Nodes)), formatSeconds(time.Since(began).Seconds()), r.WeightsSHA256)
		return nil
	}
	temp, done, err := fs.TempDir("export")
	if err != nil {
		return err
	}
	defer done()
	path := filepath.Join(temp, "model")
	if _, err := c.FetchModel(cmd.Context(), o.job, path); err != nil {
		return err
	}
	shards, err := c.Shards.Known(cmd.Context())
	if err != nil {
		return err
	}
	o.model, o.job, o.shards = path, "", len(shards)
	return runExport(cmd, a, o)
}

// cut makes at least as many parts as the job's store has shards. parts are the first
// nodes of a model's parts, and the number of nodes.
func (o *exportOptions) cut(parts []int) []int {
	nodes := parts[len(parts)-1]
	n := min(o.shards, nodes)
	if n < len(parts) {
		return parts
	}
	out := make([]int, n+1)
	for i := range out {
		out[i] = i * nodes / n
	}
	return out
}
