package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLabelText: a class that no document has is trained by its terms and predicted; info, train and
// eval tell documents from terms; ingested data train the same weights; several methods take terms.
func TestLabelText(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"d": dir}
	var docs strings.Builder
	for i := range 60 {
		fmt.Fprintf(&docs, "%s\t%s thing%d\n", []string{"owl", "wren"}[i%2],
			[]string{"hoot night", "sing day"}[i%2], i%4)
	}
	for name, text := range map[string]string{"docs.txt": docs.String(), "tree.txt": "bird owl\nbird wren\nfish pike\n",
		"terms.txt": "pike\triver teeth\nowl\thoot\npike\tteeth of the river\n", "bad.txt": "pike\tteeth\npike\n",
		"test.txt": "pike\tteeth, river, day\nowl\tnight\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	do := func(line string) map[string]any {
		t.Helper()
		code, stdout, stderr := runTaxon(t, "", line+" --json --quiet", vars)
		out := map[string]any{}
		if err := json.Unmarshal([]byte(stdout), &out); code != exitDone || err != nil {
			t.Fatalf("%s: exit status %d, %v: %s", line, code, err, stderr)
		}
		return out
	}
	counts := func(what string, from map[string]any) {
		t.Helper()
		if from["instances"] != 63. || from["documents"] != 60. || from["terms"] != 3. {
			t.Errorf("%s: %v instances, %v documents, %v terms", what, from["instances"], from["documents"],
				from["terms"])
		}
	}
	const train = "train --data $d/docs.txt --text --hierarchy $d/tree.txt --label-text $d/terms.txt"
	report := do(train + " --out $d/model")
	counts("train", report)
	counts("info of a model", do("info $d/model"))
	counts("ingest", do("ingest --data $d/docs.txt --text --label-text $d/terms.txt --out $d/set"))
	counts("info of a data set", do("info $d/set"))
	if other := do("train --data $d/set --hierarchy $d/tree.txt --out $d/second"); other["weights_sha256"] !=
		report["weights_sha256"] {
		t.Error("ingested data give other weights")
	}
	bySize := func(model string) string {
		text, _ := json.Marshal(do("eval --model " + model + " --data $d/test.txt --text")["by_size"])
		return string(text)
	}
	want := `[{"classes":1,"from":0,"macro_f1":1,"to":0},{"classes":2,"from":21,"macro_f1":0.5,"to":50}]`
	if got := bySize("$d/model"); got != want {
		t.Errorf("by size %s, want %s", got, want)
	}
	if r := do("eval --model $d/model --data $d/set"); r["instances"] != 60. {
		t.Errorf("terms are measured: %v", r["instances"])
	}
	for _, method := range []string{"bsvm", "rr-lr", "msvm", "mlr", "hblr-m1", "td"} {
		counts(method, do(train+" --method "+method+" --label-weight 5 --out $d/"+method))
		if method != "td" && !strings.HasPrefix(bySize("$d/"+method), want[:41]) {
			t.Errorf("%s: by size %s", method, bySize("$d/"+method))
		}
	}
	for line, want := range map[string]string{
		"train --data $d/docs.txt --text --label-text $d/bad.txt --out $d/x":               "bad.txt:2: no tab",
		"train --data $d/set --label-text $d/terms.txt --out $d/x":                         "is ingested already",
		"train --data $d/docs.txt --text --label-weight 2 --out $d/x":                      "is for --x label-text",
		"train --data $d/docs.txt --label-text $d/terms.txt --out $d/x":                    "is for text",
		"train --data $d/docs.txt --text --label-text $d/terms.txt --label-weight 0 --out": "above 0",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d: %s", line, code, stderr)
		}
	}
}
