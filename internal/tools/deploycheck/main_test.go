package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const deploy = "../../../deploy"

// copyOf puts the deploy folder into a temporary one.
func copyOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(deploy)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDeploy(t *testing.T) {
	problems, checked := check(deploy)
	for _, p := range problems {
		t.Error(p)
	}
	if checked < 15 {
		t.Errorf("looked at %d things only", checked)
	}
}

// TestMistakesAreFound breaks one thing at a time.
func TestMistakesAreFound(t *testing.T) {
	for _, c := range []struct{ file, old, new, want string }{
		{"kubernetes/store.yaml", "replicas: 3", "replicsa: 3", `unknown field "replicsa"`},
		{"kubernetes/store.yaml", "replicas: 3", "replicas: three", "cannot unmarshal string"},
		{"kubernetes/store.yaml", "serviceName: taxon-store", "serviceName: taxon-stores", "no such service"},
		{"kubernetes/store.yaml", "--listen=0.0.0.0:7071", "--listen=0.0.0.0:7070", "is not its port"},
		{"kubernetes/store.yaml", "name: POD_NAME", "name: POD", "no variable POD_NAME"},
		{"kubernetes/store.yaml", "defaultMode: 0440", "defaultMode: 0444", "defaultMode"},
		{"kubernetes/coordinator.yaml", "targetPort: grpc", "targetPort: rpc", "have no port rpc"},
		{"kubernetes/coordinator.yaml", "scheme: HTTPS", "scheme: HTTP", "by HTTPS"},
		{"kubernetes/coordinator.yaml", "--tls-key=/etc/taxon", "--tls-key=/etc", "in no mounted folder"},
		{"kubernetes/worker.yaml", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "writable root"},
		{"kubernetes/worker.yaml", "runAsNonRoot: true", "runAsNonRoot: false", "without root"},
		{"kubernetes/worker.yaml", "  strategy:", "  replicas: 2\n  strategy:", "undo the scaling"},
		{"kubernetes/autoscale.yaml", "name: taxon-worker}", "name: taxon-workers}", "which is not there"},
		{"kubernetes/network.yaml", "port: metrics", "port: metric", "do not have"},
		{"kubernetes/disruption.yaml", "component: store", "component: stores", "selects 0 workloads"},
		{"kubernetes/kustomization.yaml", "  - network.yaml\n", "", "not in kustomization.yaml"},
		{"kubernetes/kustomization.yaml", "namespace: taxon\n", "", "has no namespace"},
		{"systemd/taxon-store.service", "NoNewPrivileges=yes", "NoNewPrivileges=no", "no line NoNewPrivileges"},
		{"systemd/taxon-worker.service", "[Install]", "Install", "neither a section"},
	} {
		t.Run(c.new, func(t *testing.T) {
			dir := copyOf(t)
			path := filepath.Join(dir, c.file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), c.old) {
				t.Fatalf("%s has no %q any more", c.file, c.old)
			}
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), c.old, c.new)), 0o644); err != nil {
				t.Fatal(err)
			}
			problems, _ := check(dir)
			if !strings.Contains(strings.Join(problems, "\n"), c.want) {
				t.Errorf("%q for %q: found %q, want %q", c.new, c.old, problems, c.want)
			}
		})
	}
}
