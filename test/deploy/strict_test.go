package deploy

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// strictRoot runs a cluster in a root that is read-only except for the folders of StateDirectory=,
// as with the units' ProtectSystem=strict.
const strictRoot = `
set -e
cd "$1"
for d in coordinator snapshots store worker tmp; do mkdir $d; done
for d in coordinator snapshots store worker tmp; do mount --bind $d $d; done
mount -o remount,bind,ro /
mount -o remount,bind,ro /tmp 2>/dev/null || true
if touch "$1/x" 2>/dev/null; then echo "the root can be written"; exit 3; fi
export TMPDIR="$1/tmp"
./taxon coordinator --dir coordinator --snapshots snapshots/jobs --snapshot-every 1 --snapshot-pause 1ms --listen 127.0.0.1:0 >tmp/c.out 2>tmp/c.log & C=$!
until grep -q "ready on" tmp/c.out; do sleep 0.1; kill -0 $C; done
A=$(sed -n 's/.*ready on \([^,]*\),.*/\1/p' tmp/c.out)
./taxon store --dir store --coordinator $A >tmp/s.out 2>tmp/s.log & S=$!
./taxon worker --dir worker --slots 1 --coordinator $A >tmp/w.out 2>tmp/w.log & W=$!
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf 'a 1:1 2:0.5\nb 3:1 4:0.5\n'; done >tmp/d.svm
until grep -q "ready on" tmp/s.out; do sleep 0.1; kill -0 $S; done
./taxon submit --coordinator $A --data tmp/d.svm --id j --wait --quiet
ls snapshots/jobs
kill $W $S $C
wait
cat tmp/c.log
`

// TestSnapshotsInAStrictRoot checks that the coordinator's unit has a writable folder for
// snapshots, and uses it.
func TestSnapshotsInAStrictRoot(t *testing.T) {
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "taxon"), "./cmd/taxon")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("unshare", "-rm", "mount", "-o", "remount,bind,ro", "/").CombinedOutput(); err != nil {
		t.Skipf("a root can't be made read-only here: %v: %s", err, out)
	}
	out, err := exec.Command("unshare", "-rm", "bash", "-c", strictRoot, "strict", dir).CombinedOutput()
	text := string(out)
	if err != nil || !strings.Contains(text, "\nj\n") || strings.Contains(text, "read-only") || strings.Contains(text,
		"checkpoint could not") {
		t.Errorf("%v: %s", err, text)
	}
}
