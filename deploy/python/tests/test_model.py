"""Scores in NumPy are those of `taxon predict`, for each kind of model."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import taxon
from taxon._binary import binary, run
from taxon._data import write_dataset, write_edges
from taxon._params import METHODS
from taxon._text import terms


def predicted(model, data, rows, *flags):
    """Scores by label that `taxon predict` prints."""
    out = subprocess.run([binary(), "predict", "--model", str(model), "--data", str(data), "--out", "-", "--scores", "--top", "99", "--quiet", *flags],
                         check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(out) == rows
    return [{part.rpartition(":")[0]: float(part.rpartition(":")[2]) for part in line.split(",")} for line in out]


def compare(model, X, lines, values):
    assert len(lines) == len(values)
    for row, line in zip(values, lines):
        assert set(line) == set(model.labels)
        for k, name in enumerate(model.labels):
            assert row[k] == pytest.approx(line[name], abs=1e-6)


@pytest.fixture
def data(tmp_path, families):
    X, y, edges = families
    names, index = np.unique(y, return_inverse=True)
    write_dataset(tmp_path / "data", X, names.tolist(), np.arange(len(y) + 1), index)
    write_edges(tmp_path / "edges", edges)
    with open(tmp_path / "x.svm", "w") as f:
        for row in X:
            f.write(" " + " ".join(f"{j + 1}:{np.float32(v)}" for j, v in enumerate(row) if v) + "\n")
    return tmp_path


FOLLOW_PATHS = ("td", "hiermult", "transfer", "ot", "h-svm", "h-rls", "hm3")
PATH_SETS = ("h-svm", "h-rls", "hm3")


def train(data, method, *flags):
    """A model of the nine classes; a flat method takes no hierarchy."""
    hierarchy = [] if method in ("bsvm", "blr", "mlr", "msvm", "flatmult") else ["--hierarchy", str(data / "edges")]
    run(["train", "--data", str(data / "data"), *hierarchy, "--method", method, "--out", str(data / "m"), "--max-sweeps", "300", *flags])


@pytest.mark.parametrize("method", [m for m in METHODS if m not in PATH_SETS])
def test_scores(data, families, method):
    train(data, method, *(["--x", "iterations=40", "--x", "burn-in=20", "--x", "leapfrog=4"] if method == "corrmnl" else []))
    m = taxon.load(data / "m")
    scores = m.decision_function(families[0])
    shown = m.probabilities(families[0]) if m.has_probabilities else scores
    lines = predicted(data / "m", data / "x.svm", len(scores))
    compare(m, families[0], lines, shown)
    best = subprocess.run([binary(), "predict", "--model", str(data / "m"), "--data", str(data / "x.svm"), "--out", "-", "--quiet"], check=True, capture_output=True, text=True)
    assert m.predict(families[0]) == best.stdout.split()


@pytest.mark.parametrize("method", ("h-svm", "h-rls", "hm3"))
def test_sets_of_paths(data, families, method):
    """Rows with labels of leaves and of inner nodes, several or none; two trees."""
    X, y, edges = families
    rng = np.random.default_rng(5)
    with open(data / "paths.svm", "w") as f:
        for i, (row, name) in enumerate(zip(X, y)):
            labels = {0: [name], 1: [name, f"c{rng.integers(9)}"], 2: [f"f{int(name[1]) // 3}"], 3: []}[i % 4]
            f.write(",".join(dict.fromkeys(labels)) + " " + " ".join(f"{j + 1}:{np.float32(v)}" for j, v in enumerate(row) if v) + "\n")
    write_edges(data / "tree", [("r", "f0"), ("r", "f1"), *edges])
    with pytest.warns(UserWarning):
        run(["train", "--data", str(data / "paths.svm"), "--hierarchy", str(data / "tree"), "--method", method, "--out", str(data / "m")])
    m = taxon.load(data / "m")
    compare(m, X, predicted(data / "m", data / "x.svm", len(X)), m.decision_function(X))
    said = subprocess.run([binary(), "predict", "--model", str(data / "m"), "--data", str(data / "x.svm"), "--out", "-", "--quiet"], check=True, capture_output=True, text=True)
    sets = m.predict_sets(X)
    assert [",".join(row) for row in sets] == said.stdout.splitlines()
    assert {"f0", "r"} & {name for row in sets for name in row} and len({len(row) for row in sets}) > 1
    assert m.explain(X[:1])["label"] == m.predict(X[:1])[0]


@pytest.mark.parametrize("goal", ["micro_f1", "macro_f1"])
def test_label_sets(data, families, goal):
    X, y, _ = families
    with open(data / "sets.svm", "w") as f:
        for i, (row, name) in enumerate(zip(X, y)):
            extra = f",c{(int(name[1]) + 1) % 9}" if i % 2 else ""
            f.write(f"{name}{extra} " + " ".join(f"{j + 1}:{np.float32(v)}" for j, v in enumerate(row) if v) + "\n")
    run(["train", "--data", str(data / "sets.svm"), "--hierarchy", str(data / "edges"), "--goal", goal, "--out", str(data / "m")])
    m = taxon.load(data / "m")
    assert m.cutoffs is not None
    said = subprocess.run([binary(), "predict", "--model", str(data / "m"), "--data", str(data / "x.svm"), "--out", "-", "--quiet"], check=True, capture_output=True, text=True)
    assert [",".join(row) for row in m.predict_sets(X)] == said.stdout.splitlines()


def test_graph_and_pruned(data, families):
    edges = [("c0", "c1"), ("c1", "c2"), ("c3", "c8")]
    write_edges(data / "graph", edges)
    run(["train", "--data", str(data / "data"), "--graph", str(data / "graph"), "--out", str(data / "g")])
    m = taxon.load(data / "g")
    compare(m, families[0], predicted(data / "g", data / "x.svm", 300), m.decision_function(families[0]))


@pytest.mark.parametrize("method", [m for m in METHODS if m != "corrmnl"])  # its draws can't be pruned
def test_pruned(data, families, method):
    """Each form in which export writes values, of each method's form."""
    train(data, method, *(["--calibrate", "temperature"] if method == "rr-svm" else []))
    seen = set()
    for values in ("float32", "float16", "int8"):
        out = data / f"small-{values}"
        run(["export", "--model", str(data / "m"), "--format", "model", "--threshold", "0.01", "--values", values, "--out", str(out)])
        m = taxon.load(out)
        scores = m.decision_function(families[0])
        seen.add(scores.tobytes())
        said = subprocess.run([binary(), "predict", "--model", str(out), "--data", str(data / "x.svm"), "--out", "-", "--quiet"], check=True, capture_output=True, text=True)
        assert [",".join(row) for row in m.predict_sets(families[0])] == said.stdout.splitlines()
        if method not in PATH_SETS:
            compare(m, families[0], predicted(out, data / "x.svm", 300), m.probabilities(families[0]) if m.has_probabilities else scores)
    assert len(seen) == 3  # they round otherwise


