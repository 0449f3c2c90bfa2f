package deploy

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

var rewrite = flag.Bool("rewrite", false, "write prometheusrule.yaml anew")

const monitoring = root + "/deploy/kubernetes/monitoring"

// ruleHead is the text before the rules for the operator.
const ruleHead = `# rules.yaml for the Prometheus operator: go -C test/deploy test -run Rules -rewrite makes it.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: taxon
  labels: {app.kubernetes.io/name: taxon}
spec:
`

// figures returns the names of the metrics: those that docs/observability.md lists, which a test of
// internal/cluster/metrics keeps complete, and those that all processes have.
func figures(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{"process_resident_memory_bytes": true, "process_cpu_seconds_total": true}
	text, err := os.ReadFile(root + "/docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range regexp.MustCompile("(?m)^\\| `taxon_.*$").FindAllString(string(text), -1) {
		for _, name := range regexp.MustCompile("`(taxon_[a-z_]+)").FindAllStringSubmatch(line, -1) {
			all[name[1]] = true
		}
	}
	return all
}

// checkExpr parses an expression. Every metric in it must be one of taxon's.
func checkExpr(t *testing.T, known map[string]bool, where, expr string) {
	t.Helper()
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	parser.Inspect(tree, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			name := v.Name
			for _, end := range []string{"_bucket", "_count", "_sum"} {
				if base := strings.TrimSuffix(v.Name, end); known[base] {
					name = base
				}
			}
			if !known[name] {
				t.Errorf("%s: no process has %s", where, v.Name)
			}
		}
		return nil
	})
}

