"""Cells of tables are read as the binary reads them from a Parquet file of the same frame."""

import datetime
import json
import subprocess
import uuid
from decimal import Decimal

import numpy as np
import pytest

import taxon
from taxon._binary import binary, run
from taxon._cells import label_name, text_of, values

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FLOATS = [1e-7, 0.1, 2.0, 1e-5, 0.00001234, 9.9e-6, 1e16, 123456789012345680.0, -2.5e20, 5e-324, float("inf"), -0.0,
          float("nan"), None]
SINGLES = [1e-7, 0.1, 2.0, 1e-5, 9.99e-6, 1.1e-5, 16777216.0, 1e16, 3e38, float("-inf"), 1e-45, None]
WHOLE = [0, -7, 2**53 + 1, 2**63 - 1, None]
PARTS = [1_577_836_800_000_000_001, 1_577_836_800_500_000_000, 1_577_836_800_000_001_000, -1, 0]
COARSE = [n // 1000 for n in PARTS]
MOMENTS = [datetime.datetime(2020, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 500000),
           datetime.datetime(1, 1, 1), None]
EAST = datetime.timezone(datetime.timedelta(hours=2))
TIMES = [datetime.time(12, 30), datetime.time(12, 30, 0, 500000), datetime.time(0, 0, 0, 1), None]
DATES = [datetime.date(2020, 1, 1), datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]


def arrow(cells, kind=None):
    return pa.chunked_array([pa.array(cells, kind)])


COLUMNS = {
    "pandas float64": lambda: pd.Series(FLOATS, dtype="float64"),
    "pandas float32": lambda: pd.Series(SINGLES, dtype="float32"),
    "pandas Float32": lambda: pd.Series(SINGLES, dtype="Float32"),
    "pandas float of Arrow": lambda: pd.Series(SINGLES, dtype="float[pyarrow]"),
    "pandas float16": lambda: pd.Series([0.1, 2.0, 6e-8, np.nan], dtype="float16"),
    "pandas category of float32": lambda: pd.Series(SINGLES, dtype="float32").astype("category"),
    "pandas whole": lambda: pd.Series(WHOLE[:-1]),
    "pandas whole and gaps": lambda: pd.Series(WHOLE),
    "pandas whole beyond a float": lambda: pd.Series([2**53 + 1, 10**18 + 7, np.nan, 3]),
    "pandas Int64": lambda: pd.Series(WHOLE, dtype="Int64"),
    "pandas uint64": lambda: pd.Series([2**64 - 1, 1], dtype="uint64"),
    "pandas booleans": lambda: pd.Series([True, False]),
    "pandas booleans and gaps": lambda: pd.Series([True, None, False], dtype="boolean"),
    "pandas objects": lambda: pd.Series([1, None, 3], dtype=object),
    "pandas texts": lambda: pd.Series(["a b", "", None, "1e-07"]),
    "pandas categories": lambda: pd.Series(["a", None, "b", "a"], dtype="category"),
    "pandas timestamps": lambda: pd.Series(pd.to_datetime([*PARTS, None])),
    "pandas timestamps of microseconds": lambda: pd.Series(MOMENTS, dtype="datetime64[us]"),
    "pandas timestamps of Arrow": lambda: pd.Series(PARTS).astype("timestamp[ns][pyarrow]"),
    "pandas instants": lambda: pd.Series(pd.to_datetime(PARTS, utc=True)).dt.tz_convert("Asia/Tokyo"),
    "pandas objects of times": lambda: pd.Series(TIMES, dtype=object),
    "pandas objects of dates": lambda: pd.Series(DATES, dtype=object),
    "pandas objects of decimals": lambda: pd.Series([Decimal("1.10"), Decimal("-0.05"), None], dtype=object),
    "pandas bytes": lambda: pd.Series(["é".encode(), b"a", b""], dtype=object),
    "polars Float64": lambda: pl.Series("c", FLOATS, pl.Float64),
    "polars Float32": lambda: pl.Series("c", SINGLES, pl.Float32),
    "polars whole": lambda: pl.Series("c", WHOLE),
    "polars Datetime ns": lambda: pl.Series("c", PARTS).cast(pl.Datetime("ns")),
    "polars Datetime ms": lambda: pl.Series("c", MOMENTS, pl.Datetime("ms")),
    "polars instants": lambda: pl.Series("c", COARSE).cast(pl.Datetime("us", "Asia/Tokyo")),
    "polars Time": lambda: pl.Series("c", TIMES),
    "polars Date": lambda: pl.Series("c", DATES),
    "polars Decimal": lambda: pl.Series("c", [Decimal("1.1"), Decimal("-3"), Decimal(0), None], pl.Decimal(20, 2)),
    "polars categories": lambda: pl.Series("c", ["x", "y", None, "x"], pl.Categorical),
    "polars booleans": lambda: pl.Series("c", [True, None]),
    "Arrow double": lambda: arrow(FLOATS, pa.float64()),
    "Arrow float": lambda: arrow(SINGLES, pa.float32()),
    "Arrow halffloat": lambda: arrow([0.1, 2.0, None], pa.float16()),
    "Arrow dictionary": lambda: arrow(["b", None, "a", "b"]).dictionary_encode(),
    "Arrow timestamps": lambda: arrow(PARTS, pa.timestamp("ns")),
    "Arrow timestamps of seconds": lambda: arrow([0, -62135596800, None], pa.timestamp("s")),
    "Arrow instants": lambda: arrow(COARSE, pa.timestamp("us", "Europe/Rome")),
    "Arrow time64": lambda: arrow([45_000_000_000_001, 0, None], pa.time64("ns")),
    "Arrow time32": lambda: arrow([45_000_500, None], pa.time32("ms")),
    "Arrow date64": lambda: arrow(DATES, pa.date64()),
    "Arrow decimals": lambda: arrow([Decimal("123456789012345678901234567890.10"), Decimal("-0.01"), None],
                                    pa.decimal256(40, 2)),
    "Arrow bytes": lambda: arrow([b"ab", None], pa.binary()),
    "dicts of floats": lambda: FLOATS,
    "dicts of moments": lambda: MOMENTS,
    "dicts of instants": lambda: [datetime.datetime(2020, 1, 1, 1, 0, 0, n, EAST) for n in (0, 7)],
    "dicts of NumPy": lambda: [np.datetime64(n, "ms") for n in (1_577_836_800_500, -1, "NaT")],
    "dicts of UUIDs": lambda: [uuid.UUID(int=1), None],
}


def write(column, path):
    """A Parquet file of one column c, written by the library of the column."""
    if isinstance(column, pd.Series):
        pd.DataFrame({"c": column}).to_parquet(path)
    elif isinstance(column, pl.Series):
        pl.DataFrame({"c": column}).write_parquet(path)
    else:
        column = column if isinstance(column, pa.ChunkedArray) else pa.array(column)
        pq.write_table(pa.table({"c": column}), path)


def frame(column):
    """The same as a table."""
    if isinstance(column, pd.Series):
        return pd.DataFrame({"c": column})
    if isinstance(column, pl.Series):
        return pl.DataFrame({"c": column})
    return pa.table({"c": column}) if isinstance(column, pa.ChunkedArray) else [{"c": v} for v in column]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Of a column c: its words, its number and a list of two numbers; of vectors."""
    folder = tmp_path_factory.mktemp("models")
    pieces = "t true false inf a b x y 2 2020 01t00 01 00 00z 16t23 7 07 1 0 3 1e 2019 5 500 1969 31t23".split()
    rows = [{"c": f"{p} {q}", "l": "even" if i % 2 else "odd"} for i, p in enumerate(pieces) for q in pieces[:3]]
    numbers = [{"c": i % 7 + 0.5, "l": "low" if i % 7 < 3 else "high"} for i in range(60)]
    lists = [{"c": [i % 7 + 0.5, -i], "l": "low" if i % 7 < 3 else "high"} for i in range(60)]
    for name, rows, flag in (("text", rows, "--text-column"), ("number", numbers, "--feature-columns"),
                             ("list", lists, "--feature-columns")):
        (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        flags = [flag, "c", "--label-column", "l", "--method", "bsvm"]
        run(["train", "--data", str(folder / "d.jsonl"), *flags, "--out", str(folder / name)])
    (folder / "d.svm").write_text("a 1:1 2:3\nb 1:-1 2:1\n" * 10)
    run(["train", "--data", str(folder / "d.svm"), "--method", "bsvm", "--out", str(folder / "vectors")])
    return folder


def answer(verb, model, path, *flags):
    """What the binary writes of a file, or None with its message."""
    command = [binary(), verb, "--model", str(model), "--data", str(path), "--out", "-", "--quiet", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    return (None if done.returncode else done.stdout), done.stderr


def binary_vectors(model, path):
    out, said = answer("vectors", model, path)
    if out is None:
        return None, said
    pairs = ([part.split(":") for part in line.split() if ":" in part] for line in out.splitlines())
    return [{int(k): float(v) for k, v in row} for row in pairs], said


def same_vectors(model, path, X):
    """Whether Python has the binary's vectors, or both refuse; the messages."""
    theirs, said = binary_vectors(model, path)
    try:
        ours = taxon.load(model).vectors(X)
    except ValueError as err:
        assert theirs is None, (str(err), theirs)
        return str(err), said
    assert theirs is not None, said
    assert len(theirs) == ours.shape[0]
    number = taxon.load(model).features
    for k, want in enumerate(theirs):
        row = ours[k]
        got = {int(number[j]): v for j, v in zip(row.indices, row.data) if v}
        assert got == pytest.approx({j: v for j, v in want.items() if v}, rel=1e-5), k
    return "", ""


@pytest.mark.parametrize("name", COLUMNS)
def test_texts(tmp_path, models, name):
    """A cell's text is the id that the binary reads, and words are made of it."""
    column = COLUMNS[name]()
    write(column, tmp_path / "c.parquet")
    table = pq.read_table(tmp_path / "c.parquet")
    pq.write_table(table.append_column("id", table["c"]).rename_columns(["c", "id"]), tmp_path / "ids.parquet")
    out, said = answer("predict", models / "text", tmp_path / "ids.parquet", "--id-column", "id", "--format", "jsonl")
    assert out is not None, said
    ids = [json.loads(line).get("id") or "" for line in out.splitlines()]
    assert [text_of(v) for v in values(column)] == ids
    assert same_vectors(models / "text", tmp_path / "c.parquet", frame(column)) == ("", "")


LISTS = {
    "pandas arrays": lambda: pd.Series([np.array(["a b", "x"], object), np.array([], object), None]),
    "pandas arrays of float32": lambda: pd.Series([np.array([0.1, 1e-7], np.float32), np.array([2], np.float32)]),
    "pandas lists": lambda: pd.Series([["a", None, ""], [], ["b"]]),
    "polars lists": lambda: pl.Series("c", [[0.1, None], [], None, [1e-7]], pl.List(pl.Float32)),
    "polars lists of moments": lambda: pl.Series("c", [[0, 1], None]).cast(pl.List(pl.Datetime("ns"))),
    "polars arrays": lambda: pl.Series("c", [[0.1, 2.0], [1e-7, 3.0]], pl.Array(pl.Float32, 2)),
    "Arrow lists": lambda: arrow([[0.1, None], [], None, [1e-7]], pa.list_(pa.float32())),
    "Arrow lists of moments": lambda: arrow([MOMENTS, None], pa.list_(pa.timestamp("us"))),
    "dicts of lists": lambda: [["a", "x"], None, []],
    "dicts of arrays": lambda: [np.array([0.1, 1e-7], np.float32), np.array([2], np.float32)],
}


@pytest.mark.parametrize("name", LISTS)
def test_lists(tmp_path, models, name):
    column = LISTS[name]()
    write(column, tmp_path / "c.parquet")
    assert same_vectors(models / "text", tmp_path / "c.parquet", frame(column)) == ("", "")


REFUSED = {
    "pandas durations": (lambda: pd.Series(pd.to_timedelta([1, 2])), "holds durations"),
    "pandas structs": (lambda: pd.Series([{"a": 1}]), "holds structs"),
    "pandas lists of lists": (lambda: pd.Series([[["a"]]]), "holds lists of lists"),
    "polars durations": (lambda: pl.Series("c", [datetime.timedelta(1)]), "holds durations"),
    "polars structs": (lambda: pl.Series("c", [{"a": 1}]), "holds structs"),
    "Arrow structs": (lambda: arrow([{"a": 1}]), "holds structs"),
    "Arrow bytes": (lambda: arrow([b"\xff"], pa.binary()), "UTF-8"),
    "Arrow years": (lambda: arrow([253402300800], pa.timestamp("s")), "years 0 to 9999"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_texts(tmp_path, models, name):
    column, match = REFUSED[name][0](), REFUSED[name][1]
    with pytest.raises(ValueError, match=f"column 'c', row 1: it .*{match}"):
        taxon.load(models / "text").predict(frame(column))
    write(column, tmp_path / "c.parquet")
    assert answer("predict", models / "text", tmp_path / "c.parquet")[0] is None


NUMBERS = {
    "floats": (lambda: pd.Series([1.5, np.nan, -2.0]), None),
    "whole and gaps": (lambda: pd.Series([2**53 + 1, None, 3]), None),
    "large whole": (lambda: pl.Series("c", [2**63 - 1, None, 3]), None),
    "float32": (lambda: pl.Series("c", [0.1, None], pl.Float32), None),
    "booleans": (lambda: pd.Series([True, False]), None),
    "decimals": (lambda: arrow([Decimal("1.10"), None]), None),
    "texts": (lambda: pd.Series(["1.5", " true ", "NA", "", "1e3", ".5", "5.", "+1"]), None),
    "infinity": (lambda: pd.Series([1.0, np.inf]), "row 2: inf is too large for float32, or not finite"),
    "too large": (lambda: pd.Series([1.0, 1e300]), "row 2: 1e[+]300 is too large for float32, or not finite"),
    "text of infinity": (lambda: pd.Series(["1", "inf"]), "row 2: it holds 'inf', which is not a finite number"),
    "text with an underscore": (lambda: pd.Series(["1_000"]), "row 1: it holds '1_000', which is not a finite number"),
    "text": (lambda: pd.Series(["abc"]), "row 1: it holds 'abc', which is not a finite number"),
    "timestamps": (lambda: pd.Series(MOMENTS, dtype="datetime64[us]"), "row 1: it holds timestamps: want a number"),
    "dates": (lambda: pl.Series("c", DATES), "row 1: it holds dates: want a number"),
    "pandas lists": (lambda: pd.Series([np.array([1.0, 2.0])]), "row 1: a list of 2 numbers, want a number"),
    "lists": (lambda: pl.Series("c", [[1.0, 2.0]]), "row 1: a list of 2 numbers, want a number"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(tmp_path, models, name):
    column, match = NUMBERS[name][0](), NUMBERS[name][1]
    write(column, tmp_path / "c.parquet")
    if match is None:
        assert same_vectors(models / "number", tmp_path / "c.parquet", frame(column)) == ("", "")
        return
    assert binary_vectors(models / "number", tmp_path / "c.parquet")[0] is None
    with pytest.raises(ValueError, match=match):
        taxon.load(models / "number").predict(frame(column))


LISTS_OF_NUMBERS = ([[1.0, 2.0], [3.0, None]], [[1.0, 2.0], None], [[1.0]], [[]], [[1.0, float("inf")]], [1.0, 2.0],
                    [None, None])


@pytest.mark.parametrize("cells", LISTS_OF_NUMBERS, ids=str)
def test_lists_of_numbers(tmp_path, models, cells):
    """The binary's answer, or a refusal where it refuses."""
    kind = pa.float64() if isinstance(cells[0], float) else pa.list_(pa.float64())
    write(arrow(cells, kind), tmp_path / "c.parquet")
    for X in (frame(arrow(cells, kind)), frame(cells), frame(pd.Series(cells)), frame(pl.Series("c", cells))):
        same_vectors(models / "list", tmp_path / "c.parquet", X)


@pytest.mark.parametrize("value", (np.nan, np.inf, -np.inf, 1e39))
def test_arrays_that_are_not_finite(tmp_path, models, value):
    """As the binary refuses them, with row and column; in a table's columns NaN is missing."""
    import scipy.sparse as sp

    X = np.array([[0.0, 1], [1, 2], [0, value]])
    np.save(tmp_path / "x.npy", X)
    out, said = answer("predict", models / "vectors", tmp_path / "x.npy")
    match = "column 2 holds a value that is not finite in float32"
    assert out is None and match in said
    m = taxon.load(models / "vectors")
    for given in (X, X.tolist(), sp.csr_matrix(X), sp.coo_matrix(X), pd.DataFrame(X)):
        for ask in (m.predict, m.decision_function, m.predict_sets):
            with pytest.raises(ValueError, match=f"row 3: {match}"):
                ask(given)
    m = taxon.load(models / "list")
    if np.isnan(value):
        assert len(m.predict(X)) == 3
    elif np.isinf(value):
        with pytest.raises(ValueError, match='column "c" 2, row 3: -?inf is too large for float32, or not finite'):
            m.predict(X)


def test_columns_of_one_name(models):
    table = pd.DataFrame([[1.0, 2.0]], columns=["c", "c"])
    with pytest.raises(ValueError, match="several columns 'c'"):
        taxon.load(models / "number").predict(table)


def test_whole_numbers_without_end(models):
    with pytest.raises(ValueError, match="row 1: -inf is too large for float32, or not finite"):
        taxon.load(models / "number").predict([{"c": -(10**400)}])


def test_labels():
    """Labels have the texts of cells, but whole numbers are whole."""
    pairs = [(1e-7, "1e-7"), (np.float32(0.1), "0.1"), (2.0, "2"), (np.float32(2), "2"), (True, "true"), ("a", "a"),
             (np.int8(3), "3"), (Decimal("1.10"), "1.10"), (datetime.date(2020, 1, 1), "2020-01-01"),
             (np.datetime64("2020-01-01T00:00"), "2020-01-01T00:00:00"), (("a", 1), "('a', 1)")]
    assert [label_name(v) for v, _ in pairs] == [text for _, text in pairs]