def test_pruned_sets_and_texts(data, families, tmp_path):
    X, y, _ = families
    with open(data / "sets.svm", "w") as f, open(data / "t.txt", "w") as t:
        for i, (row, name) in enumerate(zip(X, y)):
            labels = f"{name},c{(int(name[1]) + 1) % 9}" if i % 2 else name
            f.write(f"{labels} " + " ".join(f"{j + 1}:{np.float32(v)}" for j, v in enumerate(row) if v) + "\n")
            t.write(f"{labels}\t" + " ".join(f"w{j}" for j in np.argsort(row)[:6]) + "\n")
    texts = [line.partition("\t")[2] for line in (data / "t.txt").read_text().splitlines()]
    for name, rows, flags in (("sets.svm", X, []), ("t.txt", texts, ["--text"])):
        run(["train", "--data", str(data / name), *flags, "--hierarchy", str(data / "edges"), "--out", str(data / f"{name}.m")])
        run(["export", "--model", str(data / f"{name}.m"), "--format", "model", "--threshold", "0.01", "--values", "int8", "--out", str(data / f"{name}.small")])
        m = taxon.load(data / f"{name}.small")
        assert m.cutoffs is not None
        said = subprocess.run([binary(), "predict", "--model", str(data / f"{name}.small"), "--data", str(data / name), *flags, "--out", "-", "--quiet"], check=True, capture_output=True, text=True)
        assert [",".join(row) for row in m.predict_sets(rows)] == said.stdout.splitlines()


