package badinput

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// train is the command line of most trials, which are invalid only because of their data.
const train = "train --data bad.svm --out m"

func TestInstances(t *testing.T) {
	bad := func(name, text, at, says string) trial {
		return trial{name: name, files: map[string]string{"bad.svm": text}, args: train, at: at, says: says}
	}
	runAll(t, []trial{
		bad("index zero", "a 1:1\nb 0:1\n", "bad.svm:2: feature index 0: indices start at 1 (use --zero-based", ""),
		bad("negative index", "a 1:1\n\n# x\nb -3:1\n", "bad.svm:4: feature index -3: ", "not negative"),
		bad("index above 2^31-1", "a 2147483648:1\nb 1:1\n", "bad.svm:1: feature index 2147483648: ", "2147483647"),
		bad("index of many digits", "a 1:1\nb 1:1\nc 99999999999999999999999:1\n", "bad.svm:3: feature index "+
			"99999999999999999999999: ", ""),
		bad("index that is no number", "a x:1\n", "bad.svm:1: ", `"x"`),
		bad("index with a fraction", "a 1.5:1\n", "bad.svm:1: ", "not an integer"),
		bad("NaN", "a 1:1\nb 2:NaN\n", "bad.svm:2: ", "finite"),
		bad("Inf", "a 1:inf\nb 2:1\n", "bad.svm:1: ", "finite"),
		bad("minus infinity", "a 1:1\nb 2:-Infinity\n", "bad.svm:2: ", "finite"),
		bad("overflow of float32", "a 1:1\nb 1:3.5e38\n", "bad.svm:2: ", ""),
		bad("overflow of float64", "a 1:1e999\nb 1:1\n", "bad.svm:1: ", ""),
		bad("value that is no number", "a 1:one\n", "bad.svm:1: ", `"1:one"`),
		bad("hexadecimal value", "a 1:0x10\n", "bad.svm:1: ", ""),
		bad("missing value", "a 1:\n", "bad.svm:1: ", ""),
		bad("missing colon", "a 1:1 2\n", "bad.svm:1: ", `"2"`),
		bad("blank around the colon", "a 1 :1\n", "bad.svm:1: ", ""),
		bad("index twice", "a 3:1 1:1 3:2\n", "bad.svm:1: feature index 3 occurs twice", ""),
		bad("label with a blank", "a 1:1\nsmall dog 1:1\n", "bad.svm:2: ", "labels stand first"),
		bad("empty label name", "a,,b 1:1\n", "bad.svm:1: empty label name", ""),
		bad("comma at the end", "a, 1:1\n", "bad.svm:1: empty label name", ""),
		bad("label not UTF-8", "a 1:1\nb\xff 1:1\n", "bad.svm:2: ", "UTF-8"),
		bad("control character", "a\x07 1:1\n", "bad.svm:1: ", "control character"),
		bad("NUL bytes", "a 1:1\nb 1:1\x00\x00\n", "bad.svm:2: ", "NUL"),
		bad("UTF-16 with a mark", wide("a 1:1\nb 2:1\n", true), "bad.svm:1: ", "UTF-16"),
		bad("UTF-16 without a mark", wide("a 1:1\nb 2:1\n", false), "bad.svm:1: ", ""),
		bad("binary junk", junk(4096), "bad.svm", ""),
		bad("an executable", "\x7fELF\x02\x01\x01\x00\x00\x00\x00", "bad.svm:1: ", ""),
		bad("empty file", "", "bad.svm: ", ""),
		bad("empty lines only", "\n\n\r\n", "bad.svm: no instance in it", ""),
		bad("lines of blanks only", "  \n\t\n", "bad.svm: no instance has a label", ""),
		bad("CR line ends", "a 1:1\rb 2:1\r", "bad.svm:1: carriage return", "tr '\\r' '\\n'"),
		bad("XMC, an empty line too many", "2 4 2\n0 0:1\n\n1 1:1\n", "bad.svm:4: ", "an empty one too"),
		bad("comments only", "# one\n# two\n", "bad.svm: ", ""),
		bad("no positive at all", " 1:1\n 2:1\n", "bad.svm: ", "label"),
		bad("XMC header with too few rows", "3 4 2\n0 0:1\n1 1:1\n", "bad.svm", ""),
		bad("XMC header with too many rows", "1 4 2\n0 0:1\n1 1:1\n", "bad.svm:3: ", ""),
		bad("XMC index outside", "1 4 2\n0 4:1\n", "bad.svm:2: feature index 4: ", "announces 4"),
		bad("XMC label outside", "1 4 2\n2 0:1\n", "bad.svm:2: ", ""),
		bad("CSV", "a,0.5,0.25\nb,1, 2\n", "bad.svm:2: ", ""),
		{name: "zero-based negative index", files: map[string]string{"bad.svm": "a 0:1\nb -1:1\n"}, args: train +
			" --zero-based", at: "bad.svm:2: feature index -1: "},
		{name: "standard input", stdin: strings.NewReader("a 1:1\nb 0:1\n"), args: "train --data - --out m",
			at: "stdin:2: feature index 0: "},
		{name: "empty standard input", args: "train --data - --out m", at: "stdin: "},
		{name: "second file", files: map[string]string{"bad.svm": "a 1:1\nb 1:x\n"}, args: "train --data good.svm " +
			"--data bad.svm --out m", at: "bad.svm:2: "},
		{name: "ingest", files: map[string]string{"bad.svm": "a 1:1\nb 0:1\n"}, args: "ingest --data bad.svm --out s",
			at: "bad.svm:2: feature index 0: "},
		{name: "predict", files: map[string]string{"bad.svm": "a 1:1\nb 0:1\n"}, args: "predict --model model --data " +
			"bad.svm --out p.txt", at: "bad.svm:2: feature index 0: "},
		{name: "eval", files: map[string]string{"bad.svm": "a 1:1\nb 0:1\n"}, args: "eval --model model --data bad.svm",
			at: "bad.svm:2: feature index 0: "},
		{name: "eval of nothing", files: map[string]string{"bad.svm": ""}, args: "eval --model model --data bad.svm",
			at: "bad.svm: "},
		{name: "info", files: map[string]string{"bad.svm": "a 1:1\nb 0:1\n"}, args: "info bad.svm",
			at: "bad.svm:2: feature index 0: "},
		{name: "a line of 100 MB", stdin: longLine(100 << 20), args: "train --data - --out m --quiet", at: "stdin:2: ",
			says: "64 MiB"},
		{name: "a line of 100 MB to predict", stdin: longLine(100 << 20), args: "predict --model model --data - " +
			"--out p.txt --quiet", at: "stdin:2: ", says: "64 MiB"},
		{name: "text without a tab", files: map[string]string{"bad.svm": "a\tone two\nb three\n"}, args: train + " --text",
			at: "bad.svm:2: ", says: "tab"},
		{name: "text not UTF-8", files: map[string]string{"bad.svm": "a\tone two\nb\tthree \xfe\xff\n"}, args: train +
			" --text", at: "bad.svm:2: ", says: "UTF-8"},
		{name: "text with CR line ends", files: map[string]string{"bad.svm": "a\tone two\rb\tthree two\r"}, args: train +
			" --text", at: "bad.svm:1: carriage return", says: "tr"},
		{name: "CR line ends to predict", files: map[string]string{"bad.svm": "a 1:1\rb 2:1\r"},
			args: "predict --model model --data bad.svm --out p.txt", at: "bad.svm:1: carriage return"},
		{name: "CR line ends in predictions", files: map[string]string{"bad.txt": "a\rb\r"},
			args: "eval --pred bad.txt --data good.svm", at: "bad.txt:1: carriage return"},
		{name: "text with NUL", files: map[string]string{"bad.svm": "a\tone two\nb\tthree \x00\n"}, args: train + " --text",
			at: "bad.svm:2: ", says: "NUL"},
	})
}

