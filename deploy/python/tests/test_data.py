"""A folder written here has the bytes that `taxon ingest` gives."""

import filecmp
import json

import numpy as np
import pytest
import scipy.sparse as sp

from taxon._binary import run
from taxon._data import LEAST_WEIGHT, MOST_WEIGHT, edges_of, quote, structure_of, write_dataset


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


MISSING = [None, float("nan"), np.nan, np.float32("nan"), np.datetime64("NaT"), ""]


def test_structures_with_missing_parents():
    """A missing parent is none, and a whole number is one node whatever its type, as it is in y."""
    pd = pytest.importorskip("pandas")
    want, names = [("1", "3"), ("1", "4"), ("2", "5")], {"1", "2", "3", "4", "5"}
    for none in [*MISSING, pd.NA, pd.NaT]:
        rows = [(none, 1), (none, 2), (1, 3), (1.0, 4), (np.float32(2), np.int8(5))]
        for given in (rows, tuple(rows), [list(row) for row in rows], iter(rows), pd.DataFrame(rows, dtype=object), pd.DataFrame(rows, dtype=object).to_numpy()):
            assert structure_of(given, "hierarchy") == (want, names), (none, given)
        assert structure_of({none: [1, 2], 1: [3, np.int64(4)], 2.0: 5.0}, "hierarchy") == (want, names)
    table = pd.DataFrame({"parent": [np.nan, np.nan, 1, 1, 2], "id": [1, 2, 3, 4, 5]})
    frames = [table, table.astype("Int64"), table.dropna(), table.to_numpy(), table.dropna().to_numpy(), table.convert_dtypes(), table.astype({"parent": "Int64", "id": "category"})]
    try:
        import polars as pl
        import pyarrow as pa

        frames += [pl.DataFrame(table.astype("Int64").to_dict("list"), schema={"parent": pl.Int64, "id": pl.Int32}), pa.Table.from_pandas(table, preserve_index=False)]
        frames += [table.astype("int64[pyarrow]" if table.parent.notna().all() else {"parent": "double[pyarrow]", "id": "int64[pyarrow]"})]
    except ImportError:
        pass
    for given in frames:
        edges, seen = structure_of(given, "hierarchy")
        assert edges == want and seen <= names, given
    text = pd.DataFrame({"parent": [None, "animal"], "name": ["animal", "cat"]})
    for given in (text, text.astype("string"), text.astype("category"), text.fillna(np.nan), text.where(text.notna(), pd.NaT)):
        assert edges_of(given) == [("animal", "cat")]
    assert edges_of([(2**60 + 1, "x")]) == [(str(2**60 + 1), "x")]
    nx = pytest.importorskip("networkx")
    g = nx.from_pandas_edgelist(table, "parent", "id", create_using=nx.DiGraph)
    g.add_node("alone")
    assert structure_of(g, "hierarchy") == (want, names | {"alone"})
    for given, match in (([(1, None)], "missing child"), ([(1, 2, 3)], "no pair"), (pd.DataFrame({"a": [1], "b": [2], "c": [3]}), "no pair"), ({1: [None]}, "missing child"), ([5], "no pair")):
        with pytest.raises(ValueError, match=match):
            edges_of(given)


def test_weights_have_the_bounds_of_the_binary(tmp_path):
    (tmp_path / "x.svm").write_text("a 1:1\nb 2:1\n")
    for weight, fine in ((LEAST_WEIGHT, True), (LEAST_WEIGHT / 2, False), (MOST_WEIGHT, True), (MOST_WEIGHT * 2, False), (0.0, True)):
        (tmp_path / "w").write_text(f"1\n{weight!r}\n")
        flags = ["ingest", "--data", str(tmp_path / "x.svm"), "--instance-weights", str(tmp_path / "w"), "--out", str(tmp_path / f"out-{weight}")]
        if fine:
            run(flags)
        else:
            with pytest.raises(ValueError, match="weight"):
                run(flags)


def test_names():
    assert quote("plain-name") == "plain-name"
    assert quote("two words") == '"two words"'
    assert quote("#b") == '"#b"'
    assert quote('say "x"') == '"say \\"x\\""'