def test_columns_of_a_matrix(data, families, tmp_path):
    """As in predict: a dense matrix has the training's columns, a sparse one no value beyond them."""
    X, y, _ = families
    train(data, "bsvm")
    run(["export", "--model", str(data / "m"), "--format", "model", "--threshold", "0.01", "--values", "int8", "--out", str(data / "small")])
    for name in ("w.npz", "w.safetensors"):
        run(["export", "--model", str(data / "m"), "--format", name[2:], "--out", str(data / name)])
    more = np.hstack([X, np.ones((300, 2))])
    for m in (taxon.load(data / name) for name in ("m", "small", "w.npz", "w.safetensors")):
        for call in (m.predict, m.predict_sets, m.decision_function, lambda rows: m.explain(rows[:1])):
            for bad in (more, sp.csr_matrix(more), sp.csc_matrix(more), more.tolist() if call != m.predict else more, np.hstack([X, np.zeros((300, 1))])):
                with pytest.raises(ValueError, match="X has 3[12] columns, and the model was trained on 30"):
                    call(bad)
        wide = sp.hstack([sp.csr_matrix(X), sp.csr_matrix((300, 69))])
        assert (m.decision_function(wide) == m.decision_function(X)).all()
        assert m.predict(sp.csr_matrix(X[:, :20])) == m.predict(np.hstack([X[:, :20], np.zeros((300, 10))]))
    # The last columns of an estimator's rows may have been zero.
    Z = X.copy()
    Z[:, 28:] = 0
    clf = taxon.TaxonClassifier().fit(Z, y)
    assert len(clf.model_.features) == 28 and (clf.predict(X) == clf.model_.predict(X)).all()
    with pytest.raises(ValueError, match="31 columns"):
        clf.model_.predict(np.ones((1, 31)))
    # A file of a matrix says how many it has.
    sp.save_npz(data / "z.npz", sp.csr_matrix(Z))
    (data / "z.txt").write_text("".join(f"{name}\n" for name in y))
    run(["train", "--data", str(data / "z.npz"), "--x", f"labels={data / 'z.txt'}", "--method", "bsvm", "--out", str(data / "z")])
    m = taxon.load(data / "z")
    assert m.width == 30 and m.predict(X) == list(clf.predict(X))
    with pytest.raises(ValueError, match="X has 31 columns, and the model was trained on 30"):
        m.predict(np.hstack([X, np.zeros((300, 1))]))


def test_exports(data, families):
    run(["train", "--data", str(data / "data"), "--hierarchy", str(data / "edges"), "--out", str(data / "t")])
    m = taxon.load(data / "t")
    want = m.decision_function(families[0])
    for name in ("w.npz", "w.safetensors"):
        run(["export", "--model", str(data / "t"), "--format", name[2:], "--out", str(data / name)])
        e = taxon.load(data / name)
        assert e.labels == m.labels
        assert np.abs(e.decision_function(families[0]) - want).max() < 1e-6
        at = np.concatenate([m.features - 1, [e.weights().shape[1] - 1]])
        assert (e.weights()[:, at] != m.weights()).nnz == 0
        assert e.edges == m.edges and len(e.edges) == 9


