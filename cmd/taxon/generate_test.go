package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestShapeFlags(t *testing.T) {
	base := shapeOptions{like: "lwiki", scale: 0.001}
	for _, c := range []struct {
		name   string
		change func(*shapeOptions)
		want   string // part of the error; "" for none
	}{
		{"as it is", func(*shapeOptions) {}, ""},
		{"dag", func(o *shapeOptions) { o.dag = true }, ""},
		{"counts", func(o *shapeOptions) { o.instances, o.classes, o.features, o.depth = 500, 20, 300, 4 }, ""},
		{"both", func(o *shapeOptions) { o.dag, o.tree = true, true }, "exclude each other"},
		{"too few instances", func(o *shapeOptions) { o.instances = 10 }, "each class needs one"},
		{"too large", func(o *shapeOptions) { o.scale = 1e9 }, "scale"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := base
			c.change(&o)
			s, err := o.shape("generate")
			if c.want == "" {
				if err != nil || s.DAG != o.dag || o.classes > 0 && (s.Classes != o.classes || s.Internals > s.Classes) {
					t.Errorf("%+v, %v", s, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestGenerateThenInfo reads back what generate wrote.
func TestGenerateThenInfo(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := runWith(t, "", "generate", "--scale", "0.0005", "--out", out, "--quiet")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "163") {
		t.Fatalf("exit status %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	code, stdout, _ = runWith(t, "", "info", filepath.Join(out, "train.svm"), "--hierarchy", filepath.Join(out, "hierarchy.txt"))
	if code != 0 || !strings.Contains(stdout, "163 leaves") {
		t.Errorf("exit status %d, stdout %q", code, stdout)
	}
	if code, _, stderr = runWith(t, "", "generate", "--scale", "0.0005", "--out", out); code != 2 || !strings.Contains(stderr, "--force") {
		t.Errorf("a second time: exit status %d, stderr %q", code, stderr)
	}
}