// TestRules checks that Prometheus' own code accepts the rules, as promtool does, and that the
// operator's rules are the same.
func TestRules(t *testing.T) {
	text, err := os.ReadFile(monitoring + "/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}),
		slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil || len(groups.Groups) != 1 {
		t.Fatal("no rules")
	}
	known := figures(t)
	for _, r := range groups.Groups[0].Rules {
		checkExpr(t, known, r.Alert, r.Expr)
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" ||
			!slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s lacks a severity, a summary or a description", r.Alert)
		}
	}
	_, body, _ := strings.Cut(string(text), "groups:\n")
	want := ruleHead + "  groups:\n"
	for line := range strings.Lines(body) {
		want += "  " + line
	}
	path := monitoring + "/prometheusrule.yaml"
	if *rewrite {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != want {
		t.Errorf("%s is not what rules.yaml says (%v): run this test with -rewrite", path, err)
	}
}

// TestAlertsFire checks that each alert is true for the metrics of its condition, and false for a
// healthy cluster.
func TestAlertsFire(t *testing.T) {
	text, err := os.ReadFile(monitoring + "/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}),
		slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	const well = `
		taxon_tasks{state="waiting"} 5x90
		taxon_slots 8x90
		taxon_workers_lost_total 0x90
		taxon_worker_tasks_total{result="done"} 0+100x90
		taxon_worker_tasks_total{result="failed"} 0x90
		taxon_store_shards 3x90
		taxon_store_free_bytes 1e12x90
		taxon_store_reserve_bytes 1e9x90
		taxon_store_corrupt_total 0x90
		taxon_store_put_seconds_bucket{le="0.1", instance="a"} 0+100x90
		taxon_store_put_seconds_bucket{le="+Inf", instance="a"} 0+100x90
		taxon_grpc_refused_total{code="Unauthenticated", instance="a"} 0+1x90
		taxon_worker_running_tasks 8x90
		taxon_worker_slots 8x90
		taxon_jobs{state="running"} 1x90
		taxon_jobs{state="waiting"} 0x90
		taxon_jobs{state="queued"} 0x90
		taxon_build_info{role="coordinator"} 1x90
		taxon_jobs_ended_total{state="failed"} 0x90
		taxon_jobs_short_of_copies 0x90
		taxon_job_progress_timestamp_seconds{job="a"} 0+60x90
		taxon_job_snapshot_timestamp_seconds{job="a"} 0+60x90
		taxon_certificate_expiry_timestamp_seconds{instance="a"} 1e12x90
		taxon_serve_seconds_bucket{code="200", model="m", le="0.01"} 0+100x90
		taxon_serve_seconds_bucket{code="200", model="m", le="+Inf"} 0+100x90
		taxon_serve_seconds_count{code="429", model="m"} 0x90
`
	// for each alert, a metric and its values in place of those above
	ill := map[string][2]string{
		"TaxonNobodyWorks":        {"taxon_slots", "0x90"},
		"TaxonWorkersKeepDying":   {"taxon_workers_lost_total", "0+1x90"},
		"TaxonTasksKeepFailing":   {`taxon_worker_tasks_total{result="failed"}`, "0+1x90"},
		"TaxonStoreAway":          {"taxon_store_shards", "3x80 2x10"},
		"TaxonStoreDiskFills":     {"taxon_store_free_bytes", "2e9x90"},
		"TaxonBadBytes":           {"taxon_store_corrupt_total", "0x80 1x10"},
		"TaxonSlowDisk":           {`taxon_store_put_seconds_bucket{le="0.1", instance="a"}`, "0+10x90"},
		"TaxonCallsRefused":       {`taxon_grpc_refused_total{code="Unauthenticated", instance="a"}`, "0+200x90"},
		"TaxonIdleSlots":          {"taxon_worker_running_tasks", "1x90"},
		"TaxonCoordinatorAway":    {`taxon_build_info{role="coordinator"}`, "1x80"},
		"TaxonJobsFail":           {`taxon_jobs_ended_total{state="failed"}`, "0x85 1x5"},
		"TaxonJobsWait":           {`taxon_jobs{state="waiting"}`, "1x90"},
		"TaxonJobsQueue":          {`taxon_jobs{state="queued"}`, "1x90"},
		"TaxonNoProgress":         {`taxon_job_progress_timestamp_seconds{job="a"}`, "60x90"},
		"TaxonTooFewCopies":       {"taxon_jobs_short_of_copies", "1x90"},
		"TaxonSnapshotOld":        {`taxon_job_snapshot_timestamp_seconds{job="a"}`, "60x90"},
		"TaxonCertificateExpires": {`taxon_certificate_expiry_timestamp_seconds{instance="a"}`, "86400x90"},
		"TaxonServeSlow":          {`taxon_serve_seconds_bucket{code="200", model="m", le="0.01"}`, "0+10x90"},
		"TaxonServeRefuses":       {`taxon_serve_seconds_count{code="429", model="m"}`, "0+60x90"},
	}
	fires := func(expr, figures string) bool {
		t.Helper()
		// a quantile beyond the last bucket is that bucket's bound, so another bucket is added
		// after it
		figures = strings.NewReplacer(`taxon_store_put_seconds_bucket{le="+Inf", instance="a"} 0+100x90`, `taxon_store_put_seconds_bucket{le="3", instance="a"} 0+100x90
		taxon_store_put_seconds_bucket{le="+Inf", instance="a"} 0+100x90`, `taxon_serve_seconds_bucket{code="200", model="m", le="+Inf"} 0+100x90`, `taxon_serve_seconds_bucket{code="200", model="m", le="3"} 0+100x90
		taxon_serve_seconds_bucket{code="200", model="m", le="+Inf"} 0+100x90`).Replace(figures)
		storage := promqltest.LoadedStorage(t, "load 1m\n\t\t"+strings.TrimSpace(figures)+"\n")
		defer storage.Close()
		engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
		q, err := engine.NewInstantQuery(context.Background(), storage, nil, expr, time.Unix(0, 0).Add(90*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		v, err := q.Exec(context.Background()).Vector()
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		return len(v) > 0
	}
	for _, r := range groups.Groups[0].Rules {
		change, ok := ill[r.Alert]
		if !ok {
			t.Errorf("%s: say here which figures it is about", r.Alert)
			continue
		}
		if fires(r.Expr, well) {
			t.Errorf("%s fires where all is well", r.Alert)
		}
		line := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(change[0]) + ` .*$`)
		if !line.MatchString(well) || !fires(r.Expr, line.ReplaceAllLiteralString(well, "\t\t"+change[0]+" "+change[1])) {
			t.Errorf("%s does not fire with %s %s", r.Alert, change[0], change[1])
		}
	}
}

// TestDashboard checks that Grafana's own types decode the dashboard strictly, and that Prometheus
// accepts each query.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(monitoring + "/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard.Dashboard
	// an empty list of errors becomes an error without text
	if err := d.UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
		t.Errorf("not a dashboard: %v", err)
	}
	var shown struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &shown); err != nil {
		t.Fatal(err)
	}
	known, queries := figures(t), 0
	used := map[[2]int]string{}
	for _, p := range shown.Panels {
		for _, q := range p.Targets {
			checkExpr(t, known, p.Title, strings.ReplaceAll(q.Expr, "$__rate_interval", "5m"))
			queries++
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := used[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies over %s, or beyond the page", p.Title, other)
				}
				used[[2]int{x, y}] = p.Title
			}
		}
	}
	if queries < 20 {
		t.Errorf("%d queries only", queries)
	}
}

