package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// copyOf copies the checked files of the repository to a temporary folder.
func copyOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{"deploy", "docs", "coordinator"} {
		if err := os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDeploy(t *testing.T) {
	problems, checked := check(root)
	for _, p := range problems {
		t.Error(p)
	}
	if checked < 15 {
		t.Errorf("looked at %d things only", checked)
	}
}

// TestMistakesAreFound makes one mistake at a time.
func TestMistakesAreFound(t *testing.T) {
	for _, c := range []struct{ file, old, new, want string }{
		{"deploy/kubernetes/store.yaml", "replicas: 3", "replicsa: 3", `unknown field "replicsa"`},
		{"deploy/kubernetes/store.yaml", "replicas: 3", "replicas: three", "cannot unmarshal string"},
		{"deploy/kubernetes/store.yaml", "serviceName: taxon-store", "serviceName: taxon-stores", "no such service"},
		{"deploy/kubernetes/store.yaml", "--listen=0.0.0.0:7071", "--listen=0.0.0.0:7070", "is not its port"},
		{"deploy/kubernetes/store.yaml", "name: POD_NAME", "name: POD", "no variable POD_NAME"},
		{"deploy/kubernetes/store.yaml", "defaultMode: 0440", "defaultMode: 0444", "defaultMode"},
		{"deploy/kubernetes/coordinator.yaml", "targetPort: grpc", "targetPort: rpc", "have no port rpc"},
		{"deploy/kubernetes/coordinator.yaml", "scheme: HTTPS", "scheme: HTTP", "by HTTPS"},
		{"deploy/kubernetes/coordinator.yaml", "--tls-key=/etc/taxon", "--tls-key=/etc", "in no mounted folder"},
		{"deploy/kubernetes/worker.yaml", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "writable root"},
		{"deploy/kubernetes/worker.yaml", "runAsNonRoot: true", "runAsNonRoot: false", "without root"},
		{"deploy/kubernetes/worker.yaml", "  strategy:", "  replicas: 2\n  strategy:", "undo the scaling"},
		{"deploy/kubernetes/autoscale.yaml", "name: taxon-worker}", "name: taxon-workers}", "which is not there"},
		{"deploy/kubernetes/network.yaml", "port: metrics", "port: metric", "do not have"},
		{"deploy/kubernetes/disruption.yaml", "component: store", "component: stores", "selects 0 workloads"},
		{"deploy/kubernetes/kustomization.yaml", "  - network.yaml\n", "", "not in kustomization.yaml"},
		{"deploy/kubernetes/kustomization.yaml", "namespace: taxon\n", "", "has no namespace"},
		{"deploy/systemd/taxon-store.service", "NoNewPrivileges=yes", "NoNewPrivileges=no", "no line NoNewPrivileges"},
		{"deploy/systemd/taxon-worker.service", "[Install]", "Install", "neither a section"},
		{"deploy/systemd/taxon-store.service", "StartLimitIntervalSec=0", "StartLimitBurst=5", "it would stay down"},
		{"deploy/systemd/taxon-worker.service", "User=taxon", "User=worker", "no line User=taxon"},
		{"deploy/systemd/taxon-worker.service", "StateDirectory=taxon-store", "StateDirectory=worker",
			"no line StateDirectory=taxon-store"},
		{"deploy/systemd/taxon-worker.service", "${CREDENTIALS_DIRECTORY}/ca.crt", "%d/ca.crt", "systemd 250"},
		{"deploy/kubernetes/client/submit.yaml", "runAsNonRoot: true", "runAsNonRoot: false", "taxon-submit: restricted"},
		{"deploy/kubernetes/client/submit.yaml", "drop: [ALL]", "drop: [NET_RAW]", "taxon-submit: restricted"},
		{"deploy/kubernetes/client/submit.yaml", `taxon.client: "true"`, `taxon.client: "no"`,
			"keep taxon-submit from port 7070"},
		{"deploy/kubernetes/client/submit.yaml", "secretName: taxon-client", "secretName: taxon-user",
			"makes no secret taxon-user"},
		{"deploy/kubernetes/client/submit.yaml", "taxon-coordinator.taxon.svc:", "coordinator.taxon.svc:",
			"certificate of the coordinator for"},
		{"deploy/kubernetes/secrets.sh", `secret "$namespace" client --from-literal=profile="$(profile tls)"`, "",
			"makes no secret taxon-client"},
		{"deploy/kubernetes/secrets.sh", "*.taxon-store.$namespace.svc", "*.taxon-store", "certificate of the store for"},
		{"deploy/kubernetes/store.yaml", "taxon-store.$(POD_NAMESPACE).svc:", "taxon-store:",
			"can't be resolved in other namespaces"},
		{"deploy/kubernetes/network.yaml", "- ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]",
			"- to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}}]", "may not ask DNS"},
		{"deploy/kubernetes/network.yaml", `        - podSelector: {matchLabels: {taxon.client: "true"}}` +
			"\n        - namespaceSelector", "        - namespaceSelector", "keep taxon-submit from port 7071"},
		{"deploy/kubernetes/coordinator.yaml", "compacted at 4 MiB", "compacted at 16 MiB", "compacted at 4 MiB, not at 16"},
		{"docs/deploy.md", "## Slurm", "    kubectl -n taxon run submit --rm -it --image=... -- jobs\n\n## Slurm",
			"the restricted policy refuses"},
		{"docs/deploy.md", "## Slurm", "```yaml\napiVersion: v1\nkind: Pod\nmetadata: {name: shown}\nspec: {containers: " +
			"[{name: c, image: taxon}]}\n```\n\n## Slurm", "Pod shown: restricted"},
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