def test_texts(tmp_path):
    texts = ["The small dog barked.", "a Dog, a cat; a DOG", "Cats sleep — cats eat", "naïve façade ΑΣ ΑΣΑ 12³ ½", "İstanbul dog's_tail x1", "",
             "the oak tree", "An oak and a pine tree", "tree of pine", "small cat"] * 3
    labels = ["animal", "animal", "animal", "plant", "animal", "plant", "plant", "plant", "plant", "animal"] * 3
    (tmp_path / "t.txt").write_text("".join(f"{a}\t{b}\n" for a, b in zip(labels, texts)), encoding="utf-8")
    run(["train", "--text", "--data", str(tmp_path / "t.txt"), "--method", "bsvm", "--out", str(tmp_path / "m")])
    m = taxon.load(tmp_path / "m")
    compare(m, texts, predicted(tmp_path / "m", tmp_path / "t.txt", len(texts), "--text"), m.decision_function(texts))
    for name in ("w.npz", "w.safetensors"):
        run(["export", "--model", str(tmp_path / "m"), "--format", name[2:], "--out", str(tmp_path / name)])
        assert np.abs(taxon.load(tmp_path / name).decision_function(texts) - m.decision_function(texts)).max() < 1e-6
    e = m.explain("the small dog", label="animal")
    assert e["label"] == "animal" and sum(v["adds"] for v in e["levels"]) == pytest.approx(e["score"])
    assert {"dog", "small"} <= {name for v in e["levels"] for name, _ in v["features"]}


def test_texts_side_by_side(tmp_path):
    texts = ["new york city", "york is new", "a new city in york", "the york in new england", "new york new york", "city of york"] * 2
    (tmp_path / "t.txt").write_text("".join(f"{'ab'[i % 2]}\t{t}\n" for i, t in enumerate(texts)))
    run(["train", "--text", "--x", "ngrams=3", "--x", "stop-words=english", "--data", str(tmp_path / "t.txt"), "--method", "bsvm", "--out", str(tmp_path / "m")])
    m = taxon.load(tmp_path / "m")
    compare(m, texts, predicted(tmp_path / "m", tmp_path / "t.txt", len(texts), "--text"), m.decision_function(texts))


def test_terms():
    vectors = json.loads((Path(__file__).resolve().parents[3] / "internal/data/text/testdata/vectors.json").read_text(encoding="utf-8"))
    for v in vectors:
        text, want = v.pop("text"), v.pop("terms")
        assert terms([text, "", text], v) == [want, [], want]


def test_damage(data):
    run(["train", "--data", str(data / "data"), "--method", "bsvm", "--out", str(data / "m")])
    raw = bytearray((data / "m" / "weights-00000.bin").read_bytes())
    raw[50] ^= 1
    (data / "m" / "weights-00000.bin").write_bytes(raw)
    with pytest.raises(ValueError, match="weights-00000.bin.*damaged"):
        taxon.load(data / "m")
    with pytest.raises(ValueError, match="no manifest"):
        taxon.load(data)


def test_hierarchy(data):
    nx = pytest.importorskip("networkx")
    run(["train", "--data", str(data / "data"), "--hierarchy", str(data / "edges"), "--out", str(data / "m")])
    m = taxon.load(data / "m")
    g = m.hierarchy()
    assert isinstance(g, nx.DiGraph) and g.has_edge("f0", "c1") and len(g.edges) == 9
    assert m.path("c4") == ["f1", "c4"]
    assert sp.issparse(m.weights()) and m.weights().shape == (9, 31)


@pytest.mark.parametrize("method", [m for m in METHODS if m not in (*FOLLOW_PATHS, "corrmnl")])
def test_onnx(data, families, method):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    train(data, method)
    m = taxon.load(data / "m")
    m.to_onnx(data / "m.onnx")
    label, scores = runtime.InferenceSession(str(data / "m.onnx")).run(["label", "scores"], {"X": families[0].astype(np.float32)})
    want = m.probabilities(families[0]) if m.has_probabilities else m.decision_function(families[0])
    assert np.abs(scores - want).max() < 1e-5 and label.tolist() == m.predict(families[0])


