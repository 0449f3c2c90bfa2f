package hadoop

import (
	"bytes"
	"context"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestProof trains three times, from and to HDFS: in one process, on a cluster that YARN runs, and
// by MapReduce. The cluster is scaled and loses processes, MapReduce loses a mapper. The weights
// and their exports must have the same bytes.
func TestProof(t *testing.T) {
	y := newYarnCase(t, 6144)
	gen, set := y.c.URL("/gen"), y.c.URL("/set")
	y.taxon.run(t, 0, "generate", "--like", "wordnet", "--scale", "0.01", "--out", gen)
	y.taxon.run(t, 0, "ingest", "--data", gen+"/train.svm", "--out", set)
	data := []string{"--data", set, "--hierarchy", gen + "/hierarchy.txt", "--gap", "1e-12", "--max-sweeps"}
	t.Run("cluster", func(t *testing.T) {
		y.job = slices.Concat(data, []string{"60"}) // enough sweeps for all disturbances
		sum, export := y.embedded(t)
		y.compare(t, nil, y.some(t), sum, export, 12*time.Minute)
		y.taxon.run(t, 0, "yarn", "down", "--name", "gw", "--purge", "--yes")
	})
	t.Run("mapreduce", func(t *testing.T) {
		y.job = slices.Concat(data, []string{"2"}) // each sweep takes a job of Hadoop's
		sum, export := y.embedded(t)
		y.mapReduce(t, onYARN, sum, export)
	})
}

// TestProofLong does the same with WordNet's frequent classes, with the same number of sweeps for
// all three: TAXON_DATA=DIR make hadoop-long.
func TestProofLong(t *testing.T) {
	data := os.Getenv("TAXON_DATA")
	if os.Getenv("TAXON_HADOOP_LONG") == "" || data == "" {
		t.Skip("skipped: TAXON_DATA=DIR make hadoop-long runs it, where DIR has wordnet-freq")
	}
	y := newYarnCase(t, 8192)
	set, tree := y.c.URL("/wordnet-freq"), y.c.URL("/tree.txt")
	y.taxon.run(t, 0, "ingest", "--data", filepath.Join(data, "wordnet-freq", "train.svm.xz"), "--out", set)
	y.c.admin(t, "-put", filepath.Join(data, "wordnet-freq", "tree.txt"), tree)
	y.job = []string{"--data", set, "--hierarchy", tree, "--gap", "1e-2", "--max-sweeps", "12"} // as many of Hadoop's jobs
	began := time.Now()
	lap := func(what string) {
		t.Logf("%s: %.0f s", what, time.Since(began).Seconds())
		began = time.Now()
	}
	sum, export := y.embedded(t)
	lap("embedded, weights " + sum + ", export " + export)
	y.compare(t, []string{"--worker-memory", "1GiB", "--store-memory", "1GiB"}, y.some(t), sum, export, 30*time.Minute)
	lap("on a cluster placed by YARN")
	y.taxon.run(t, 0, "yarn", "down", "--name", "gw", "--purge", "--yes")
	y.mapReduce(t, "runner: yarn", sum, export)
	lap("by MapReduce")
}

// mapReduce trains by MapReduce jobs on YARN, kills the first mapper that it sees, and wants
// the weights and the bytes of the export that the embedded training has given.
func (y *yarnCase) mapReduce(t *testing.T, settings, sum, export string) {
	t.Helper()
	if y.c.running[DataNode(1)] == nil { // it was killed during the cluster's training
		if err := y.c.StartDaemon(DataNode(1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := y.c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	mapred, err := y.c.Mapred()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	killed := make(chan bool, 1)
	go func() { killed <- killMapper(ctx, y.c) }()
	model := y.c.URL("/models/mapreduce")
	got := y.taxon.figures(t, append([]string{"train", "--engine", "mapreduce", "--hadoop-conf",
		hadoopConf(t, settings+"\nmapred: "+mapred), "--out", model}, y.job...)...)
	stop()
	if !<-killed {
		t.Error("no mapper was seen to be killed")
	}
	if !y.c.logged(t, "subprocess failed with code 137") {
		t.Error("Hadoop has not seen a mapper die")
	}
	if got["weights_sha256"] != sum {
		t.Errorf("weights %v, embedded %s", got["weights_sha256"], sum)
	}
	y.taxon.run(t, 0, "export", "--model", model, "--out", y.c.URL("/reduced/"))
	if checksum(t, y.c.URL("/reduced")) != export {
		t.Error("the export is not the embedded training's")
	}
}

// logged reports whether a container has written a text to its logs.
func (c *Cluster) logged(t *testing.T, text string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(c.yarnDir("logs"), func(path string, e iofs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		found = found || bytes.Contains(b, []byte(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