// TestNothingToLearn uses data in which no two instances differ. A single class suffices if some
// instances do not have it.
func TestNothingToLearn(t *testing.T) {
	one, bare, all := "x 1:1\nx 2:1\nx 1:1 2:1\n", "a\nb\n \n", "x,y 1:1\ny,x 2:1\n"
	oneText, bareText := "x\tone two\nx\tone three\nx\ttwo three\n", "x\tone two\ny\tthree four\n"
	var trials []trial
	add := func(what, text, flags, says string) {
		for _, verb := range []string{"train --out m", "tune --out t --folds 2", "train --out m --method bsvm",
			"train --out m --engine mapreduce", "train --out m --hierarchy xy.txt",
			"train --out m --graph xy.txt"} {
			trials = append(trials, trial{name: what + ", " + verb, files: map[string]string{"bad.svm": text,
				"xy.txt": "r x\nr y\nr a\n"}, args: verb + " --data bad.svm" + flags, at: "bad.svm: ", says: says})
		}
	}
	add("one class", one, "", "every instance has the one label \"x\"")
	add("one class of text", oneText, " --text", "every instance has the one label \"x\"")
	add("all classes everywhere", all, "", "every instance has all 2 labels")
	add("no feature", bare, "", "no instance has a feature")
	add("no feature of text", bareText, " --text", "(--x min-df)")
	runAll(t, append(trials,
		trial{name: "new instances alone, from a model", files: map[string]string{"bad.svm": one},
			args: "train --data bad.svm --warm-start model --out m", at: "bad.svm: every instance",
			says: "--warm-start takes weights from model, not instances"},
		trial{name: "ingested", files: map[string]string{"bad.svm": one}, prep: func(t *testing.T, dir string) {
			cmd := exec.Command(binary, "ingest", "--data", "bad.svm", "--out", "badset")
			if cmd.Dir = dir; cmd.Run() != nil {
				t.Fatal("ingest failed")
			}
		}, args: "train --data badset --out m", at: "badset: every instance"},
	))
	for name, text := range map[string]string{"negatives": one + " 3:1\n", "one with less": "x,y 1:1\nx 2:1\n",
		"two": "x 1:1\ny 2:1\n"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "fine.svm"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary, "train", "--data", "fine.svm", "--out", "m")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}

