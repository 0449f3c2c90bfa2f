package yarn

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program writes a shell script that stands in for Hadoop's command; test/hadoop runs the
// real one.
func program(t *testing.T, script string) *Command {
	t.Helper()
	dir := t.TempDir()
	conf := filepath.Join(dir, "conf")
	for name, text := range map[string]string{
		"yarn":               "#!/bin/sh\n" + script,
		"conf/yarn-site.xml": "<configuration>\n<property><name>a</name><value>b</value></property>\n</configuration>\n",
		"conf/core-site.xml": "<configuration/>",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c, err := NewCommand(filepath.Join(dir, "yarn"), conf, &Client{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCommandConfiguration: the command runs on the configuration with one property more.
func TestCommandConfiguration(t *testing.T) {
	out := filepath.Join(t.TempDir(), "seen")
	c := program(t, `echo "$@" | sed "s#$2#CONF#" > `+out+`; cat $2/core-site.xml $2/yarn-site.xml >> `+out)
	if err := c.Flex(t.Context(), "gw", Worker, 4); err != nil {
		t.Fatal(err)
	}
	seen, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	got := string(seen)
	for _, want := range []string{"--config CONF app -flex gw -component worker 4\n", "<configuration/>",
		"<value>b</value>",
		"<name>" + adminProperty + "</name><value>" + adminClass + "</value></property>\n</configuration>"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

func TestCommandAnswers(t *testing.T) {
	s, err := program(t, `echo 'WARN a line'; echo '{"name":"gw","state":"STABLE"}'`).Status(t.Context(), "gw")
	if err != nil || s.State != "STABLE" {
		t.Errorf("%+v %v", s, err)
	}
	for _, c := range []struct {
		script string
		is     error
		says   string
	}{
		{`echo gw is not there`, ErrNoService, "gw is not there"},
		{`echo "2026 ERROR client: Service gw doesn't exist on hdfs" >&2; exit 255`, ErrNoService, "doesn't exist"},
		{`echo "org.apache.hadoop.yarn.exceptions.YarnException: Failed to submit: unknown queue: x" >&2; exit 1`, nil,
			"yarn: Failed to submit: unknown queue: x"},
		{`exit 3`, nil, "exit status 3"},
		{`echo '{"name":'`, nil, "what "},
	} {
		_, err := program(t, c.script).Status(t.Context(), "gw")
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.script, err, c.says)
		}
	}
	c := program(t, "sleep 60")
	c.limit = 50 * time.Millisecond
	if _, err := c.Status(t.Context(), "gw"); err == nil || errors.Is(err, ErrNoService) || !strings.Contains(err.Error(),
		"yarn app -status gave no answer in 50ms") {
		t.Errorf("a command that hangs: %v", err)
	}
	if _, err := NewCommand("no-such-yarn", "conf", nil); err == nil {
		t.Error("a command that is not there")
	}
}

// TestMetricsPorts: each instance of a cluster has a port of its own for its figures, as several may be on
// a host.
func TestMetricsPorts(t *testing.T) {
	r := &Run{Name: "gw", Local: t.TempDir(), Stores: 2, Metrics: 9464, Args: map[string][]string{Coordinator: {"--x"},
		Store: nil, Worker: nil}}
	env := func(name string) string { return map[string]string{"NM_HOST": "node-7"}[name] }
	seen := map[string]bool{}
	for instance, want := range map[string]string{"coordinator-0": "9464", "store-0": "9465", "store-1": "9466",
		"worker-0": "9467", "worker-9": "9476"} {
		role, _, _ := strings.Cut(instance, "-")
		args, _, err := r.Command(role, instance, env)
		if err != nil || !strings.HasSuffix(strings.Join(args, " "), "--metrics node-7:"+want) || seen[want] {
			t.Errorf("%s: %q, %v; want port %s", instance, args, err, want)
		}
		seen[want] = true
	}
	r.Metrics = 0
	if args, _, err := r.Command(Store, "store-0", env); err != nil || len(args) > 0 {
		t.Errorf("figures unasked: %q, %v", args, err)
	}
}
