package hadoop

import (
	"bytes"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"taxon/internal/fs"
)

// TestPaths checks difficult paths: patterns over closed folders, folders of parts, other
// spellings, existing and missing places.
func TestPaths(t *testing.T) {
	c := startCluster(t, Options{DataNodes: 1, Replication: 1})
	t.Run("closed folder", func(t *testing.T) { testClosedFolder(t, c) })
	taxon := buildCommand(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	t.Run("info", func(t *testing.T) { testInfo(t, c, taxon) })
	t.Run("tune", func(t *testing.T) { testTune(t, c, taxon) })
	t.Run("spellings", func(t *testing.T) { testSpellings(t, c, taxon) })
	nothingBut(t, ".")
}

// testClosedFolder checks that a folder which a pattern cannot list is reported and not left out.
func testClosedFolder(t *testing.T, c *Cluster) {
	for _, name := range []string{"/glob/wf/part-0", "/glob/wft/part-0", "/glob/wft/part-1", "/glob/xf"} {
		path := c.URL(name)
		if err := fs.MkdirAll(fs.Dir(path)); err != nil {
			t.Fatal(err)
		}
		put(t, path, []byte("x\n"))
	}
	c.admin(t, "-chmod", "700", "/glob/wf")
	bob := asUser(c, "bob")
	_, err := fs.Expand(t.Context(), bob+"/glob/w*/part-*")
	wantInput(t, err, bob+"/glob/wf", "the folder may not be listed")
	if got, err := fs.Expand(t.Context(), bob+"/glob/wft*/part-*"); err != nil || len(got) != 2 {
		t.Errorf("a pattern that leaves it out: %q, %v", got, err)
	}
	if got, err := fs.Expand(t.Context(), bob+"/glob/*/*1"); err == nil {
		t.Errorf("listed %q", got)
	}
	if got, err := fs.Expand(t.Context(), c.URL("/glob/*/part-*")); err != nil || len(got) != 3 {
		t.Errorf("its owner: %q, %v", got, err)
	}
}

// asUser returns the root of the cluster's file system as another user.
func asUser(c *Cluster, name string) string {
	return fs.Scheme + name + "@" + c.URL("")[len(fs.Scheme):]
}

// testTune checks that a search in HDFS gives the results of a local one, resumes, and that train
// reads its job file.
func testTune(t *testing.T, c *Cluster, taxon cli) {
	local, remote := t.TempDir(), c.URL("/tune")
	var chosen []any
	for _, root := range []string{local, remote} {
		if err := fs.MkdirAll(root); err != nil {
			t.Fatal(err)
		}
		data, out := fs.Join(root, "train.svm"), fs.Join(root, "below", "search")
		put(t, data, multiLabelRows(120, 1))
		args := []string{"tune", "--data", data, "--out", out, "--C", "0.1,1,10", "--families", "none", "--folds", "2",
			"--exhaustive", "--no-train"}
		first := taxon.figures(t, args...)
		nothingBut(t, fs.Dir(out), "search")
		nothingBut(t, out, "job.yaml", "points", "search.json", "table.json", "tune.svg")
		points := fs.Join(out, "points")
		names, err := fs.ReadDirNames(points)
		if err != nil || len(names) != 12 {
			// the result and the predictions of three points in two folds
			t.Fatalf("points: %q, %v", names, err)
		}
		if err := fs.RemoveAll(fs.Join(points, names[0])); err != nil {
			t.Fatal(err)
		}
		again := taxon.figures(t, args...)
		if !reflect.DeepEqual(first["options"], again["options"]) || !reflect.DeepEqual(values(first), values(again)) {
			t.Errorf("%s: first %v, then %v", root, first, again)
		}
		taxon.run(t, 2, "tune", "--data", data, "--out", out, "--folds", "3")
		taxon.run(t, 2, "tune", "--data", data, "--out", root) // the folder holds something else
		model := taxon.figures(t, "train", "--job", fs.Join(out, "job.yaml"), "--out", fs.Join(root, "model"))
		chosen = append(chosen, []any{first["options"], values(first), model["weights_sha256"]})
	}
	if !reflect.DeepEqual(chosen[0], chosen[1]) {
		t.Errorf("here %v, in HDFS %v", chosen[0], chosen[1])
	}
	taxon.run(t, 2, "train", "--job", remote+"/none.yaml", "--out", filepath.Join(local, "m"))
}

// values returns the results of a search's points.
func values(table map[string]any) (out []any) {
	points, _ := table["points"].([]any)
	for _, p := range points {
		point, _ := p.(map[string]any)
		out = append(out, point["C"], point["value"], point["fold_values"])
	}
	return out
}

// testInfo checks that info treats a pattern and a folder of parts like the file that they form.
func testInfo(t *testing.T, c *Cluster, taxon cli) {
	rows := multiLabelRows(100, 1)
	half := bytes.LastIndexByte(rows[:len(rows)/2], '\n') + 1
	for _, root := range []string{t.TempDir(), c.URL("/info")} {
		if err := fs.MkdirAll(fs.Join(root, "parts")); err != nil {
			t.Fatal(err)
		}
		put(t, fs.Join(root, "whole"), rows)
		put(t, fs.Join(root, "parts", "part-00000"), rows[:half])
		put(t, fs.Join(root, "parts", "part-00001"), rows[half:])
		put(t, fs.Join(root, "parts", "_SUCCESS"), nil)
		whole := taxon.figures(t, "info", fs.Join(root, "whole"))
		for _, path := range []string{"parts", "parts/part-*", "p*/part-0000[01]"} {
			got := taxon.figures(t, "info", fs.Join(root, path))
			for _, key := range []string{"kind", "bytes", "instances", "features", "nonzeros", "labels"} {
				if got[key] == nil || got[key] != whole[key] {
					t.Errorf("%s: %s %v, want %v", path, key, got[key], whole[key])
				}
			}
		}
		for _, path := range []string{"none", "none*", ""} {
			taxon.run(t, 2, "info", fs.Join(root, path))
		}
	}
}

// testSpellings checks that hdfs:/x and HDFS:///x mean hdfs:///x, that a missing folder is named,
// and that an existing model is replaced only on request.
func testSpellings(t *testing.T, c *Cluster, taxon cli) {
	t.Setenv("HADOOP_CONF_DIR", c.Conf())
	put(t, "hdfs:///spelled.svm", multiLabelRows(60, 1))
	for _, data := range []string{"hdfs:/spelled.svm", "HDFS:///spelled.svm", strings.Replace(c.URL("/spelled.svm"),
		"hdfs", "Hdfs", 1)} {
		taxon.run(t, 0, "train", "--data", data, "--out", "hdfs:/spelled", "--force", "--max-sweeps", "2")
		taxon.run(t, 0, "predict", "--model", "hdfs:/spelled", "--data", data, "--out", "HDFS:/spelled.txt")
	}
	nothingBut(t, c.URL("/"), "glob", "info", "spelled", "spelled.svm", "spelled.txt", "tune")
	for _, args := range [][]string{
		{"predict", "--model", "hdfs:/spelled", "--data", "hdfs:/spelled.svm", "--out", "hdfs:///p/wf"},
		{"export", "--model", "hdfs:/spelled", "--out", "hdfs:///p/wf"},
	} {
		if _, errs := taxon.run(t, 2, args...); !strings.Contains(errs, "hdfs:///p/wf: no such directory as "+
			"hdfs:///p: make it first") {
			t.Errorf("%v: %s", args, errs)
		}
	}
	export := []string{"export", "--model", "hdfs:/spelled", "--format", "model", "--out", "hdfs:/small"}
	taxon.run(t, 0, export...)
	if _, errs := taxon.run(t, 2, export...); !strings.Contains(errs, "hdfs:///small: exists already") {
		t.Errorf("export over a model: %s", errs)
	}
	taxon.run(t, 0, append(export, "--force")...)
}