// TestMonitors checks that the monitors select existing services, at an existing port, by a name in
// its certificate.
func TestMonitors(t *testing.T) {
	objects, err := build(filepath.Join(root, "deploy", "kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	watching, err := build(monitoring)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := runSecrets(filepath.Join(root, "deploy", "kubernetes"))
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, o := range watching {
		var tls *monitoringv1.SafeTLSConfig
		var selector map[string]string
		var port string
		switch m := o.value.(type) {
		case *monitoringv1.ServiceMonitor:
			tls, port, selector = &m.Spec.Endpoints[0].TLSConfig.SafeTLSConfig, m.Spec.Endpoints[0].Port,
				m.Spec.Selector.MatchLabels
		case *monitoringv1.PodMonitor:
			tls, port, selector = m.Spec.PodMetricsEndpoints[0].TLSConfig, *m.Spec.PodMetricsEndpoints[0].Port,
				m.Spec.Selector.MatchLabels
		default:
			continue
		}
		role := selector["app.kubernetes.io/component"]
		seen = append(seen, role)
		if !slices.Contains(secrets.secrets, "taxon/"+tls.CA.Secret.Name) {
			t.Errorf("%s: secrets.sh makes no %s", o, tls.CA.Secret.Name)
		}
		name := *tls.ServerName
		if _, rest, _ := strings.Cut(name, "."); !slices.Contains(secrets.hosts[role], name) &&
			!slices.Contains(secrets.hosts[role], "*."+rest) {
			t.Errorf("%s: %s is not in the certificate of a %s: %v", o, name, role, secrets.hosts[role])
		}
		if !slices.ContainsFunc(objects, func(w object) bool { return hasPort(w, selector, port) }) {
			t.Errorf("%s selects nothing with a port %s", o, port)
		}
	}
	slices.Sort(seen)
	if fmt.Sprint(seen) != "[coordinator store worker]" {
		t.Errorf("what is watched: %v", seen)
	}
}

// hasPort reports whether the labels select an object that has a port of the given name.
func hasPort(o object, labels map[string]string, name string) bool {
	switch v := o.value.(type) {
	case *corev1.Service:
		return selects(labels, v.Labels) && slices.ContainsFunc(v.Spec.Ports,
			func(p corev1.ServicePort) bool { return p.Name == name })
	case *appsv1.Deployment:
		return selects(labels, v.Spec.Template.Labels) && slices.ContainsFunc(v.Spec.Template.Spec.Containers[0].Ports,
			func(p corev1.ContainerPort) bool { return p.Name == name })
	}
	return false
}
