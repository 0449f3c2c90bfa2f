package hadoop

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Bin returns the folder of the commands that replace those of an installation.
func (c *Cluster) Bin() string { return filepath.Join(c.dir, "bin") }

// Mapred writes a command that behaves like Hadoop's own `mapred` for Streaming jobs: `mapred
// streaming ...` and `mapred job ...`, with HADOOP_ROOT_LOGGER as the log level. It returns the
// command's path.
func (c *Cluster) Mapred() (string, error) {
	quoted := func(args []string) string {
		for i, a := range args {
			args[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		return strings.Join(args, " ")
	}
	script := `#!/bin/sh
case $1 in
streaming) class=org.apache.hadoop.streaming.HadoopStreaming ;;
job) class=org.apache.hadoop.mapred.JobClient ;;
*) echo "mapred: $1 is not known here" >&2; exit 1 ;;
esac
shift
exec java "-Dhadoop.root.logger=${HADOOP_ROOT_LOGGER:-INFO,console}" ` + quoted(c.java("mapred", "@")[:len(c.java("mapred", "@"))-1]) + ` $class "$@"
`
	path := filepath.Join(c.Bin(), "mapred")
	return path, errors.Join(os.MkdirAll(c.Bin(), 0o777), os.WriteFile(path, []byte(script), 0o777))
}
