package report

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"taxon/internal/app/train"
	"taxon/internal/fs"
	"taxon/internal/model/predict"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/browser"
)

const (
	learned = "cat\tthe small cat\ncat\ta cat sleeps\ndog\tthe dog barked\ndog\ta dog and a cat\noak\tan old " +
		"oak\noak\toak leaves fall\npine\ta tall pine\npine\tthe pine <b>\n"
	asked = "cat\ta small cat\ndog\tcat cat cat\noak\ta dog barked\npine\tpine\nelm\tan elm\n\tno label\n"
	edges = "animal cat\nanimal dog\nplant oak\nplant pine\nlife animal\nlife plant\n"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// written is the page about a model, with one to compare with.
func written(t *testing.T) (string, []byte) {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"train": learned, "test": asked, "tree": edges} {
		must(t, os.WriteFile(at(name), []byte(text), 0o600))
	}
	for name, method := range map[string]string{"m": "rr-lr", "flat": "bsvm"} {
		o := train.Options{Data: []string{at("train")}, Text: true, Hierarchy: at("tree"), DAG: "graph", Out: at(name),
			Stores: 1, Store: "memory", Cutoff: "auto", Pause: 10,
			Files: fs.Local{}, Job: &taxonv1.Options{Method: method}}
		if name == "m" {
			o.Words.Ngrams = 2
			o.Job.Set("bias", 2)
		}
		_, err := train.Run(context.Background(), &o, progress.Discard{})
		must(t, err)
	}
	for _, card := range []Options{{Model: at("m"), Data: predict.Input{Path: at("test"), Files: fs.Local{}},
		Out: at("card.md")}, {Model: at("flat"), Out: at("bare.md")}} {
		_, err := Write(context.Background(), card, progress.Discard{})
		must(t, err)
	}
	s, err := Write(context.Background(), Options{Model: at("m"), Data: predict.Input{Path: at("test"), Files: fs.Local{}},
		Compare: []string{at("flat")}, Out: at("r.html")}, progress.Discard{})
	must(t, err)
	page, err := os.ReadFile(at("r.html"))
	must(t, err)
	if s.Bytes != int64(len(page)) || s.Instances != 6 {
		t.Errorf("%+v of %d bytes", s, len(page))
	}
	return at("r.html"), page
}

// The page says what there is to say, and takes nothing from elsewhere.
func TestPage(t *testing.T) {
	_, page := written(t)
	for _, want := range []string{
		"no weights whatever reach less", "Relative gap by sweep", "Macro-F1", "Log-loss", "Calibration",
		"dog</th>", "cat (1)", // dog was taken for cat
		"plant taken for animal", // at the root
		"Steps apart", "Wilcoxon", "taxon train --data DATA", "--bias 2", "--ngrams 2", "taxon report ",
	} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if elsewhere := regexp.MustCompile(`(?i)(src|href)\s*=\s*"[^#"]|https?:|@import|url\(`).Find(page); elsewhere != nil {
		t.Errorf("the page refers to something else: %q", elsewhere)
	}
	if bytes.Contains(page, []byte("<b>")) || bytes.Contains(page, []byte("%!")) {
		t.Error("text that is not escaped, or a broken figure")
	}
}

// A model card has its figures before the text, for machines, and no path of this machine.
func TestModelCard(t *testing.T) {
	page, _ := written(t)
	for name, want := range map[string][]string{
		"card.md": {"pipeline_tag: text-classification\n", "tags: [taxon, hierarchical-classification, " +
			"linear-model, rr-lr]\n", "model-index:\n- name: \"m\"\n  results:\n",
			`dataset: {name: "test", type: "test"}`, `    - {type: "Micro-F1", name: "Micro-F1", value: `, "# m\n",
			"that stand in a hierarchy", "no weights whatever reach less",
			"taxon predict --model MODEL --data TEXTS --text", "| Instances | 8, 1.00 labels each |", "## Results on test\n",
			"| Macro-F1 | ", "--hierarchy HIERARCHY --text"},
		"bare.md": {"hierarchical-classification, linear-model, bsvm]\n---\n", "# flat\n"},
	} {
		card, err := os.ReadFile(filepath.Join(filepath.Dir(page), name))
		must(t, err)
		for _, w := range want {
			if !bytes.Contains(card, []byte(w)) {
				t.Errorf("%s lacks %q:\n%s", name, w, card)
			}
		}
		if bytes.Contains(card, []byte(filepath.Dir(page))) || bytes.Contains(card, []byte("%!")) ||
			bytes.Contains(card, []byte("\n\n\n")) {
			t.Errorf("%s names a path, or has a broken figure:\n%s", name, card)
		}
	}
}

