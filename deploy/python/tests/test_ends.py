"""However Python ends, what it started ends too, and nothing is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent

TRAINING = """
import threading, numpy as np, taxon
from taxon import TaxonClassifier
rng = np.random.default_rng(0)
hard = TaxonClassifier(method="mlr", gap=1e-12, C=1e6)
X, y = rng.normal(size=(4000, 300)), rng.integers(0, 60, 4000)
print("go", flush=True)
"""


@pytest.fixture
def started():
    """Starts a Python that runs a program, with its temporary files in the folder; none outlives the test."""
    all = []
    yield lambda program, folder, first="go": _start(all, program, folder, first)
    for p in all:
        p.kill()
        p.communicate()


def _start(all, program, folder, first):
    env = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(HERE / "src")}

    def default():  # a job in the background ignores SIGINT, one behind nohup SIGHUP
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    p = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True,
                         start_new_session=True, preexec_fn=default)
    all.append(p)
    assert p.stdout.readline() == f"{first}\n"
    return p


def processes(folder):
    """The processes that name the folder in their arguments."""
    lines = subprocess.run(["ps", "-ww", "-eo", "pid=,stat=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if str(folder) in line and " Z" not in line.split(None, 2)[1]]


def eventually(holds):
    for _ in range(1200):
        if holds():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("where", ["", "t = threading.Thread(target=hard.fit, args=(X, y)); t.start(); t.join()"], ids=["main", "thread"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_training_ends_with_python(started, tmp_path, how, where):
    if where and how == signal.SIGINT:
        pytest.skip("Python does not interrupt threads")
    p = started(TRAINING + (where or "hard.fit(X, y)"), tmp_path)
    assert eventually(lambda: list(tmp_path.glob("taxon-*/model.train"))) and processes(tmp_path)
    p.send_signal(how)
    _, err = p.communicate(timeout=60)
    assert eventually(lambda: processes(tmp_path) == [])
    if how == signal.SIGINT:
        assert p.returncode != 0 and "KeyboardInterrupt" in err
    else:
        assert p.returncode == -how and err == ""
    if not where and how in (signal.SIGINT, signal.SIGTERM):
        assert list(tmp_path.glob("taxon-*")) == []


def test_own_handlers_stay(started, tmp_path):
    """SIGTERM means what the program says, during a training and behind it."""
    own = """
import signal, sys
def stop(*_):
    raise SystemExit(7)
signal.signal(signal.SIGTERM, stop)
hard.fit(X, y)
"""
    p = started(TRAINING + own, tmp_path)
    assert eventually(lambda: list(tmp_path.glob("taxon-*/model.train")))
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60)
    assert p.returncode == 7 and eventually(lambda: processes(tmp_path) == []) and list(tmp_path.glob("taxon-*")) == []
    after = "import signal; hard.set_params(max_sweeps=1).fit(X, y); print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)"
    out, _ = started(TRAINING + after, tmp_path).communicate(timeout=60)
    assert out == "True\n"


ENDS = {
    "end of the program": ("", None),
    "an exception": ("raise RuntimeError('enough')", None),
    "close": ("c.close(); c.close()", None),
    "nothing refers to it": ("import gc; del c; gc.collect(); sys.stdin.read()", None),
    "SIGTERM": ("sys.stdin.read()", signal.SIGTERM),
    "SIGINT": ("sys.stdin.read()", signal.SIGINT),
    "SIGKILL": ("sys.stdin.read()", signal.SIGKILL),
}


@pytest.mark.parametrize("end", ENDS)
def test_local_cluster_ends_with_python(started, tmp_path, end):
    pytest.importorskip("grpc_reflection")
    rest, how = ENDS[end]
    program = f"import sys; from taxon import Cluster; c = Cluster.local(workers=1); print(len(c.workers()), flush=True); {rest or 'pass'}"
    p = started(program, tmp_path, "1")
    assert processes(tmp_path)
    if how is not None:
        p.send_signal(how)
    elif end == "nothing refers to it":
        assert eventually(lambda: processes(tmp_path) == []) and p.poll() is None
    p.communicate(timeout=60)
    assert eventually(lambda: processes(tmp_path) == [] and list(tmp_path.iterdir()) == []), processes(tmp_path)


def test_local_cluster_of_others(tmp_path):
    """Who finds a cluster in the folder leaves it alone; and so does a child of the one who made it."""
    pytest.importorskip("grpc_reflection")
    program = f"""
import os, sys
from taxon import Cluster
c = Cluster.local(workers=1, dir={str(tmp_path / 'c')!r})
try:
    Cluster.local(dir={str(tmp_path / 'c')!r})
except ValueError as e:
    assert "runs in" in str(e)
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
print(len(c.workers()), flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(HERE / "src")}, capture_output=True, text=True, timeout=120)
    assert done.stdout == "1\n", done.stderr
    assert eventually(lambda: processes(tmp_path) == []) and (tmp_path / "c" / "coordinator").is_dir()  # a named folder stays
