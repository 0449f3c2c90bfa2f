package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// A pattern, and a folder of part files, are looked at like the file that they make up.
func TestInfoParts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"part-0": "cat 1:1\n", "part-1": "dog 2:1\ncat 3:1", "_SUCCESS": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	vars := map[string]string{"DIR": dir}
	for _, line := range []string{"info $DIR", "info $DIR/part-*", "info --plan --data $DIR/part-?"} {
		code, stdout, stderr := runTaxon(t, "", line+" --json", vars)
		var r struct {
			Kind      string `json:"kind"`
			Instances int64  `json:"instances"`
			Labels    int64  `json:"labels"`
		}
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || r.Kind != "data" || r.Instances != 3 ||
			r.Labels != 2 {
			t.Errorf("%s: exit %d, %+v, %v: %s", line, code, r, err, stderr)
		}
	}
	for _, line := range []string{"info $DIR/none", "info $DIR/none*"} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != exitUsage {
			t.Errorf("%s: exit %d: %s", line, code, stderr)
		}
	}
}