// A browser shows it: sorting and the filter work, nothing is complained of, the dark form is dark, and it prints.
// Pictures of it are kept by go test -artifacts.
func TestInBrowser(t *testing.T) {
	chromium := browser.Path(t)
	file, page := written(t)
	take := func(flags ...string) {
		t.Helper()
		text, err := exec.Command(chromium, append(flags, "--headless", "--no-sandbox", "--disable-gpu",
			"--window-size=1200,2400", "file://"+file)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	light, dark, paper := filepath.Join(t.ArtifactDir(), "report-light.png"), filepath.Join(t.ArtifactDir(),
		"report-dark.png"), filepath.Join(t.ArtifactDir(), "report.pdf")
	take("--screenshot=" + light)
	take("--screenshot="+dark, "--blink-settings=preferredColorScheme=0")
	take("--print-to-pdf=" + paper)
	if l, d := brightness(t, light), brightness(t, dark); l < 0.8 || d > 0.3 {
		t.Errorf("the light form has brightness %.2f, the dark one %.2f", l, d)
	}
	if printed, err := os.ReadFile(paper); err != nil || !bytes.HasPrefix(printed, []byte("%PDF")) {
		t.Errorf("it does not print: %v", err)
	}
	probe := `<script>
const head = document.querySelectorAll("#table th button")[6]; head.click();
const first = document.querySelector("#table tbody tr td:nth-child(7)").textContent; head.click();
const second = document.querySelector("#table tbody tr td:nth-child(7)").textContent;
const filter = document.getElementById("filter"); filter.value = "DOG"; filter.dispatchEvent(new Event("input"));
const shown = [...document.querySelectorAll("#table tbody tr")].filter(r => !r.hidden).map(r => r.cells[0].textContent).join();
document.body.dataset.probe = [Number(first) >= Number(second), first !== second, shown].join(" ");
</script></body>`
	must(t, os.WriteFile(file, bytes.Replace(page, []byte("</body>"), []byte(probe), 1), 0o600))
	out, err := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
		"--dump-dom", "file://"+file).CombinedOutput()
	must(t, err)
	if !strings.Contains(string(out), `data-probe="true true dog"`) {
		t.Errorf("the table does not sort or filter: %s", regexp.MustCompile(`data-probe="[^"]*"`).Find(out))
	}
	if complaint := regexp.MustCompile(`(?m)^.*CONSOLE.*$`).Find(out); complaint != nil {
		t.Errorf("the browser complains: %s", complaint)
	}
}

// brightness is a picture's, from 0 to 1.
func brightness(t *testing.T, path string) float64 {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	p, err := png.Decode(f)
	must(t, err)
	sum, size := 0.0, p.Bounds()
	for y := range size.Dy() {
		for x := range size.Dx() {
			sum += float64(color.GrayModel.Convert(p.At(x, y)).(color.Gray).Y)
		}
	}
	return sum / 255 / float64(size.Dx()*size.Dy())
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		whole  bool
		want   int
	}{{0, 1, false, 6}, {1, 19, false, 4}, {-3, 2, true, 6}, {5, 5.001, false, 6}} {
		if got := ticks(c.lo, c.hi, c.whole); len(got) < 2 || len(got) > 7 {
			t.Errorf("from %g to %g: %v", c.lo, c.hi, got)
		}
	}
}

// Lines have names outside the picture, and axes no -0.
func TestChart(t *testing.T) {
	c := fmt.Sprint(lineChart("Calibration", "probability", "share", false, series{"as it should be", []float64{0, 1},
		[]float64{0, 1}}, series{"came true", []float64{0, 1}, []float64{0.1, 0.9}}))
	if before, _, _ := strings.Cut(c, "<svg"); !strings.Contains(before, `k1">came true`) || strings.Contains(c, ">-0<") ||
		strings.Count(c, ">0<") != 2 {
		t.Error(c)
	}
}
