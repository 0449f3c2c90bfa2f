package mapreduce

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/fs"
)

// TestOptions: what auto means comes from Hadoop's configuration, and what can't work is refused
// as an error about options.
func TestOptions(t *testing.T) {
	onYARN, elsewhere := t.TempDir(), t.TempDir()
	site := "<configuration><property><name>mapreduce.framework.name</name><value> yarn " +
		"</value></property></configuration>"
	if err := os.WriteFile(filepath.Join(onYARN, "mapred-site.xml"), []byte(site), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o             Options
		conf          string
		runner, state string // settled
		refused       string
	}{
		{o: Options{Runner: RunnerAuto}, conf: elsewhere, runner: RunnerProcesses, state: filepath.Join(elsewhere,
			"mapreduce")},
		{o: Options{Runner: RunnerAuto, State: "hdfs://nn/s/"}, conf: onYARN, runner: RunnerYARN, state: "hdfs://nn/s"},
		{o: Options{Runner: RunnerHadoop}, conf: onYARN, runner: RunnerHadoop, state: filepath.Join(elsewhere, "mapreduce")},
		{o: Options{Runner: RunnerAuto}, conf: onYARN, refused: "the cluster's machines do not see"},
		{o: Options{Runner: RunnerAuto, Queue: "q"}, conf: elsewhere, refused: "only YARN has queues"},
	} {
		t.Setenv("HADOOP_CONF_DIR", c.conf)
		err, state := c.o.Check(), ""
		if err == nil {
			state, err = c.o.StateDir(elsewhere)
		}
		var in *fs.InputError
		if c.refused != "" && (!errors.As(err, &in) || in.Path != "" || !strings.Contains(err.Error(), c.refused)) ||
			c.refused == "" && err != nil {
			t.Errorf("%+v: %v", c.o, err)
		}
		if err == nil && (c.o.Runner != c.runner || state != c.state) {
			t.Errorf("%+v: state %s", c.o, state)
		}
	}
}
