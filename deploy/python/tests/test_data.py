"""A folder written here has the bytes that `taxon ingest` gives."""

import filecmp
import json

import numpy as np
import pytest
import scipy.sparse as sp

from taxon._binary import run
from taxon._data import edges_of, quote, write_dataset


@pytest.mark.parametrize("weighted", [False, True])
def test_same_bytes_as_ingest(tmp_path, weighted):
    rng = np.random.default_rng(1)
    X = sp.random(400, 70, 0.05, random_state=2, format="csr")
    X.data = X.data.astype(np.float32).astype(float)
    X.data[::17] = 0  # explicit zeros
    size = rng.integers(0, 4, 400)
    begin = np.concatenate(([0], np.cumsum(size)))
    index = np.concatenate([rng.choice(9, n, replace=False) for n in size])
    names = [f"label{k}" for k in range(9)]
    weight = rng.integers(0, 4, 400) * 0.37 if weighted else None
    with open(tmp_path / "x.svm", "w") as f:
        for i in range(400):
            row = X[i]
            labels = ",".join(names[k] for k in index[begin[i] : begin[i + 1]])
            f.write(labels + " " + " ".join(f"{j + 1}:{np.float32(v)}" for j, v in zip(row.indices, row.data)) + "\n")
    flags = []
    if weighted:
        (tmp_path / "w.txt").write_text("".join(f"{w!r}\n" for w in weight.tolist()))
        flags = ["--instance-weights", str(tmp_path / "w.txt")]
    with pytest.warns(UserWarning):
        run(["ingest", "--data", str(tmp_path / "x.svm"), "--out", str(tmp_path / "ingested"), *flags])
    write_dataset(tmp_path / "written", X, names, begin, index, weight)

    theirs = json.loads((tmp_path / "ingested" / "manifest.json").read_text())
    ours = json.loads((tmp_path / "written" / "manifest.json").read_text())
    names = [f["name"] for f in theirs["files"]]
    same, other, missing = filecmp.cmpfiles(tmp_path / "ingested", tmp_path / "written", names, shallow=False)
    assert (sorted(same), other, missing) == (sorted(names), [], [])
    assert ours["fingerprint"] == theirs["fingerprint"]
    assert ours["stats"] == theirs["stats"]


def test_structures():
    nx = pytest.importorskip("networkx")
    edges = [("a", "b"), ("a", "c"), ("c", "d")]
    assert edges_of(edges) == edges
    assert edges_of({"a": ["b", "c"], "c": "d"}) == edges
    assert sorted(edges_of({"a": {"b": None, "c": {"d": {}}}})) == edges
    assert sorted(edges_of(nx.DiGraph(edges))) == edges
    with pytest.raises(ValueError, match="no pair"):
        edges_of([("a", "b", "c")])


def test_names():
    assert quote("plain-name") == "plain-name"
    assert quote("two words") == '"two words"'
    assert quote("#b") == '"#b"'
    assert quote('say "x"') == '"say \\"x\\""'
