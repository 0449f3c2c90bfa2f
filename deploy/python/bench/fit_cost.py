"""What `fit` costs beside `taxon train` on the same rows, ingested.

    python fit_cost.py TRAIN.svm[.xz] HIERARCHY [PAIRS]

Both train the same model (the same weights_sha256), one after the other, PAIRS times. Times are CPU seconds
of this process and the binary's together; what Python adds by itself is said, too, and does not vary.
"""

from __future__ import annotations

import lzma
import os
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from taxon import HierarchicalClassifier
from taxon._binary import run


def read(path: str) -> tuple[sp.csr_matrix, list[list[str]]]:
    """Rows and label sets of a file in the libsvm format."""
    indices, data, ends, labels = [], [], [0], []
    with (lzma.open if path.endswith(".xz") else open)(path, "rt") as f:
        for line in f:
            head, _, rest = line.rstrip("\n").partition(" ")
            labels.append(head.split(","))
            for pair in rest.split():
                j, _, v = pair.partition(":")
                indices.append(int(j) - 1)
                data.append(float(v))
            ends.append(len(indices))
    return sp.csr_matrix((data, indices, ends)), labels


def edges(path: str) -> list[tuple[str, str]]:
    with open(path) as f:
        return [(a, b) for a, b in (line.split() for line in f)]


def cpu(call) -> np.ndarray:
    """CPU seconds of this process, and of the binary."""
    before = os.times()
    call()
    after = os.times()
    return np.array([after[0] + after[1] - before[0] - before[1], after[2] + after[3] - before[2] - before[3]])


def main() -> None:
    train, hierarchy, pairs = sys.argv[1], sys.argv[2], int((sys.argv[3:] or ["3"])[0])
    X, y = read(train)
    structure = edges(hierarchy)
    print(f"{X.shape[0]} rows, {X.shape[1]} columns, {X.nnz} nonzeros")
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(["ingest", "--data", train, "--out", str(folder / "data")])
        for k in range(pairs):
            clf = HierarchicalClassifier(hierarchy=structure)
            out: list[dict] = []
            here = sum(cpu(lambda: out.append(run(["train", "--data", str(folder / "data"), "--hierarchy", hierarchy, "--method", "rr-svm", "--out", str(folder / f"m{k}")]))))
            own, binary = cpu(lambda: clf.fit(X, y))
            same = clf.report_["weights_sha256"] == out[0]["weights_sha256"]
            ratios.append((own + binary) / here)
            print(f"train {here:.2f} s, fit {own + binary:.2f} s, of that Python {own:.2f} s: x{ratios[-1]:.3f}, {'the same weights' if same else 'OTHER WEIGHTS'}", flush=True)
    print(f"median x{statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
