package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/app/demo"
	"taxon/internal/data/dataset"
)

// writesFlags checks that a verb's options are flags in all that it prints.
func writesFlags(t *testing.T, args []string, printed string) {
	t.Helper()
	if at := strings.Index(printed, "‹"); at >= 0 {
		t.Errorf("taxon %s: an option that is no flag: %.80s", strings.Join(args, " "), printed[at:])
	}
}

func runWith(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errw bytes.Buffer
	code = execute(t.Context(), args, strings.NewReader(stdin), &out, &errw)
	writesFlags(t, args, out.String()+errw.String())
	return code, out.String(), errw.String()
}

func TestIngest(t *testing.T) {
	train, _, _, _, err := demo.Files()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "data")
	code, stdout, stderr := runWith(t, string(train), "ingest", "--data", "-", "--text", "--out", out, "--json")
	if code != 0 || stderr != "" {
		t.Fatalf("exit status %d, stderr %q", code, stderr)
	}
	var r ingestReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	set, err := dataset.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if r.Instances != 6602 || r.Labels != 502 || r.Fingerprint != set.Fingerprint || !r.Text ||
		r.Nonzeros != set.Matrix.NNZ {
		t.Errorf("report %+v does not fit the data", r)
	}
	code, stdout, _ = runWith(t, "a 1:1\n", "ingest", "--data", "-", "--out", out, "--force")
	if code != 0 || !strings.Contains(stdout, "\n  instances   1\n") {
		t.Errorf("exit status %d, stdout %q", code, stdout)
	}
}

func TestIngestErrors(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.WriteFile(taken, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	for _, c := range []struct{ name, stdin, args, want string }{
		{"index 0", "a 1:1\nb 0:1\n", "--data -", "taxon: stdin:2: feature index 0"},
		{"not a number", "a 1:x\n", "--data -", "taxon: stdin:1: "},
		{"text without a tab", "a b\n", "--data - --text", "taxon: stdin:1: "},
		{"nothing", "", "--data -", "taxon: stdin: "},
		{"missing file", "", "--data " + dir + "/none", "taxon: " + dir + "/none: no such file or directory"},
		{"folder", "", "--data " + dir, "taxon: " + dir + ": is a directory"},
		{"empty name", "", "--data=", "taxon: ingest: --data \"\": name a file"},
		{"little memory", "a 1:1\n", "--data - --memory 1KiB", "taxon: memory bound"},
		{"no folder for temporary files", "a 1:1\n", "--data - --temp " + dir + "/none", "taxon: " + dir + "/none: "},
		{"out is a file", "a 1:1\n", "--data - --out " + taken, "taxon: " + taken + ": "},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"ingest"}, strings.Split(c.args, " ")...)
			if !strings.Contains(c.args, "--out") {
				args = append(args, "--out", out)
			}
			code, stdout, stderr := runWith(t, c.stdin, args...)
			if code != exitUsage || stdout != "" || !strings.HasPrefix(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit status %d, stdout %q, stderr %q, want %q", code, stdout, stderr, c.want)
			}
			left, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil || len(left) != 1 {
				t.Errorf("left behind: %q, %v", left, err)
			}
		})
	}
}

// A stream that is cut before a decoder hands out anything has no line to blame.
func TestIngestCutStream(t *testing.T) {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write([]byte(strings.Repeat("a 1:1\n", 1000))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, stderr := runWith(t, packed.String()[:12], "ingest", "--data", "-", "--out", t.TempDir()+"/set")
	if !strings.HasPrefix(stderr, "taxon: stdin: the gzip stream is cut short") {
		t.Error(stderr)
	}
}

// The help of verbs that read instances names each compression that is read.
func TestCompressionsInHelp(t *testing.T) {
	for _, verb := range []string{"train", "ingest", "tune"} {
		_, stdout, _ := runWith(t, "", verb, "--help")
		help := strings.Join(strings.Fields(stdout), " ")
		if !strings.Contains(help, "plain, gzip, bzip2, zstd") {
			t.Errorf("%s: %s", verb, stdout)
		}
	}
}

// TestBigrams: with --x ngrams=2 a model tells texts apart that differ in the order of their words,
// and predicts so without a flag; a job file has the flags, too.
func TestBigrams(t *testing.T) {
	t.Chdir(t.TempDir())
	text := strings.Repeat("a\tred dog of x\nb\tdog red of y\na\tthe red dog\nb\tthe dog red\n", 3) + "c\tcat\nc\tcat\n"
	for name, s := range map[string]string{"train.txt": text, "job.yaml": "data: train.txt\ntext: true\nngrams: " +
		"2\nstop-words: english\nmax-df: 1.0\n", "new.txt": "\tone red dog\n\tone dog red\n"} {
		if err := os.WriteFile(name, []byte(s), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := runWith(t, "", "train", "--job", "job.yaml", "--method", "bsvm", "--out", "m",
		"--quiet"); code != 0 {
		t.Fatal(stderr)
	}
	if _, stdout, stderr := runWith(t, "", "predict", "--model", "m", "--text", "--data", "new.txt",
		"--quiet"); stdout != "a\nb\n" {
		t.Errorf("%q, %q", stdout, stderr)
	}
	for _, args := range []string{"ingest --data train.txt --out x --x ngrams=2", "train --data train.txt --out x " +
		"--x stop-words=english", "ingest --data train.txt --text --out x --x min-df=0"} {
		if code, _, stderr := runWith(t, "", strings.Fields(args)...); code != 2 || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit status %d, %q", args, code, stderr)
		}
	}
}