func TestCompression(t *testing.T) {
	text := []byte(strings.Repeat("a 1:1 2:1\nb 3:1 4:0.25\n", 2000))
	var trials []trial
	for _, c := range []struct {
		name string
		pack func(io.Writer) (io.WriteCloser, error)
	}{
		{"gzip", func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }},
		{"zstd", func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }},
		{"xz", func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) }},
	} {
		var b bytes.Buffer
		w, err := c.pack(&b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		whole := b.Bytes()
		put := func(what string, data []byte, says string) {
			trials = append(trials, trial{name: c.name + " " + what, files: map[string]string{"bad.svm": string(data)},
				args: train, at: "bad.svm", says: says})
		}
		put("cut", whole[:len(whole)*2/3], "")
		put("cut by a byte", whole[:len(whole)-1], "")
		put("cut in its head", whole[:7], "")
		flipped := bytes.Clone(whole)
		flipped[len(flipped)/2] ^= 0x10
		put("with a flipped bit", flipped, "")
		put("followed by junk", append(bytes.Clone(whole), "junk\x00junk"...), "")
	}
	runAll(t, trials)
}

func TestPaths(t *testing.T) {
	runAll(t, []trial{
		{name: "missing data", args: "train --data no.svm --out m", at: "no.svm: no such file or directory"},
		{name: "missing folder of data", args: "train --data no/no.svm --out m", at: "no/no.svm: no such file or directory"},
		{name: "data is a folder", prep: mkdir("folder"), args: "train --data folder --out m", at: "folder: "},
		{name: "data below a file", args: "train --data good.svm/x --out m", at: "good.svm/x: "},
		{name: "data of a long name", args: "train --data " + strings.Repeat("x", 300) + " --out m", at: "xxx",
			says: "too long"},
		{name: "data is a loop of links", prep: link("loop", "loop"), args: "train --data loop --out m", at: "loop: "},
		{name: "missing hierarchy", args: "train --data good.svm --hierarchy no.txt --out m", at: "no.txt: no such file"},
		{name: "hierarchy is a folder", args: "train --data good.svm --hierarchy model --out m", at: "model: "},
		{name: "missing test data", args: "train --data good.svm --test no.svm --out m", at: "no.svm: no such file"},
		{name: "test data is a folder", prep: mkdir("folder"), args: "train --data good.svm --test folder --out m",
			at: "folder: "},
		{name: "deep out of ingest", files: map[string]string{"bad.svm": "a 0:1\n"},
			args: "ingest --data bad.svm --out x/y/s", at: "bad.svm:1: "},
		{name: "bad line in the test data", files: map[string]string{"bad.svm": "a 1:1\nb 0:1\n"},
			args: "train --data good.svm --test bad.svm --out m", at: "bad.svm:2: feature index 0: "},
		{name: "vectors to test on text", args: "train --data good.txt --text --test good.svm --out m", at: "good.svm:1: ",
			says: "tab"},
		{name: "ingested text to test on text", args: "train --data good.txt --text --out m --x prune=none --test textset2",
			prep: otherText, at: "textset2: is ingested text"},
		{name: "deep out, bad data", args: "train --data no.svm --out x/y/m", at: "no.svm: no such file"},
		{name: "out is a file", args: "train --data good.svm --out good.svm", at: "good.svm: is a file"},
		{name: "out below a file", args: "train --data good.svm --out good.svm/m", at: "good.svm/m: "},
		{name: "out in a system folder", args: "train --data good.svm --out /proc/taxon", at: "/proc/taxon: "},
		{name: "out is somebody's folder", prep: foreign("mine"), args: "train --data good.svm --out mine",
			at: "mine: holds \"diary.txt\""},
		{name: "out is somebody's folder, force", prep: foreign("mine"), args: "train --data good.svm --out mine --force",
			at: "mine: holds \"diary.txt\""},
		{name: "out is a data set", args: "train --data good.svm --out set", at: "set: holds "},
		{name: "ingest over a folder", prep: foreign("mine"), args: "ingest --data good.svm --out mine",
			at: "mine: exists already"},
		{name: "ingest over a folder, force", prep: foreign("mine"), args: "ingest --data good.svm --out mine --force",
			at: "mine: "},
		{name: "ingest to a file", args: "ingest --data good.svm --out good.svm", at: "good.svm: is a file"},
		{name: "ingest in a system folder", args: "ingest --data good.svm --out /proc/taxon", at: "/proc/taxon: "},
		{name: "predict to a folder", args: "predict --model model --data good.svm --out set", at: "set: is a directory"},
		{name: "predict below a file", args: "predict --model model --data good.svm --out tree.txt/p.txt",
			at: "tree.txt/p.txt: a part of the path is a file"},
		{name: "export below a file", args: "export --model model --out good.svm/w.txt", at: "good.svm/w.txt: a part " +
			"of the path is a file"},
		{name: "export over a folder", prep: foreign("mine"), args: "export --model model --out mine/", at: "mine"},
		{name: "export parts over a file", args: "export --model model --out good.svm/", at: "good.svm"},
		{name: "info of nothing", args: "info no", at: "no: no such file"},
		{name: "demo over a file", args: "demo --keep good.svm", at: "good.svm: "},
	})
}

