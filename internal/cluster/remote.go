package cluster

import (
	"context"

	"taxon/internal/dataset"
	"taxon/internal/fs"
	taxonv1 "taxon/proto/taxon/v1"
)

// remoteList reads the manifest of data that lies in HDFS. What is there may be another set
// by now than the job was submitted with.
func remoteList(ctx context.Context, d *taxonv1.Data) (*dataset.Listing, error) {
	file := fs.Join(d.GetPath(), dataset.ManifestName)
	doc, err := fs.ReadFile(ctx, file)
	if err != nil {
		return nil, fs.Explain(file, err)
	}
	l, err := dataset.ParseManifest(doc)
	if err != nil {
		return nil, refusef("%s: %w", file, err)
	}
	if l.Fingerprint != d.GetFingerprint() {
		return nil, refusef("%s: is another data set (%.12s) than the job was submitted with (%.12s)", d.GetPath(), l.Fingerprint, d.GetFingerprint())
	}
	return l, nil
}

// remoteFiles copies it; opening the copy compares its checksums.
func remoteFiles(ctx context.Context, d *taxonv1.Data, _ *dataset.Listing, dir string) error {
	return fs.FetchInto(ctx, d.GetPath(), dir)
}
