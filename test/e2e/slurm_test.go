package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// slurmFakes replace Slurm's programs on one node, which is this machine. srun starts its
// arguments, records them in calls and the process in pids. The first query of the job's state
// kills its worker, and fails.
var slurmFakes = map[string]string{
	"scontrol": "echo localhost\n",
	"scancel":  "kill -TERM $(cat $FAKES/pids) 2>/dev/null\n",
	"srun": `out=/dev/stdout
while [[ $1 == --* ]]; do
	[[ $1 == --output=* ]] && out=${1#--output=}
	shift
done
echo "$*" >>$FAKES/calls
[[ $1 == taxon ]] && echo $$ >>$FAKES/pids
[[ $2 == worker ]] && echo $$ >$FAKES/worker
exec "$@" >>"$out" 2>&1
`,
	"taxon": `if [[ $1 == status && ! -e $FAKES/asked ]]; then
	touch $FAKES/asked
	kill -KILL $(<$FAKES/worker)
	exit 1
fi
exec $TAXON "$@"
`,
}

// twoPorts returns the first of two consecutive free ports.
func twoPorts(t *testing.T) int {
	t.Helper()
	for range 100 {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := first.Addr().(*net.TCPAddr).Port
		second, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
		if err == nil {
			_ = second.Close()
		}
		_ = first.Close()
		if err == nil {
			return port
		}
	}
	t.Fatal("no two ports in a row are free")
	return 0
}

// TestSlurmScript checks that the script trains on its input to the bytes of train, with the memory
// of its allocation and the journal on the node's own disk, and that neither a dying worker nor a
// failed query ends it. It leaves the complete model, and no process.
func TestSlurmScript(t *testing.T) {
	dir := t.TempDir()
	fakes, run, local := filepath.Join(dir, "fakes"), filepath.Join(dir, "run"), filepath.Join(dir, "local")
	if err := os.Mkdir(fakes, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range slurmFakes {
		if err := os.WriteFile(filepath.Join(fakes, name), []byte("#!/bin/bash\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script := exec.Command("bash", filepath.Join("..", "..", "deploy", "slurm", "taxon.sbatch"), "--data", data,
		"--hierarchy", tree, "--gap", "1e-4")
	script.Env = append(os.Environ(), "PATH="+fakes+":"+os.Getenv("PATH"), "FAKES="+fakes, "TAXON="+
		filepath.Join(bin, "taxon"),
		"RUN="+run, "LOCAL="+local, fmt.Sprintf("PORT=%d", twoPorts(t)), "ASK=0.1", "USER=u",
		"SLURM_JOB_ID=7", "SLURM_SUBMIT_DIR="+dir, "SLURM_JOB_NUM_NODES=1", "SLURM_JOB_NODELIST=localhost",
		"SLURM_CPUS_PER_TASK=1", "SLURM_MEM_PER_NODE=3072")
	// Slurm enforces a time limit by a signal, upon which the script ends in an orderly way
	late := time.AfterFunc(deadline, func() { _ = script.Process.Signal(os.Interrupt) })
	out, err := script.CombinedOutput()
	late.Stop()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := start(t, "train", "--data", data, "--hierarchy", tree, "--gap", "1e-4", "--out", filepath.Join(dir, "trained"))
	sum := regexp.MustCompile(`[0-9a-f]{64}`).FindString(p.wait().stdout)
	if sum == "" || !strings.Contains(string(out), sum) {
		t.Errorf("train has weights %q: %s", sum, out)
	}
	if r := start(t, "info", filepath.Join(run, "model")).wait(); r.code != 0 || !strings.Contains(r.stdout, "classes") {
		t.Errorf("the model is not whole: %+v", r)
	}
	text, err := os.ReadFile(filepath.Join(fakes, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	calls := string(text)
	// of 3072 MiB the coordinator takes an eighth and the shard a quarter; the worker gets 7/8 of
	// the rest
	for _, want := range []string{"taxon coordinator --dir " + local + "/run-7-0/", "taxon store --dir " + local +
		"/run-7-0/", "--memory 1680MiB"} {
		if !strings.Contains(calls, want) {
			t.Errorf("nobody is started with %q:\n%s", want, calls)
		}
	}
	if n := strings.Count(calls, "taxon worker "); n != 2 {
		t.Errorf("%d workers are started, not one in the place of one:\n%s", n, calls)
	}
	if left, err := filepath.Glob(filepath.Join(local, "run-*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left on the node: %v", left, err)
	}
}
