package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/ui/console"
)

// TestPathSpellings: what Hadoop's tools take for a path in HDFS is one here, and other file
// systems' paths are refused by name, whatever the verb; no folder of such a name is made.
func TestPathSpellings(t *testing.T) {
	data := writeText(t, "train.svm", "a 1:1\nb 2:1\n")
	job := writeText(t, "job.yaml", "data: s3://b/x\n")
	t.Chdir(t.TempDir())
	t.Setenv("HADOOP_CONF_DIR", "")
	t.Setenv("HADOOP_HOME", "")
	vars := map[string]string{"DATA": data, "JOB": job, "UNSET": writeText(t, "unset.yaml", "data: x\ngraph: \"\"\n"),
		"M": animals(t, 10)}
	for line, want := range map[string]string{
		"train --data $DATA --out hdfs:/z/e":   "hdfs:///z/e: the path names no host",
		"train --data $DATA --out HDFS:///z/e": "hdfs:///z/e: the path names no host",
		"train --data hdfs:/d/x --out m":       "hdfs:///d/x: the path names no host",
		"train --data HDFS:///d/x --out m":     "hdfs:///d/x: the path names no host",
		"train --data $DATA --out s3://b/m": "train: --out s3://b/m: s3:// is not read or " +
			"written here: give hdfs://",
		"train --data $DATA --data gs://b/x --out m":       "train: --data gs://b/x: gs://",
		"train --job $JOB --out m":                         "train: --data s3://b/x: s3://",
		"train --data $DATA --out m --warm-start s3a://x":  "train: --warm-start s3a://x",
		"tune --data $DATA --out s3://b/m":                 "tune: --out s3://b/m",
		"ingest --data $DATA --out s3://b/m":               "ingest: --out s3://b/m",
		"generate --like flat --out webhdfs://b/m":         "generate: --out webhdfs://b/m",
		"predict --model $M --data s3://b/d":               "predict: --data s3://b/d",
		"predict --model $M --data $DATA --out s3://b/d":   "predict: --out s3://b/d",
		"eval --model viewfs:///m --data $DATA":            "eval: --model viewfs:///m",
		"export --model $M --out hdfs:x":                   "export: --out hdfs:x: paths in HDFS begin at the root",
		"demo --keep hdfs:///x":                            "demo: --keep hdfs:///x: must be a folder of this machine",
		"ingest --data $DATA --out o --temp hdfs:/x":       "ingest: --temp hdfs:///x: must be a folder of this machine",
		"certs --dir hdfs:///x":                            "certs: --dir hdfs:///x: must be a folder of this machine",
		"certs token --dir hdfs:///x":                      "certs token: --dir hdfs:///x: must be a folder of this machine",
		"cluster up --dir hdfs:///x":                       "cluster up: --dir hdfs:///x: must be a folder of this machine",
		"worker --dir HDFS:///x --coordinator 127.0.0.1:1": "worker: --dir hdfs:///x: must be a folder of this machine",
		"train --data $DATA --out m --instance-weights=":   `train: --instance-weights "": name a file`,
		"train --data $DATA --out m --hierarchy=":          `train: --hierarchy "": name a file`,
		"train --data $DATA --out m --test=":               `train: --test "": name a file`,
		"train --data $DATA --out m --warm-start=":         `train: --warm-start "": name a model`,
		"train --data $DATA --data= --out m":               `train: --data "": name a file`,
		"train --out m --job $UNSET":                       `train: --graph "": name a file`,
		"ingest --data= --out o":                           `ingest: --data "": name a file`,
		"ingest --data $DATA --out o --instance-weights=":  `ingest: --instance-weights "": name a file`,
		"tune --data $DATA --out=":                         `tune: --out "": name a folder`,
		"eval --model $M --data $DATA --compare=":          `eval: --compare "": name a path`,
		"submit --data $DATA --profile=":                   `submit: --profile "": name a file`,
		"info s3://b/m":                                    "info: s3://b/m: s3://",
		"info hdfs:/x":                                     "hdfs:///x: the path names no host",
		"info --plan --data s3://b/m":                      "info: --data s3://b/m",
	} {
		code, _, stderr := runTaxon(t, "", line, vars)
		if code != exitUsage || !strings.HasPrefix(stderr, "taxon: "+want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, %q, want %q", line, code, stderr, want)
		}
	}
	if code, _, stderr := runTaxon(t, "", "info file://$DATA", vars); code != 0 {
		t.Errorf("file://: exit %d, %s", code, stderr)
	}
	if left, _ := os.ReadDir("."); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Every flag that is a path by its name, or tells of hdfs://, has its spelling looked at.
func TestPathFlagsAreKnown(t *testing.T) {
	root := newRootCmd(&app{ui: console.New(&bytes.Buffer{})}, verbs())
	found := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			path := slices.Contains([]string{"out", "data", "model", "hierarchy", "state", "snapshots"}, f.Name) ||
				strings.Contains(f.Usage, "hdfs://")
			flag := strings.TrimSpace(verbPath(cmd) + " --" + f.Name)
			if !path || flag == "info --data" || flag == "jobs --state" {
				// info looks at its PATH, however it is given; a job's state is no path
				return
			}
			found++
			before := f.Value.String()
			if err := f.Value.Set("s3://x"); err != nil {
				t.Errorf("%s: %v", flag, err)
			}
			if err := canonicalPaths(cmd); err == nil {
				t.Errorf("%s: its spelling is not looked at", flag)
			}
			if list, ok := f.Value.(pflag.SliceValue); ok {
				_ = list.Replace(nil)
			} else {
				_ = f.Value.Set(before)
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	if found < 30 {
		t.Errorf("%d flags found", found)
	}
}
