package main

import (
	"strings"
	"testing"
)

// A profile gives the flags by which a cluster is called; the command line goes before it.
func TestProfile(t *testing.T) {
	t.Setenv("TAXON_PROFILE", writeText(t, "profile", "# mine\ncoordinator: 127.0.0.1:1\ntls-ca: no-such.pem\n"))
	vars := map[string]string{"OTHER": writeText(t, "other", "tls-ca: absent.pem\n"),
		"HALF": writeText(t, "half", "tls-ca: no-such.pem\ntls-cert: c.pem\n"),
		"BAD":  writeText(t, "bad", "insecure: maybe\n"), "DATA": writeText(t, "t.svm", graphData)}
	for line, want := range map[string]string{
		"jobs --patience 1ms":                             "/no-such.pem: no such file",
		"jobs --coordinator 127.0.0.1:1 --profile $OTHER": "/absent.pem: no such file",
		"jobs --coordinator 127.0.0.1:1 --profile $HALF": "tls-cert in --profile and tls-key in --profile go " +
			"together",
		"jobs --coordinator 10.0.0.1:7 --profile $OTHER.none": "other.none: no such file",
		"jobs --profile $BAD":                       "bad:1: insecure: maybe: must be true or false",
		"rm job-1 --patience 1ms":                   "/no-such.pem: no such file",
		"jobs --state sleeping":                     "must be one of queued, running",
		"jobs --tls-ca x":                           "unknown flag --tls-ca: it is a setting of --profile",
		"train --data $DATA --out m --profile $BAD": "--profile: is for --watch-address",
		"train --data $DATA --out m --watch-address :0 --profile $BAD": "bad:1: insecure: maybe",
	} {
		if code, _, stderr := runTaxon(t, "", line, vars); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q; want %s", line, code, stderr, want)
		}
	}
	t.Setenv("TAXON_PROFILE", writeText(t, "profile", "coordinator: 127.0.0.1:1\npassword: x\n"))
	if code, _, stderr := runTaxon(t, "", "jobs", nil); code != 2 || !strings.Contains(stderr, "profile:2: want lines") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if code, _, stderr := runTaxon(t, "", "version", nil); code != 0 {
		t.Errorf("a verb that calls no cluster: %s", stderr)
	}
}

// help shows what people use, --method the options of a method too, --all the rest.
func TestHelpTrimmed(t *testing.T) {
	_, few, _ := runTaxon(t, "", "help train", nil)
	_, all, _ := runTaxon(t, "", "help train --all", nil)
	_, own, _ := runTaxon(t, "", "help train --method hblr-m1", nil)
	if !strings.Contains(own, "--x prior-scale=") || !strings.Contains(own, "--data ") || strings.Contains(own, "--C ") ||
		strings.Contains(own, "--x stiffness") || strings.Contains(own, "--hadoop-conf") {
		t.Errorf("of a method: %s", own)
	}
	for line, want := range map[string]string{"help train --method hblr": "use one of rr-svm",
		"help predict --method td": "`taxon predict` has none"} {
		if code, _, stderr := runTaxon(t, "", line, nil); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d, %s", line, code, stderr)
		}
	}
	if n := strings.Count(few, "\n  --"); n != 21 || strings.Contains(few, "stiffness") || !strings.Contains(few,
		"`taxon help train --all` shows ") {
		t.Errorf("%d flags:\n%s", n, few)
	}
	if !strings.Contains(all, "--x stiffness=") || strings.Contains(all, "more "+
		"flags") || strings.Count(all, "\n  --") < 45 {
		t.Errorf("all: %s", all)
	}
}

// check tells what it finds, and exits with 0.
func TestCheckVerb(t *testing.T) {
	vars := map[string]string{"D": writeText(t, "d.svm", "a 1:1\na 1:1\nb 1:1\nb 2:1\n"), "T": writeText(t, "t.svm",
		"a 2:1\nc 3:1\n")}
	code, stdout, stderr := runTaxon(t, "", "check --data $D --test $T --json", vars)
	for _, want := range []string{`"repeated"`, `"contradictory"`, `"in_both"`, `"test_labels_only"`,
		`"test_features_only"`, "d.svm:2"} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit %d, %s%s lacks %s", code, stdout, stderr, want)
		}
	}
	if code, stdout, _ = runTaxon(t, "", "check --data $T", vars); code != 0 || !strings.Contains(stdout,
		"classes of one row") {
		t.Errorf("exit %d, %s", code, stdout)
	}
}