@pytest.fixture
def table(tmp_path):
    """A table of numbers of all sizes, a constant column, a list and holes; and a model of it by each of two methods."""
    rng = np.random.default_rng(4)
    k = rng.integers(0, 3, 90)
    X = np.column_stack([5.0 * k + rng.normal(size=90), 1.6e9 + 1000 * k + rng.normal(size=90) * 250, np.full(90, 7.0), 1e-6 * rng.normal(size=90), rng.normal(size=(90, 2)) + k[:, None]])
    X[::9, 0] = np.nan
    with open(tmp_path / "t.jsonl", "w") as f:
        for row, c in zip(X.tolist(), k):
            f.write(json.dumps({"price": None if np.isnan(row[0]) else row[0], "time": row[1], "same": row[2], "tiny": row[3], "v": row[4:], "c": f"c{c}"}) + "\n")
    for method in ("mlr", "bsvm"):
        run(["train", "--data", str(tmp_path / "t.jsonl"), "--feature-columns", "price,time,same,tiny,v", "--label-column", "c", "--method", method, "--out", str(tmp_path / method)])
    return tmp_path, X


@pytest.mark.parametrize("method", ("mlr", "bsvm"))
def test_onnx_of_tables(table, method):
    """The columns go in as they are: mean, scale and what is missing are in the graph."""
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    folder, X = table
    m = taxon.load(folder / method)
    want = m.probabilities(X) if method == "mlr" else m.decision_function(X)
    m.to_onnx(folder / "m.onnx", dtype="float64")
    session = runtime.InferenceSession(str(folder / "m.onnx"))
    assert session.get_inputs()[0].type == "tensor(double)" and session.get_inputs()[0].shape[1] == 6
    label, scores = session.run(["label", "scores"], {"X": X})
    assert np.abs(scores - want).max() < 1e-5 and label.tolist() == m.predict(X)
    with pytest.warns(UserWarning, match='float32 rounds "time" by more'):
        m.to_onnx(folder / "m.onnx")
    short = X.astype(np.float32)
    label, scores = runtime.InferenceSession(str(folder / "m.onnx")).run(["label", "scores"], {"X": short})
    assert np.abs(scores - (m.probabilities(short) if method == "mlr" else m.decision_function(short))).max() < 1e-5 and label.tolist() == m.predict(short)
    with pytest.raises(ValueError, match="float32 or float64"):
        m.to_onnx(folder / "m.onnx", dtype="float16")


def test_onnx_of_doubles(data, families):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    train(data, "bsvm")
    m = taxon.load(data / "m")
    m.to_onnx(data / "m.onnx", dtype="float64")
    assert np.abs(runtime.InferenceSession(str(data / "m.onnx")).run(["scores"], {"X": families[0]})[0] - m.decision_function(families[0])).max() < 1e-5


def test_exports_of_tables(table):
    """Beside a matrix lies how its table's numbers are scaled."""
    folder, X = table
    m = taxon.load(folder / "bsvm")
    for name in ("w.npz", "w.safetensors"):
        run(["export", "--model", str(folder / "bsvm"), "--format", name[2:], "--out", str(folder / name)])
        e = taxon.load(folder / name)
        assert np.abs(e.decision_function(X) - m.decision_function(X)).max() < 1e-6
        with pytest.raises(ValueError, match="7 columns of numbers, and the model was trained on 6"):
            e.predict(np.hstack([X, X[:, :1]]))
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"price": pd.array(np.where(np.isnan(X[:, 0]), 0, X[:, 0]), "Float64"), "time": X[:, 1], "same": 7, "tiny": X[:, 3], "v": X[:, 4:].tolist()})
    frame.loc[np.isnan(X[:, 0]), "price"] = pd.NA
    assert (m.decision_function(frame) == m.decision_function(X)).all()
    for other in (lambda: pytest.importorskip("polars").from_pandas(frame), lambda: pytest.importorskip("pyarrow").Table.from_pandas(frame)):
        assert (m.decision_function(other()) == m.decision_function(X)).all()


