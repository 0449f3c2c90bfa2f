package hadoop

import (
	"os"
	"path/filepath"
	"strings"
)

// Mapred writes a command that does what Hadoop's own `mapred` does for Streaming jobs:
// `mapred streaming ...` and `mapred job ...`. It returns its path.
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
exec java ` + quoted(c.java("mapred", "@")[:len(c.java("mapred", "@"))-1]) + ` $class "$@"
`
	path := filepath.Join(c.dir, "mapred")
	return path, os.WriteFile(path, []byte(script), 0o777)
}
