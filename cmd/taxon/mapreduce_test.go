package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"taxon/internal/hadoop/mapreduce"
)

// TestHadoopConf: a file holds what MapReduce jobs are to be like; all its mistakes are named together, with
// their lines.
func TestHadoopConf(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"DATA": writeText(t, "t.svm", graphData), "OUT": filepath.Join(dir, "m"),
		"BAD": writeText(t, "bad.yaml", "runner: processor\ntask-cores: 0\nque: q\nqueue: [a, b]\nfast: yes\n"),
		"XML": writeText(t, "mapred-site.xml", "<?xml version=\"1.0\"?>\n<configuration></configuration>\n"),
		"Q":   writeText(t, "q.yaml", "queue: research\n"),
		"CONF": writeText(t, "hadoop.yaml", "runner: processes # of this machine\nstate: there\nmap-tasks: 2\n"+
			"mapreduce.map.env: A=b\n")}
	engine := "train --engine mapreduce --data $DATA --out $OUT --hadoop-conf "
	for line, want := range map[string][]string{
		engine + "$BAD": {"bad.yaml:1: runner: processor: did you mean processes?", "bad.yaml:2: task-cores: 0: must be " +
			"from 1", "bad.yaml:3: que: unknown setting: did you mean queue?", "bad.yaml:4: queue: give one value",
			"bad.yaml:5: fast: unknown setting: there are map-tasks, mapred"},
		engine + "$XML": {"mapred-site.xml: this is Hadoop's own configuration, which is read from the folder in " +
			"HADOOP_CONF_DIR"},
		engine + "$Q":     {"train: queue research: only YARN has queues: set runner: yarn in --hadoop-conf"},
		engine + "$OUT.x": {"m.x: no such file"},
		"train --data $DATA --out $OUT --hadoop-conf $CONF": {"--hadoop-conf: is for --engine mapreduce"},
		engine + "$CONF --x store=badger":                   {"--x store=badger: leave it out"},
	} {
		code, _, stderr := runTaxon(t, "", line, vars)
		if code != exitUsage || strings.Count(stderr, "\n") != len(want) {
			t.Errorf("%s: status %d: %q", line, code, stderr)
		}
		for _, w := range want {
			if !strings.Contains(stderr, w) {
				t.Errorf("%s: %q lacks %q", line, stderr, w)
			}
		}
	}
	o := mapReduceOptions{engine: engineMapReduce, conf: vars["CONF"]}
	want := mapreduce.Options{Runner: "processes", State: filepath.Join(filepath.Dir(vars["CONF"]), "there"), Cores: 0,
		Maps: 2, Properties: []string{"mapreduce.map.env=A=b"}}
	if err := o.read(t.Context()); err != nil || !reflect.DeepEqual(o.Options, want) {
		t.Errorf("%+v, %v", o.Options, err)
	}
}
