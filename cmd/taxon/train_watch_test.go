package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A training that is watched is shown as a cluster's jobs are, and cancelled from there: its
// checkpoint is kept, and the same command continues from it.
func TestTrainWatchAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	vars := map[string]string{"DATA": writeText(t, "train.svm", multiLabel(20000, 1)), "TEST": writeText(t, "test.svm",
		multiLabel(20, 2)), "OUT": filepath.Join(t.TempDir(), "m"), "ADDR": addr}
	command := "train --data $DATA --out $OUT --method bsvm --threads 1 --gap 1e-15 --max-sweeps 1000000 --cutoff none " +
		"--x checkpoint-seconds=0.01 --test $TEST --eval-every 1 --watch-address "
	if code, _, stderr := runTaxon(t, "", command+"$ADDR", vars); code != 2 || !strings.Contains(stderr,
		"--watch-address") {
		t.Errorf("an address that is taken: exit %d, %s", code, stderr)
	}
	if code, _, stderr := runTaxon(t, "", command+"0.0.0.0:0", vars); code != 2 || !strings.Contains(stderr, "TLS") {
		t.Errorf("an address beyond loopback: exit %d, %s", code, stderr)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	type end struct {
		code   int
		stderr string
	}
	ended := make(chan end, 1)
	go func() {
		code, _, stderr := runTaxon(t, "", command+"$ADDR", vars)
		ended <- end{code, stderr}
	}()
	var seen struct {
		State string `json:"state"`
		Sweep int    `json:"sweep"`
		Trace []struct {
			MicroF1 *float64 `json:"micro_f1"`
		} `json:"trace"`
	}
	get := func(path string, into any) bool {
		r, err := http.Get("http://" + addr + path)
		if err != nil {
			return false
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		return err == nil && r.StatusCode == http.StatusOK && json.Unmarshal(text, into) == nil
	}
	for seen.Sweep < 2 || len(seen.Trace) == 0 {
		select {
		case e := <-ended:
			t.Fatalf("it ended before it was seen: exit %d, %s", e.code, e.stderr)
		case <-time.After(5 * time.Millisecond):
			get("/api/v1/jobs/train", &seen)
		}
	}
	var workers struct {
		Workers []struct {
			Name string `json:"name"`
		} `json:"workers"`
	}
	if !get("/api/v1/workers", &workers) || len(workers.Workers) != 1 || seen.State != "running" {
		t.Errorf("seen %+v, workers %+v", seen, workers)
	}
	var past struct {
		Workers []struct {
			Spans []struct {
				Job string `json:"job"`
			} `json:"spans"`
		} `json:"workers"`
	}
	if !get("/api/v1/timeline", &past) || len(past.Workers) != 1 || len(past.Workers[0].Spans) == 0 ||
		past.Workers[0].Spans[0].Job != "train" {
		t.Errorf("timeline: %+v", past)
	}
	if seen.Trace[0].MicroF1 == nil {
		t.Error("the curve of F1 is not shown")
	}
	r, err := http.NewRequest(http.MethodPost, "http://"+addr+"/api/v1/jobs/train:cancel", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Taxon", "1")
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
	answer.Body.Close()
	if e := <-ended; e.code != 130 || !strings.Contains(e.stderr, "to continue from there") || !strings.Contains(e.stderr,
		"watch it at http://"+addr+"/") {
		t.Errorf("exit %d, %s", e.code, e.stderr)
	}
	if code, _, stderr := runTaxon(t, "", strings.Replace(command, "1000000", "3", 1)+"127.0.0.1:0", vars); code != 0 {
		t.Errorf("going on: exit %d, %s", code, stderr)
	}
}