def test_no_onnx_of_draws(data, families):
    pytest.importorskip("onnx")
    train(data, "corrmnl", "--x", "iterations=40", "--x", "burn-in=20", "--x", "leapfrog=4")
    with pytest.raises(ValueError, match="corrmnl average draws"):
        taxon.load(data / "m").to_onnx(data / "m.onnx")


@pytest.mark.parametrize("kind", ("temperature", "isotonic"))
@pytest.mark.parametrize("method", ("rr-svm", "bsvm", "td"))
def test_calibrated(data, families, method, kind):
    train(data, method, "--calibrate", kind)
    m = taxon.load(data / "m")
    assert m.has_probabilities
    shown = m.probabilities(families[0])
    assert shown.sum(axis=1) == pytest.approx(1)
    compare(m, families[0], predicted(data / "m", data / "x.svm", len(shown)), shown)


@pytest.mark.parametrize("method", ("rr-svm", "td"))
def test_calibrated_by_levels(data, families, method):
    """Probabilities may rank classes otherwise than scores; predictions stay those of the scores."""
    train(data, method, "--calibrate", "levels")
    m = taxon.load(data / "m")
    shown = m.probabilities(families[0])
    assert m.calibration is not None and len(m.calibration["powers"]) > 1
    assert shown.sum(axis=1) == pytest.approx(1)
    compare(m, families[0], predicted(data / "m", data / "x.svm", len(shown)), shown)


def test_tables_of_large_numbers(tmp_path):
    """Times that float32 does not tell apart, as the binary reads them."""
    rows = [{"t": 1_600_000_000 + i, "c": "early" if i < 30 else "late"} for i in range(60)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    run(["train", "--data", str(tmp_path / "d.jsonl"), "--feature-columns", "t", "--label-column", "c", "--out", str(tmp_path / "m")])
    m = taxon.load(tmp_path / "m")
    lines = predicted(tmp_path / "m", tmp_path / "d.jsonl", 60)
    X = np.array([[r["t"]] for r in rows], np.float64)
    compare(m, X, lines, m.decision_function(X))
    assert np.mean(np.array(m.predict(X)) == [r["c"] for r in rows]) > 0.95



@pytest.mark.parametrize("columns", (["--text-column", "words", "--text-column", "more"], ["--feature-columns", "price,same,v"],
                                     ["--text-column", "words", "--feature-columns", "v,price,same"]))
def test_tables(tmp_path, columns):
    """Texts, numbers and both, with what is missing, a column that never changes and lists."""
    rng = np.random.default_rng(3)
    rows = []
    for i in range(120):
        k = i % 3
        rows.append({"words": " ".join(f"w{j}" for j in rng.integers(0, 12, 6) + 3 * k), "more": None if i % 7 == 0 else "same Word", "same": 7, "v": [float(k), float(rng.normal())],
                     "price": None if i % 5 == 0 else round(float(10 * k + rng.normal()), 3), "c": f"c{k}"})
    for name, some in (("train.jsonl", rows), ("test.jsonl", rows[:30])):
        (tmp_path / name).write_text("".join(json.dumps(r) + "\n" for r in some))
    run(["train", "--data", str(tmp_path / "train.jsonl"), *columns, "--label-column", "c", "--out", str(tmp_path / "m")])
    m = taxon.load(tmp_path / "m")
    lines = predicted(tmp_path / "m", tmp_path / "test.jsonl", 30)
    compare(m, rows, lines, m.decision_function(rows[:30]))
    if "--text-column" not in columns:
        X = np.array([[np.nan if r["price"] is None else r["price"], 7, *r["v"]] for r in rows[:30]])
        compare(m, X, lines, m.decision_function(X))
        assert {m.feature_name(c) for c in range(len(m.features))} == {'"price"', '"v" 1', '"v" 2'}
    frame = pytest.importorskip("pandas").DataFrame(rows[:30])
    compare(m, frame, lines, m.decision_function(frame))
