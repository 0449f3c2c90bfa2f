"""What y may be: matrices of 0 and 1 of any type, lists in any column, levels with missing cells."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from taxon import HierarchicalClassifier, TaxonClassifier, TaxonTextClassifier
from taxon._targets import Targets

pd = pytest.importorskip("pandas")
pytestmark = [pytest.mark.filterwarnings("ignore:A column-vector"), pytest.mark.filterwarnings("ignore:[0-9]+ instances? ha(s|ve) no label")]


@pytest.fixture
def flags():
    """Rows, and which of three labels each has."""
    X = np.random.default_rng(0).normal(size=(60, 4))
    return X, (X[:, :3] > 0).astype(int)


DENSE = {
    "int": lambda Y: Y,
    "uint8": lambda Y: Y.astype(np.uint8),
    "float32": lambda Y: Y.astype(np.float32),
    "float64": lambda Y: Y.astype(float),
    "bool": lambda Y: Y.astype(bool),
    "object": lambda Y: Y.astype(object),
    "object of float": lambda Y: Y.astype(float).astype(object),
    "object of bool": lambda Y: Y.astype(bool).astype(object),
    "frame": lambda Y: pd.DataFrame(Y.astype(float)),
    "Int64": lambda Y: pd.DataFrame(Y).astype("Int64"),
    "boolean": lambda Y: pd.DataFrame(Y).astype("boolean"),
    "Float64": lambda Y: pd.DataFrame(Y).astype("Float64"),
    "mixed frame": lambda Y: pd.DataFrame(Y).astype({0: "boolean", 1: "Float64", 2: "int8"}),
    "lists": lambda Y: Y.tolist(),
    "lists of bool": lambda Y: Y.astype(bool).tolist(),
    "column of lists": lambda Y: pd.Series(Y.tolist()),
    "polars": lambda Y: pytest.importorskip("polars").DataFrame(Y.astype(bool), schema=["a", "b", "c"]),
    "arrow": lambda Y: pytest.importorskip("pyarrow").table({str(k): Y[:, k] for k in range(3)}),
    "arrow in pandas": lambda Y: pytest.importorskip("pyarrow") and pd.DataFrame(Y).astype("bool[pyarrow]"),
}


@pytest.mark.parametrize("kind", DENSE)
def test_dense_indicators(flags, kind):
    X, Y = flags
    y = DENSE[kind](Y)
    want = HierarchicalClassifier(hierarchy=[("a", 0), ("a", 1), ("b", 2)]).fit(X, Y)
    clf = HierarchicalClassifier(hierarchy=[("a", 0), ("a", 1), ("b", 2)]).fit(X, y)
    assert clf.classes_.tolist() == [0, 1, 2] and clf.report_["weights_sha256"] == want.report_["weights_sha256"]
    said = clf.predict(X)
    assert isinstance(said, np.ndarray) and said.dtype.kind == "i" and said.shape == Y.shape
    assert clf.score(X, y) == clf.score(X, Y) == (said == Y).all(axis=1).mean() > 0.5


@pytest.mark.parametrize("container", ["csr_matrix", "csc_matrix", "coo_matrix", "lil_matrix", "dok_matrix", "bsr_matrix", "csr_array", "coo_array"])
def test_sparse_indicators_are_read(flags, container):
    X, Y = flags
    want = Targets(Y, " > ", "auto")
    for kind in ("uint8", "float32", "float64", "bool", "int64"):
        got = Targets(getattr(sp, container)(Y.astype(kind)), " > ", "auto")
        assert got.form == "indicator" and got.sparse and not want.sparse
        assert got.names == want.names and got.begin.tolist() == want.begin.tolist() and got.index.tolist() == want.index.tolist()


def test_sparse_stays_sparse():
    """Of 20,000 rows and 100,000 labels an array would have two thousand million cells."""
    y = sp.csr_matrix((np.ones(20_000, np.float32), (np.arange(20_000), np.arange(20_000))), shape=(20_000, 100_000))
    tracemalloc.start()
    try:
        assert len(Targets(y, " > ", "auto").names) == 100_000
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


def test_sparse_in_sklearn(flags):
    X, Y = flags
    y = sp.csr_matrix(Y.astype(np.float32))
    before = y.copy()
    clf = TaxonClassifier().fit(X, y)
    said = clf.predict(X)
    assert (said.toarray() == TaxonClassifier().fit(X, Y).predict(X)).all()
    assert clf.score(X, y) == clf.score(X, Y) == (said.toarray() == Y).all(axis=1).mean()
    assert clf.score(X, y, sample_weight=np.arange(60)) == pytest.approx(np.average((said.toarray() == Y).all(axis=1), weights=np.arange(60)))
    again = pickle.loads(pickle.dumps(clf))
    assert sp.issparse(again.predict(X)) and sp.issparse(clone(clf).fit(X, y).predict(X))
    assert GridSearchCV(TaxonClassifier(), {"C": [0.1, 1.0]}, cv=2).fit(X, y).best_score_ > 0.5
    assert (y != before).nnz == 0
    explicit = sp.csr_matrix((np.r_[np.ones(60), 0.0], (np.r_[np.arange(60), 0], np.r_[Y[:, 0], 2])), shape=(60, 3))
    clf = TaxonClassifier().fit(X, explicit)
    assert clf.classes_.tolist() == [0, 1, 2] and clf.predict(X).shape == (60, 3) and explicit.nnz == 61
    one = TaxonClassifier().fit(X, sp.csr_matrix(Y[:, :1]))
    assert one.predict(X).shape == (60, 1)


def test_sparse_frames(flags):
    X, Y = flags
    try:
        y = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(Y))
        y.sparse.to_coo()
    except ImportError as e:  # of an old SciPy
        pytest.skip(str(e))
    clf = TaxonClassifier().fit(X, y)
    assert sp.issparse(clf.predict(X)) and clf.score(X, y) == clf.score(X, Y)


def test_matrices_that_are_no_indicator(flags):
    X, Y = flags
    for y, match in ((2 * Y - 1, "-1, 1: an indicator holds 0 and 1"), (0.5 * Y, "not whole"), (np.where(Y == 1, 1, np.nan), "missing values"),
                     (np.where(np.arange(180).reshape(60, 3) == 7, np.nan, Y), "missing values"), (pd.DataFrame(Y).astype("Int64").mask(Y == 1), "missing values"),
                     (sp.csr_matrix(2 * Y), "holds 2"), (sp.csr_matrix(np.where(Y == 1, np.nan, 0)), "holds nan"), (np.zeros((60, 2, 2)), "dimensions")):
        with pytest.raises(ValueError, match=match):
            TaxonClassifier().fit(X, y)
    # Numbers that are levels stay paths; targets says so where both could be meant.
    assert "1 > 3" in HierarchicalClassifier().fit(X, Y[:, :2] + [[1, 3]]).classes_
    assert set(HierarchicalClassifier(targets="paths").fit(X, Y[:, :2]).classes_) == {"0 > 0", "0 > 1", "1 > 0", "1 > 1"}
    clf = TaxonClassifier().fit(X, Y)
    for y, match in ((Y[:, :2], "2 columns"), (Y[:, 0], "read as labels"), ([["a"]] * 60, "read as sets"), (3 * Y, "no indicator"), (Y[:5], "inconsistent")):
        with pytest.raises(ValueError, match=match):
            clf.score(X, y)


def objects(rows):
    out = np.empty(len(rows), object)
    out[:] = rows
    return out


COLUMNS = {
    "tuples": lambda rows: tuple(map(tuple, rows)),
    "sets": lambda rows: [set(row) for row in rows],
    "pandas": pd.Series,
    "pandas, other index": lambda rows: pd.Series(rows, index=range(100, 100 + len(rows))),
    "frame of one column": lambda rows: pd.DataFrame({"labels": rows}),
    "object array": objects,
    "arrays": lambda rows: [np.array(row) for row in rows],
    "pandas of arrays": lambda rows: pd.Series([np.array(row, dtype=object) for row in rows]),  # as from Parquet
    "pandas of sets": lambda rows: pd.Series([frozenset(row) for row in rows]),
    "polars": lambda rows: pytest.importorskip("polars").Series(rows),
    "polars frame": lambda rows: pytest.importorskip("polars").DataFrame({"labels": rows}),
    "arrow": lambda rows: pytest.importorskip("pyarrow").array(rows),
    "arrow in chunks": lambda rows: pytest.importorskip("pyarrow").chunked_array([rows[:7], rows[7:]]),
    "arrow table": lambda rows: pytest.importorskip("pyarrow").table({"labels": rows}),
    "arrow in pandas": lambda rows: pd.Series(rows, dtype=pd.ArrowDtype(pytest.importorskip("pyarrow").list_(pytest.importorskip("pyarrow").string()))),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_lists(flags, kind):
    X, _ = flags
    rows = [["pet", "cat"] if x > 0 else ["tree"] if x > -1 else [] for x in X[:, 0]]
    want = TaxonClassifier().fit(X, rows)
    clf = TaxonClassifier().fit(X, COLUMNS[kind](rows))
    assert clf.classes_.tolist() == ["cat", "pet", "tree"] and clf.report_["weights_sha256"] == want.report_["weights_sha256"]
    said = clf.predict(X)
    assert isinstance(said, list) and isinstance(said[0], list)
    assert clf.score(X, COLUMNS[kind](rows)) == clf.score(X, rows) == np.mean([set(a) == set(b) for a, b in zip(said, rows)])
    if "set" not in kind:  # paths, which have an order
        paths = [["pet", "cat"] if x > 0 else ["pet", "dog"] if x > -1 else ["tree"] for x in X[:, 0]]
        clf = HierarchicalClassifier().fit(X, COLUMNS[kind](paths))
        assert clf.classes_.tolist() == ["pet > cat", "pet > dog", "tree"]
        assert clf.score(X, COLUMNS[kind](paths)) == clf.score(X, paths) > 0.5


def test_lists_in_sklearn(flags):
    X, _ = flags
    rows = pd.Series([["pet", "cat"] if x > 0 else ["tree"] for x in X[:, 0]])
    with pytest.raises(ValueError, match="legacy multi-label"):  # scikit-learn's own, which stratifies
        cross_val_score(TaxonClassifier(), X, rows, cv=3)
    assert cross_val_score(TaxonClassifier(), X, rows, cv=KFold(3)).mean() > 0.8
    assert cross_val_score(TaxonClassifier(), X, objects(rows.tolist()), cv=KFold(3)).mean() > 0.8
    texts = [f"a{int(x > 0)} b" for x in X[:, 0]]
    clf = TaxonTextClassifier(targets="sets").fit(texts, rows)
    assert clf.classes_.tolist() == ["cat", "pet", "tree"] and clf.score(texts, rows) == 1


def test_lists_with_holes(flags):
    X, _ = flags
    rows = [["pet", "cat"], ["tree"], []] * 20
    want = TaxonClassifier().fit(X, rows).report_["weights_sha256"]
    for none in (None, np.nan, pd.NA):
        column = pd.Series([row or none for row in rows])
        assert TaxonClassifier().fit(X, column).report_["weights_sha256"] == want
    for y, match in (([["a", None], ["b"]] * 30, "None, NaN"), ([["a"], "b"] * 30, "give each row a list"), (pd.Series([["a"], 3] * 30), "give each row a list"),
                     ([[["a"]]] * 60, "several paths"), ([["1", 1]] * 60, "same name"), ([[]] * 60, "no label")):
        with pytest.raises(ValueError, match=match):
            TaxonClassifier().fit(X, y)
    mixed = TaxonClassifier().fit(X, [["a", 1], [2], ["a"]] * 20)
    assert set(mixed.classes_.tolist()) == {"a", 1, 2} and {v for row in mixed.predict(X) for v in row} <= {"a", 1, 2}


def test_one_label_of_any_type(flags):
    """Nullable and object columns of numbers, and what is missing."""
    X, Y = flags
    want = TaxonClassifier().fit(X, Y[:, 0])
    for y in (pd.Series(Y[:, 0], dtype="Int64"), Y[:, 0].astype(object), pd.Series(Y[:, 0], dtype="Float64"), pd.Series(Y[:, 0].astype(bool), dtype="boolean")):
        clf = TaxonClassifier().fit(X, y)
        assert clf.report_["weights_sha256"] == want.report_["weights_sha256"]
        assert (clf.predict(X) == want.predict(X)).all() and clf.score(X, y) == want.score(X, Y[:, 0])
    for y in (pd.Series(Y[:, 0], dtype="Int64").mask(X[:, 1] > 0), pd.Series(["a", None] * 30, dtype="string"), np.array(["a", None] * 30, object), np.array([1, np.nan] * 30)):
        with pytest.raises(ValueError, match="None or NaN|contains NaN"):
            TaxonClassifier().fit(X, y)
    with pytest.raises(ValueError, match="several types"):
        TaxonClassifier().fit(X, np.array(["a", 1] * 30, object))


def test_levels_with_missing_numbers(flags):
    """A null makes a column of whole numbers one of floats."""
    X, _ = flags
    rows = [(1, 10), (1, None), (2, 20)] * 20
    frames = [pd.DataFrame(rows, columns=["a", "b"]), pd.DataFrame(rows, columns=["a", "b"]).astype("Int64"), np.array(rows, dtype=float)]
    try:
        import polars as pl

        frames.append(pl.DataFrame(rows, schema=["a", "b"], orient="row"))
    except ImportError:
        pass
    for y in frames:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf = HierarchicalClassifier().fit(X, y)
        assert clf.classes_.tolist() == ["1", "1 > 10", "2 > 20"]
        assert 0 <= clf.score(X, y) <= 1
