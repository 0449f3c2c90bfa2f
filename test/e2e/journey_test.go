package e2e

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shop writes n rows of a realistic table: paths of categories whose names contain commas, quotes
// and '#', texts over several lines, and prices of which some are missing.
func shop(t *testing.T, path string, seed uint64, n int) {
	t.Helper()
	leaves := []string{"Food > Fruit", "Food > Vegetables, fresh", "Food > Bread", "Tools > Hand tools",
		"Tools > Power tools", `Toys & "Games" > Dolls`, `Toys & "Games" > Puzzles #1`}
	r := rand.New(rand.NewPCG(seed, 9))
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write([]string{"id", "title", "body", "price", "category"}) // a buffer accepts everything, here and below
	for i := range n {
		k := r.IntN(len(leaves))
		words := make([]string, 8)
		for j := range words {
			words[j] = fmt.Sprintf("w%d", r.IntN(40)+20*k*r.IntN(2))
		}
		price := ""
		if r.IntN(20) > 0 {
			price = fmt.Sprintf("%.2f", 10+30*float64(k%2)+6*r.NormFloat64())
		}
		_ = w.Write([]string{fmt.Sprintf("id-%d", i), strings.Join(words[:3], " "), strings.Join(words[3:], ",\n"), price,
			leaves[k]})
	}
	w.Flush()
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestTableToEndpoint checks a table with a column of label paths, trains on it, predicts,
// evaluates, reports and serves. Each step uses the output of the previous one, and no option is
// given twice.
func TestTableToEndpoint(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	shop(t, at("train.csv"), 1, 900)
	shop(t, at("test.csv"), 2, 200)
	ok := func(args ...string) string {
		t.Helper()
		r := taxon(t, args...)
		if r.code != 0 {
			t.Fatalf("taxon %s: exit status %d: %s", strings.Join(args, " "), r.code, r.stderr)
		}
		return r.stdout
	}
	columns := []string{"--text-column", "title", "--text-column", "body", "--label-column", "category",
		"--path-separator", " > "}
	ok(append([]string{"check", "--data", at("train.csv"), "--test", at("test.csv")}, columns...)...)
	ok(append([]string{"train", "--data", at("train.csv"), "--feature-columns", "price", "--id-column", "id", "--test",
		at("test.csv"), "--calibrate", "temperature", "--out", at("m"), "--quiet"}, columns...)...)

	ok("predict", "--model", at("m"), "--data", at("test.csv"), "--format", "csv", "--top", "2", "--out", at("out.csv"),
		"--quiet")
	given, predicted := table(t, at("test.csv")), table(t, at("out.csv"))
	if want := "row,id,label_1,score_1,path_1,label_2,score_2,path_2"; strings.Join(predicted[0], ",") != want ||
		len(predicted) != len(given) {
		t.Fatalf("%d lines under %q, want %d under %q", len(predicted), predicted[0], len(given), want)
	}
	right := 0
	for i, row := range predicted[1:] {
		if row[0] != fmt.Sprint(i+1) || row[1] != given[i+1][0] || row[4] != row[2] {
			t.Fatalf("line %d: %q", i+2, row)
		}
		if row[2] == given[i+1][4] {
			right++
		}
	}
	var measures struct {
		Micro float64  `json:"micro_f1"`
		ECE   *float64 `json:"ece"`
	}
	if err := json.Unmarshal([]byte(ok("eval", "--model", at("m"), "--data", at("test.csv"), "--json", "--quiet")),
		&measures); err != nil {
		t.Fatal(err)
	}
	if share := float64(right) / float64(len(given)-1); share < 0.9 || share-measures.Micro > 1e-9 ||
		measures.Micro-share > 1e-9 || measures.ECE == nil {
		t.Errorf("%g of the labels in the file are right, eval says %+v", share, measures)
	}

	// exported as lines of instances, the vectors train to the same bytes as the table
	flat := func(out string, args ...string) string {
		return trained(t, taxon(t, append([]string{"train", "--method", "bsvm", "--json", "--quiet", "--out", at(out)},
			args...)...)).WeightsSHA256
	}
	want := flat("flat", append([]string{"--data", at("train.csv"), "--feature-columns", "price"}, columns...)...)
	ok("vectors", "--model", at("flat"), "--data", at("train.csv"), "--words", at("words.txt"), "--out", at("train.svm"),
		"--quiet")
	if got := flat("again", "--data", at("train.svm")); got != want {
		t.Errorf("weights of the vectors are %s, of the table %s", got, want)
	}
	if words, err := os.ReadFile(at("words.txt")); err != nil || !bytes.Contains(words, []byte("1\t\"price\"\n")) ||
		!bytes.Contains(words, []byte("\tw20\n")) {
		t.Errorf("words %q, %v", words[:min(len(words), 200)], err)
	}

	ok("report", at("m"), "--data", at("test.csv"), "--out", at("report.html"), "--quiet")
	page, err := os.ReadFile(at("report.html"))
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`(?i)<(script|img|iframe|link)[^>]*\s(src|href)=|url\(|@import`).Find(page); m != nil {
		t.Errorf("the report takes something from elsewhere: %s", m)
	}
	for _, word := range []string{"Vegetables, fresh", "Puzzles #1", "Micro", "--text-column title",
		"--path-separator &#39; &gt; &#39;"} {
		if !bytes.Contains(page, []byte(word)) {
			t.Errorf("the report does not say %q", word)
		}
	}

	// the file and the endpoint must agree on the first row
	address := serving(t, at("m"))
	first := given[1]
	instance := map[string]any{"text": first[1] + " " + first[2]}
	if first[3] != "" {
		instance["features"] = map[string]json.Number{"price": json.Number(first[3])}
	}
	body, err := json.Marshal(map[string]any{"instances": []any{instance, map[string]int{"txt": 1}}, "top": 2})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post("http://"+address+"/v1/models/m:predict", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Predictions []struct {
			Labels []struct {
				Label, Path string
				Score       json.Number
			}
			Error string
		}
	}
	if err := json.Unmarshal(text, &got); err != nil || answer.StatusCode != 200 || len(got.Predictions) != 2 {
		t.Fatalf("status %d: %s", answer.StatusCode, text)
	}
	for k, l := range got.Predictions[0].Labels {
		// a single row is scored in another order, so the last bits may differ
		in := predicted[1][2+3*k : 5+3*k]
		said, _ := l.Score.Float64()
		want, err := strconv.ParseFloat(in[1], 64)
		if err != nil || l.Label != in[0] || l.Path != in[2] || math.Abs(said-want) > 1e-12 {
			t.Errorf("place %d: the endpoint says %+v, the file %q", k+1, l, predicted[1])
		}
	}
	if len(got.Predictions[0].Labels) != 2 || got.Predictions[1].Error == "" {
		t.Errorf("answers %s: want two labels, and an error in its place", text)
	}
}

// serving starts an endpoint and returns its address. The endpoint is stopped gracefully at the end
// of the test.
func serving(t *testing.T, models ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "taxon"), append([]string{"serve", "--listen", "127.0.0.1:0"}, models...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(deadline, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		defer late.Stop()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve: %v: %s", err, stderr.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("serve says no address: %v: %s", err, stderr.String())
	}
	return strings.TrimPrefix(strings.TrimSpace(line), "serving at ")
}

// table reads a CSV file.
func table(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
