"""Top-down classification side by side: taxon's td, HiClass's local classifier per node, napkinXC's hierarchical soft-max.

    pip install hiclass scikit-learn napkinxc
    python test/bench/versus/beside_td.py TAXON TRAIN TEST TREE [RUNS]

TRAIN and TEST are svm files with one label a row, packed or not. HiClass has LinearSVC(C=1, loss="hinge") at each node against its
siblings: the problem of td, but for its tolerance. Its classifiers must give probabilities; here these are a sigmoid of the margins, which has
their order. napkinXC has the same tree, logistic losses of C = 1, and multiplies the probabilities along a path. Rows
are used as they are, with a bias feature of 1. Runs take turns. CPU seconds are of the call that trains, on one thread; a row's score is whether its leaf is right.
"""

import json
import lzma
import math
import os
import subprocess
import sys
import tempfile
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import hiclass
import numpy as np
import scipy.sparse as sp
from napkinxc.models import HSM
from sklearn.svm import LinearSVC


class Machine(LinearSVC):
    def predict_proba(self, x):
        p = 1 / (1 + np.exp(-np.clip(self.decision_function(x), -500, 500)))
        return np.column_stack([1 - p, p])


def read(path):
    rows, labels = [], []
    with lzma.open(path, "rt") if path.endswith(".xz") else open(path) as lines:
        for line in lines:
            label, *entries = line.split()
            labels.append(label)
            rows.append([(int(k) - 1, float(v)) for k, v in (e.split(":") for e in entries)])
    at = np.cumsum([0] + [len(r) for r in rows])
    flat = [e for r in rows for e in r]
    return sp.csr_matrix((np.array([v for _, v in flat]), np.array([k for k, _ in flat], np.int32), at)), labels


def main():
    taxon, train, test, tree = sys.argv[1:5]
    runs = int(sys.argv[5]) if sys.argv[5:] else 3
    x, y = read(train)
    tx, ty = read(test)
    tx = sp.csr_matrix((tx.data, tx.indices, tx.indptr), shape=(tx.shape[0], max(x.shape[1], tx.shape[1])))[:, : x.shape[1]]
    parent = {}
    for line in open(tree):
        above, below = line.split()
        parent[below] = above

    def path(leaf):
        out = [leaf]
        while out[-1] in parent:
            out.append(parent[out[-1]])
        return out[-2::-1]  # without the root

    depth = max(len(path(l)) for l in y)
    paths = np.array([path(l) + [""] * (depth - len(path(l))) for l in y], dtype=object)
    leaves = sorted(set(y))
    index = {l: i for i, l in enumerate(leaves)}

    def cpu():
        t = os.times()
        return t.user + t.system

    def ours(folder):
        out = subprocess.run([taxon, "train", "--method", "td", "--data", train, "--hierarchy", tree, "--out", folder + "/taxon", "--test", test, "--json", "--quiet", "--threads", "1"],
                             capture_output=True, check=True, text=True)
        r = json.loads(out.stdout)
        said = subprocess.run([taxon, "predict", "--model", folder + "/taxon", "--data", test, "--quiet"], capture_output=True, check=True, text=True).stdout.split("\n")[:-1]
        return r["cpu_seconds"], said

    def per_node(_):
        m = hiclass.LocalClassifierPerNode(local_classifier=Machine(C=1.0, loss="hinge", intercept_scaling=1.0, max_iter=100000), n_jobs=1)
        began = cpu()
        m.fit(x, paths)
        took = cpu() - began
        return took, [next((v for v in reversed(list(row)) if v), "") for row in m.predict(tx)]

    def soft_max(folder):
        numbers = {}
        for l in leaves:
            for n in path(l):
                numbers.setdefault(n, len(numbers) + 1)
        with open(folder + "/tree", "w") as f:
            f.write(f"{len(leaves)} {len(numbers) + 1}\n-1 0\n")
            for n, k in numbers.items():
                p = parent.get(n)
                f.write(f"{numbers.get(p, 0)} {k}" + (f" {index[n]}" if n in index else "") + "\n")
        m = HSM(folder + "/napkin", tree_structure=folder + "/tree", norm=False, bias=1.0, liblinear_c=1, weights_threshold=0, threads=1)
        began = cpu()
        m.fit(sp.csr_matrix(x, dtype=np.float32), [[index[l]] for l in y])
        took = cpu() - began
        return took, [leaves[row[0]] if row else "" for row in m.predict(sp.csr_matrix(tx, dtype=np.float32), top_k=1)]

    print(f"{x.shape[0]} rows, {len(ty)} to test, {len(leaves)} leaves", flush=True)
    sides = {"taxon td": ours, "HiClass, per node": per_node, "napkinXC HSM": soft_max}
    times, right = {n: [] for n in sides}, {}
    for _ in range(runs):
        for name, side in sides.items():
            with tempfile.TemporaryDirectory() as folder:
                took, said = side(folder)
            times[name].append(took)
            right[name] = np.array([a == b for a, b in zip(said, ty)])
    base = right["taxon td"]
    for name in sides:
        share = right[name].mean()
        error = math.sqrt(share * (1 - share) / len(ty))
        only, other = int((right[name] & ~base).sum()), int((base & ~right[name]).sum())
        ratios = sorted(t / o for t, o in zip(times[name], times["taxon td"]))
        print(f"{name}: {100 * share:.2f} ± {100 * error:.2f} % of the leaves right; right alone {only}, td alone {other}; "
              f"CPU s {' '.join(f'{t:.2f}' for t in times[name])}, over td's {ratios[len(ratios) // 2]:.1f}", flush=True)


if __name__ == "__main__":
    began = time.time()
    main()