// otherText ingests a text that no model was trained on.
func otherText(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "other.txt"), []byte("a\tone two\nb\tone two\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	c := trial{args: "ingest --data other.txt --text --out textset2 --quiet"}
	if code, _, stderr := c.run(t, dir); code != 0 {
		t.Fatal(stderr)
	}
}

func mkdir(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
}

// foreign creates a folder with a file of the user.
func foreign(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		mkdir(name)(t, dir)
		if err := os.WriteFile(filepath.Join(dir, name, "diary.txt"), []byte("dear diary\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func link(target, name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// wide returns a text in UTF-16, little endian.
func wide(s string, mark bool) string {
	if mark {
		s = "\ufeff" + s
	}
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func junk(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

// longLine returns a valid line and then one of n bytes, which is generated as it is read.
func longLine(n int64) io.Reader {
	return io.MultiReader(strings.NewReader("a 1:1\nb "), io.LimitReader(&pairs{}, n), strings.NewReader("\n"))
}

type pairs struct{}

func (*pairs) Read(p []byte) (int, error) {
	const pair = "1234:0.5 "
	n := 0
	for n+len(pair) <= len(p) {
		n += copy(p[n:], pair)
	}
	if n == 0 {
		return copy(p, pair), nil
	}
	return n, nil
}
