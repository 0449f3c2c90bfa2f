package main

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"taxon/internal/model/form"
	"taxon/internal/model/measure"
)

// TestHBLRVariational: the report and the trace have the bound; predict --predictive writes, of
// models by either inference, the probabilities that follow from exported means and
// variances, and eval --predictive measures them; warm starts; refusals.
func TestHBLRVariational(t *testing.T) {
	dir := noisyFiles(t)
	vars := map[string]string{"d": dir, "r": filepath.Join(dir, "r"), "w": filepath.Join(dir, "w"), "x": filepath.Join(dir,
		"x")}
	do := taxonOf(t, vars)
	const train = "train --data $d/train.svm --hierarchy $d/tree.txt --method hblr-m1 --json --quiet "
	for inference, rule := range map[string]form.Predictive{"map": form.Laplace, "variational": form.Variational} {
		vars["m"] = filepath.Join(dir, inference)
		options := "--x inference=" + inference
		if inference == "variational" {
			options += " --x covariance=diagonal"
		}
		var d trainedDocument
		if err := json.Unmarshal([]byte(do(train+"--out $m "+options)), &d); err != nil {
			t.Fatal(err)
		}
		if (d.Own["covariance"] != nil) != (inference == "variational") {
			t.Errorf("%s: covariance %s in the report", inference, d.Own["covariance"])
		}
		var bound float64
		if err := json.Unmarshal(d.Own["bound"], &bound); (err == nil) != (inference == "variational") || err == nil &&
			(bound != -d.Objective || d.Certificate != "lower_bound") {
			t.Errorf("%s: bound %g, objective %g, %s", inference, bound, d.Objective, d.Certificate)
		}
		rows := 0
		for line := range strings.Lines(readFile(t, filepath.Join(vars["m"], "trace.jsonl"))) {
			var row struct{ Objective, Bound *float64 }
			if err := json.Unmarshal([]byte(line), &row); err != nil || (row.Bound != nil) != (bound != 0) || row.Bound != nil &&
				*row.Bound != -*row.Objective {
				t.Errorf("%s: trace %s: %v", inference, line, err)
			}
			rows++
		}
		if rows != d.Sweeps {
			t.Errorf("%d lines of %d sweeps", rows, d.Sweeps)
		}
		vectors := func(what string) map[string]map[string]float64 {
			out := map[string]map[string]float64{}
			for line := range strings.Lines(do("export --model $m --out - --quiet --what " + what)) {
				f := strings.Fields(line)
				out[f[1]] = vectorOf(f[2:])
			}
			return out
		}
		mean, variance := vectors("mean"), vectors("variance")
		instances := bufio.NewScanner(strings.NewReader(readFile(t, filepath.Join(dir, "test.svm"))))
		loss, instance := 0.0, 0.0
		for line := range strings.Lines(do("predict --model $m --data $d/test.svm --out - --quiet " +
			"--predictive --scores --top 6")) {
			instances.Scan()
			f := strings.Fields(instances.Text())
			x := vectorOf(f[1:])
			x["bias"] = 1
			own, all := 0.0, 0.0
			for label := range strings.SplitSeq(strings.TrimSpace(line), ",") {
				name, score, _ := strings.Cut(label, ":")
				got, err := strconv.ParseFloat(score, 64)
				if err != nil {
					t.Fatal(err)
				}
				if all += got; name == f[0] {
					own = got
				}
				u, s := 0.0, 0.0
				for column, v := range x {
					u += v * mean[name][column]
					s += v * v * variance[name][column]
				}
				if want := 1 / (1 + math.Exp(-rule(u, s))); math.Abs(got-want) > 1e-4 || !(s > 0) {
					t.Fatalf("%s: class %s of %q: %g, want %g (score %g, spread %g)", inference, name, instances.Text(), got, want, u,
						s)
				}
			}
			loss, instance = loss-math.Log(own/all), instance+1
		}
		var plain, wide measure.Result
		for r, options := range map[*measure.Result]string{&plain: "", &wide: " --predictive --compare $m"} {
			if err := json.Unmarshal([]byte(do("eval --model $m --data $d/test.svm --json --quiet"+options)), r); err != nil ||
				r.Probability == nil {
				t.Fatal(err)
			}
		}
		if math.Abs(wide.LogLoss/(loss/instance)-1) > 1e-9 || wide.LogLoss == plain.LogLoss ||
			*wide.Other.Probability != *plain.Probability {
			t.Errorf("%s: log-loss %g, want %g; by the means %g, beside it %g", inference, wide.LogLoss, loss/instance,
				plain.LogLoss, wide.Other.LogLoss)
		}
	}
	do(train + "--x inference=variational --x covariance=diagonal --warm-start $m --out $w")
	vars["f"] = filepath.Join(dir, "f")
	do(train + "--cutoff fit --out $f")
	do("train --data $d/train.svm --hierarchy $d/tree.txt --method rr-lr --out $r --quiet")
	for line, want := range map[string]string{
		train + "--x inference=variational " +
			"--x schedule=parity --out $x": "goes with inference map",
		train + "--x inference=variational --x covariance=diagonal " +
			"--memory 1MB --out $x": "would be needed, --memory is",
		train + "--x inference=variational --threads 2 " +
			"--memory 1MB --out $x": "use --x covariance=diagonal, fewer --threads",
		"predict --model $r --data $d/test.svm " +
			"--predictive --out -": "holds no variances for --predictive",
		"eval --model $r --data $d/test.svm --predictive": "holds no variances for --predictive",
		"predict --model $f --data $d/test.svm --predictive " +
			"--cutoff scut --out -": "predict: --predictive has scores that the fitted cut-offs of",
		"eval --model $f --data $d/test.svm " +
			"--predictive --cutoff instance": "eval: --predictive has scores that " +
			"the fitted cut-offs of",
		"eval --pred $d/test.svm --data " +
			"$d/test.svm --predictive": "--predictive needs --model",
		"train --data $d/train.svm --method rr-lr --x inference=" +
			"variational --out $x": "--x inference means nothing to --method rr-lr",
		"train --data $d/train.svm --method hblr-m1 --x inference=variational " +
			"--x covariance=s --out $x": "must be one of full, diagonal",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code == exitDone || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d, %s", line, code, stderr)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
