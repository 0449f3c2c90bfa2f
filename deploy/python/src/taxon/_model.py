"""Models of taxon in NumPy and SciPy: no binary, no scikit-learn.

A model is a folder whose bytes are described in ``internal/model/FORMAT.md`` of the sources. This
module reads it, scores instances, takes scores apart and gives the weights as a sparse matrix.
Scores are sums in float64 over the float32 weights stored, as in ``taxon predict``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from pathlib import Path
from typing import Any, Iterator, cast

import numpy as np
import scipy.sparse as sp

from . import _paths
from ._errors import need
from ._table import Table
from ._text import Vectorizer, name_of

__all__ = ["Model", "load"]

_BATCH_BYTES = 128 << 20  # of scores of all nodes at a time
_VERSIONS = (1, 2, 3)
_SINGLE = 1.1  # labels an instance: up to so many count as one


def load(path: str | os.PathLike[str], *, verify: bool = True) -> "Model":
    """Read a model that ``taxon train`` or ``taxon export`` has written.

    Parameters
    ----------
    path : path-like
        The folder of a model, trained or pruned (``export --format model``); or the ``.npz`` or
        ``.safetensors`` file of an export, with ``labels.txt`` (with a hierarchy also ``edges.txt``, of texts
        ``features.txt`` and ``idf.txt``) beside it.
    verify : bool, default True
        Compare every file with its SHA-256 in the manifest.

    Returns
    -------
    Model
        It scores with NumPy and SciPy alone.

    Raises
    ------
    ValueError
        If it is no model, is damaged, or was written by a newer version.
    """
    p = Path(path)
    if p.is_file() and p.suffix in (".npz", ".safetensors"):
        return _load_export(p)
    if not (p / "manifest.json").is_file():
        raise ValueError(f"{p}: not a model: there is no manifest.json in it")
    return _Reader(p, verify).model()


class Model:
    """Linear classifiers of the classes of a hierarchy.

    Attributes
    ----------
    labels : list of str
        The classes, in the order of the columns of :meth:`decision_function`.
    manifest : dict
        What the model is: options, counts, the report of its training.
    features : ndarray of int
        For each column of the weights, the feature's number in the input, from 1.
    width : int
        The columns of the training's input as far as is known: of lines of features, the last feature in them.
    words : list of str or None
        The word of each column of a text model.
    """

    def __init__(self) -> None:
        self.manifest: dict[str, Any] = {}
        self.parent = np.zeros(0, np.int32)
        self.kind: list[str] = []
        self.name: list[str] = []
        self.terminal = np.zeros(0, bool)
        self.labels: list[str] = []
        self.nodes = np.zeros(0, np.int64)  # the node of each label
        self._label = np.zeros(0, np.int64)  # its line in the model's labels
        self.counts: list[int] = []
        self.features = np.zeros(0, np.int64)
        self.width = 0
        self.bias = 0.0
        self.words: list[str] | None = None
        self.edges: list[tuple[str, str]] = []
        self.cutoffs: dict[str, Any] | None = None
        self.calibration: dict[str, Any] | None = None
        self._delta = sp.csr_matrix((0, 0))  # what a node adds to its parent's vector, float64
        self._whole = False
        self._vectorizer: Vectorizer | None = None
        self._table: Table | None = None  # of data from tables
        self._levels: list[np.ndarray] | None = None
        self._draws = np.zeros((0, 0, 0))  # of a model that averages draws: of each, terminals x features

    # What it is

    @property
    def report(self) -> dict[str, Any]:
        """The figures of the training, by the keys of ``taxon train --json``."""
        return dict(self.manifest.get("report", {}))

    @property
    def form(self) -> dict[str, str]:
        """How weights are stored and read: the manifest's ``form``."""
        return self.manifest.get("form", {}) or {}

    @property
    def is_text(self) -> bool:
        """Whether it was trained on texts."""
        return self.words is not None

    @property
    def has_probabilities(self) -> bool:
        """Whether scores can be read as probabilities: those of ``taxon._params.PROBABLE``, and of calibrated models."""
        return self.calibration is not None or self.form.get("link", "") in ("logistic", "softmax")

    @property
    def labels_per_instance(self) -> float:
        """Labels of a training instance on average."""
        data = self.manifest.get("data", {})
        return float(data.get("positives", 0) / max(1, data.get("instances", 0)))

    def __repr__(self) -> str:
        m = self.report.get("method", "model")
        return f"<taxon.Model: {m}, {len(self.labels)} classes, {len(self.features)} features>"

    # Scores

    def vectors(self, X: Any) -> sp.csr_matrix:
        """Bring rows into the columns of the weights, without the bias.

        Parameters
        ----------
        X : matrix, list of str, data frame or list of dict
            Column j of a matrix is feature j+1 of the training's input; texts for a text model;
            rows with the columns of the table that the model was trained on.

        Returns
        -------
        csr_matrix
            A column for each of :attr:`features`.
        """
        if Table.holds(X) and self._table is not None:
            rows = self._vectorizer(self._table.texts(X)) if self._vectorizer is not None else None
            if not self._table.names:
                return rows
            numbers = self._table.numbers(X)
            return numbers if rows is None else sp.csr_matrix(rows + numbers)
        if isinstance(X, (list, tuple)) and (not X or isinstance(X[0], str)):
            if self._vectorizer is None:
                raise ValueError("these are texts, and the model was trained on vectors")
            return self._vectorizer(X)
        if self._vectorizer is not None:
            raise ValueError("the model was trained on texts: give a list of str, or a data frame with the columns of the training")
        if self._table is not None and self._table.names:
            return self._table.scaled(X.toarray() if sp.issparse(X) else np.atleast_2d(X))
        dense = not sp.issparse(X)
        with np.errstate(over="ignore"):
            X = sp.csr_matrix(X, dtype=np.float32) if dense else X.tocsr().astype(np.float32)
        for k in np.flatnonzero(~np.isfinite(X.data))[:1]:
            row = int(np.searchsorted(X.indptr, k, side="right"))
            raise ValueError(f"row {row}: column {X.indices[k] + 1} holds a value that is not finite in float32")
        beyond = X.shape[1] if dense else int(X.indices[X.data != 0].max(initial=-1)) + 1
        if beyond > self.width:
            raise ValueError(f"X has {beyond} columns, and the model was trained on {self.width}: give the columns of the "
                             "training, in its order")
        known = self.features - 1
        if X.shape[1] < self.width:
            X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], self.width))
        column = np.full(X.shape[1], -1, np.int64)
        column[known] = np.arange(len(known))
        at = column[X.indices]
        keep = at >= 0
        indptr = np.concatenate(([0], np.cumsum(keep)))[X.indptr]
        return sp.csr_matrix((X.data[keep], at[keep], indptr), shape=(X.shape[0], len(known)))

    def decision_function(self, X: Any) -> np.ndarray:
        """Score all classes.

        Parameters
        ----------
        X : matrix, list of str, data frame or list of dict
            Column j of a matrix is feature j+1 of the training's input; texts for a text model;
            rows with the columns of the table that the model was trained on.

        Returns
        -------
        ndarray
            A column for each of :attr:`labels`.
        """
        return self._score(self.vectors(X))[0]

    def _score(self, rows: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        """Scores of all classes, and the class that each row is given (by descent: the leaf that
        is reached)."""
        out = np.empty((rows.shape[0], len(self.labels)))
        best = np.empty(rows.shape[0], np.int64)
        for part, scores, given in self._scored(rows):
            out[part], best[part] = scores, given
        return out, best

    def _best(self, rows: sp.csr_matrix) -> np.ndarray:
        """The class that each row is given."""
        return np.concatenate([np.zeros(0, np.int64), *(best for _, _, best in self._scored(rows))])

    def _scored(self, rows: sp.csr_matrix) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """The same, some rows at a time."""
        for part, S in self._parts(rows):
            if self.form.get("predictor") in ("descent", "greedy"):
                yield part, *self._descend(S)
                continue
            if self.form.get("draws"):
                scores = self._average(rows[part])
            else:
                scores = (self._along_paths(S)[0] if self.predicts_paths else S)[self.nodes].T
            yield part, scores, scores.argmax(axis=1)

    def _parts(self, rows: sp.csr_matrix) -> Iterator[tuple[slice, np.ndarray]]:
        """x.w of all nodes, nodes x rows, some rows at a time."""
        step = max(1, _BATCH_BYTES // (8 * max(1, len(self.parent))))
        for first in range(0, rows.shape[0], step):
            part = slice(first, first + step)
            yield part, self._node_scores(rows[part])

    @property
    def predicts_paths(self) -> bool:
        """Whether predictions are sets of paths (h-svm, h-rls, hm3)."""
        return self.form.get("predictor") in ("nested", "paths")

    def _along_paths(self, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (_paths.nested if self.form["predictor"] == "nested" else _paths.best_union)(S, self.parent, self.kind)

    def _node_scores(self, rows: sp.csr_matrix) -> np.ndarray:
        """x.w of all nodes, nodes x rows."""
        width = self._delta.shape[1]
        X = rows.astype(np.float64)
        if width > X.shape[1]:  # the bias
            b = sp.csr_matrix(np.full((X.shape[0], 1), self.bias))
            X = sp.hstack([X, b], format="csr")
        dense = X.nnz > 0.3 * X.shape[0] * X.shape[1]
        S = self._delta @ (X.toarray().T if dense else X.T.tocsc())
        S = np.ascontiguousarray(S.toarray() if sp.issparse(S) else S)
        if not self._whole or self.form.get("predictor") == "sums":
            for level in self._by_depth()[1:]:
                S[level] += S[self.parent[level]]
        return S

    def _average(self, rows: sp.csr_matrix) -> np.ndarray:
        """Logarithms of the draws' mean probabilities."""
        X = rows.toarray().astype(np.float64)
        if self.bias > 0:
            X = np.hstack([X, np.full((len(X), 1), self.bias)])
        total = np.zeros((len(X), self._draws.shape[1]))
        for w in self._draws:
            s = X @ w.T
            e = np.exp(s - s.max(axis=1, keepdims=True))
            total += e / e.sum(axis=1, keepdims=True)
        of = np.cumsum(self.terminal) - 1  # node -> place among terminals
        return np.asarray(np.log(np.maximum(total[:, of[self.nodes]] / len(self._draws), 5e-324)))

    def _by_depth(self) -> list[np.ndarray]:
        if self._levels is None:
            depth = np.zeros(len(self.parent), np.int64)
            for n, p in enumerate(self.parent):
                if p >= 0:
                    depth[n] = depth[p] + 1
            order = np.argsort(depth, kind="stable")
            cuts = np.searchsorted(depth[order], np.arange(1, depth.max(initial=0) + 1))
            self._levels = np.split(order, cuts)
        return self._levels

    def _descend(self, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ranking by margins of edges: the smallest one on the way, and the leaf that the
        greatest margins lead to. An only child has no margin."""
        children = np.bincount(self.parent + 1, minlength=len(self.parent) + 1)
        way = np.full((len(self.parent) + 1, S.shape[1]), np.inf)
        best = np.full((len(self.parent) + 1, S.shape[1]), -np.inf)
        child = np.full((len(self.parent) + 1, S.shape[1]), -1)
        for n, p in enumerate(self.parent):
            margin = np.full(S.shape[1], np.inf) if children[p + 1] == 1 else S[n]
            better = margin > best[p + 1]
            best[p + 1][better] = margin[better]
            child[p + 1][better] = n
            way[n + 1] = np.minimum(way[p + 1], margin)
        way[np.isinf(way)] = 0
        at = child[0].copy()
        inner = ~self.terminal[at]
        while inner.any():
            at[inner] = child[at[inner] + 1, np.flatnonzero(inner)]
            inner = ~self.terminal[at]
        label = np.full(len(self.parent), -1)
        label[self.nodes] = np.arange(len(self.nodes))
        return way[self.nodes + 1].T, label[at]

    def probabilities(self, X: Any) -> np.ndarray:
        """Give the classes probabilities, as ``taxon predict --scores`` prints them.

        Parameters
        ----------
        X : matrix, list of str, data frame or list of dict
            Column j of a matrix is feature j+1 of the training's input; texts for a text model;
            rows with the columns of the table that the model was trained on.

        Returns
        -------
        ndarray
            Of each class for itself, or (mlr) a distribution over the classes.
        """
        return self._probabilities(self.decision_function(X))

    def _probabilities(self, s: np.ndarray) -> np.ndarray:
        if self.calibration is not None:
            return self._calibrated(s, self.calibration)
        link = self.form.get("link", "")
        if link == "logistic":
            return np.asarray(1 / (1 + np.exp(-s)))
        if link == "softmax":
            e = np.exp(s - s.max(axis=1, keepdims=True))
            return np.asarray(e / e.sum(axis=1, keepdims=True))
        raise ValueError(f"models of {self.report.get('method')} have scores, and no probabilities")

    def _calibrated(self, s: np.ndarray, c: dict[str, Any]) -> np.ndarray:
        z = c["slope"] * s
        if c["joint"]:
            e = np.exp(z - z.max(axis=1, keepdims=True))
            q = e / e.sum(axis=1, keepdims=True)
        else:
            q = 1 / (1 + np.exp(-z - c["offset"]))
        if c["kind"] == "isotonic":
            q = np.interp(q, c["x"], c["y"])
            if c["joint"]:
                q = q / q.sum(axis=1, keepdims=True)
        elif c["kind"] == "levels":
            q = self._down(q, c["powers"])
        elif c["kind"] != "temperature":
            raise ValueError(f"calibration: kind {c['kind']!r} is not known here: install a newer taxon")
        return np.asarray(q)

    def _down(self, q: np.ndarray, powers: list[float]) -> np.ndarray:
        """Probabilities as they come down the hierarchy: at each node those of its children, and of its own class, to their level's power."""
        n, p = len(self.parent), np.zeros((len(q), len(self.parent)))
        p[:, self.nodes] = q
        level = np.zeros(n, np.int64)
        for k in range(n):
            level[k] = 0 if self.parent[k] < 0 else level[self.parent[k]] + 1
        mass, leaf = p.copy(), np.ones(n, bool)
        for k in range(n - 1, -1, -1):
            if self.parent[k] >= 0:
                mass[:, self.parent[k]] += mass[:, k]
                leaf[self.parent[k]] = False
        power = np.power(mass, np.array(powers)[level])
        own = np.where(leaf, 0, np.power(p, np.array([*powers, 1.0])[level + 1]))
        total = np.zeros((len(q), n + 1))
        for k in range(n):
            total[:, self.parent[k] + 1] += power[:, k]
            total[:, k + 1] += own[:, k]
        total[total == 0] = 1
        reach, out = np.zeros_like(p), np.zeros_like(p)
        for k in range(n):
            above = reach[:, self.parent[k]] if self.parent[k] >= 0 else 1.0
            reach[:, k] = above * power[:, k] / total[:, self.parent[k] + 1]
            out[:, k] = reach[:, k] if leaf[k] else reach[:, k] * own[:, k] / total[:, k + 1]
        return out[:, self.nodes]

    def predict(self, X: Any) -> list[str]:
        """Predict the best class of each row.

        Parameters
        ----------
        X : matrix, list of str, data frame or list of dict
            Column j of a matrix is feature j+1 of the training's input; texts for a text model;
            rows with the columns of the table that the model was trained on.

        Returns
        -------
        list of str
            Of models that predict sets of paths :meth:`predict_sets` is what ``taxon predict`` writes.
        """
        return [self.labels[k] for k in self._best(self.vectors(X))]

    def predict_sets(self, X: Any) -> list[list[str]]:
        """Predict the label set of each row, as ``taxon predict`` writes it.

        Parameters
        ----------
        X : matrix, list of str, data frame or list of dict
            Column j of a matrix is feature j+1 of the training's input; texts for a text model;
            rows with the columns of the table that the model was trained on.

        Returns
        -------
        list of list of str
            Best first: by the cut-offs that the training fitted, else all classes with a score above 0;
            of data with hardly more than one label a row the best class. A set is never empty but of
            models that predict sets of paths: theirs are where the paths end, inner nodes among them.
        """
        if self.predicts_paths and self.cutoffs is None:
            out = []
            for _, S in self._parts(self.vectors(X)):
                score, inside = self._along_paths(S)
                end = _paths.lowest(inside, self.parent, self.kind)
                for s, e in zip(score.T, end.T):
                    ends = np.flatnonzero(e)
                    out.append([self.name[n] for n in ends[np.argsort(-s[ends], kind="stable")]])
            return out
        c, sets = self.cutoffs, []
        for _, scores, best in self._scored(self.vectors(X)):
            if self.labels_per_instance <= _SINGLE and not self.predicts_paths:
                sets += [[self.labels[k]] for k in best]
                continue
            for s, row in zip(scores, np.argsort(-scores, axis=1, kind="stable")):
                if c is None:
                    chosen = row[: max(1, int((s > 0).sum()))]
                elif c.get("rule") == "scut":
                    row = row[: c["depth"]]
                    chosen = row[s[row] > np.asarray(c["class"])[self._label[row]]]
                    chosen = chosen if len(chosen) else row[:1]
                else:
                    row = row[: c["depth"]]
                    above = s[row] > c["intercept"] + float(np.dot(c["weight"], s[row]))
                    above[0] = True
                    chosen = row[: len(row) if above.all() else int(np.argmin(above))]
                sets.append([self.labels[k] for k in chosen])
        return sets

    # Weights and structure

    def to_onnx(self, path: str | os.PathLike[str], dtype: str = "float32") -> None:
        """Write the model for ONNX: input ``X``, outputs ``label`` (string) and ``scores`` (float32, in the order of
        :attr:`labels`; probabilities where the method has a link, before any calibration).

        Column j of X is feature j+1 of the training's input. Of a model of a table X has the table's columns of
        numbers, as they are: mean and scale are in the graph, and NaN is the mean. Weights are dense there. Needs the
        package ``onnx``. Refused are models whose predictions follow paths (td, hiermult, transfer, ot, h-svm, h-rls, hm3) or
        average draws (corrmnl), as no product with one matrix gives them, and those of texts.

        Parameters
        ----------
        path : path-like
            The file to write.
        dtype : str, default "float32"
            The type of X: "float32", or "float64" for numbers that float32 rounds, as times in seconds.
        """
        need("onnx", "onnx")
        from onnx import TensorProto, checker, helper, numpy_helper, save

        if dtype not in ("float32", "float64"):
            raise ValueError(f"dtype {dtype!r}: use float32 or float64")
        if why := self._not_linear():
            raise ValueError(f"{why}: they have no ONNX form")
        if self.is_text:
            raise ValueError("models of texts have no ONNX form: train on vectors")
        W, t = self.weights(), self._table if self._table is not None and self._table.names else None
        nodes: list[Any] = []
        constants: list[Any] = []
        rows = "X"

        def step(operation: str, inputs: list[str], **options: Any) -> str:
            nodes.append(helper.make_node(operation, inputs, [f"{operation}{len(nodes)}"], **options))
            return f"{operation}{len(nodes) - 1}"

        def constant(name: str, value: np.ndarray) -> str:
            constants.append(numpy_helper.from_array(value, name))
            return name

        if t is not None:
            kept = t.column >= 0
            dense = np.zeros((len(kept), len(self.labels)), np.float32)
            dense[kept] = W[:, t.column[kept]].T.toarray()
            coarse = kept & (np.abs(t.mean) > 1e-4 * 2**24 * t.scale)
            if dtype == "float32" and coarse.any():
                columns = ", ".join(t.term(int(k)) for k in np.flatnonzero(coarse)[:9])
                warnings.warn(f"float32 rounds {columns} by more than 1e-4 of a standard deviation: dtype='float64' does "
                              "not", stacklevel=2)
            rows = step("Sub", [step("Cast", [rows], to=TensorProto.DOUBLE), constant("mean", t.mean)])
            rows = step("Div", [rows, constant("scale", t.scale)])
            rows = step("Where", [step("IsNaN", [rows]), constant("zero", np.zeros(1)), rows])
        else:
            dense = np.zeros((self.width, len(self.labels)), np.float32)
            dense[self.features - 1] = W[:, : len(self.features)].T.toarray()
        bias = np.zeros(len(self.labels), np.float32)
        if W.shape[1] > len(self.features):
            bias = (self.bias * W[:, -1].toarray().ravel()).astype(np.float32)
        rows = step("Cast", [rows], to=TensorProto.FLOAT)
        margins = step("Add", [step("MatMul", [rows, constant("W", dense)]), constant("b", bias)])
        link = {"logistic": "Sigmoid", "softmax": "Softmax"}.get(self.form.get("link", ""), "Identity")
        nodes.append(helper.make_node(link, [margins], ["scores"]))
        names = cast(Any, [n.encode() for n in self.labels])
        constants.append(helper.make_tensor("names", TensorProto.STRING, [len(names)], names))
        nodes.append(helper.make_node("Gather", ["names", step("ArgMax", [margins], axis=1, keepdims=0)], ["label"]))
        given = TensorProto.FLOAT if dtype == "float32" else TensorProto.DOUBLE
        info = helper.make_tensor_value_info
        outputs = [info("label", TensorProto.STRING, ["rows"]), info("scores", TensorProto.FLOAT, ["rows", len(names)])]
        graph = helper.make_graph(nodes, "taxon", [info("X", given, ["rows", len(dense)])], outputs, constants)
        model = helper.make_model(graph, producer_name="taxon", opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        checker.check_model(model)
        save(model, os.fspath(path))

    def _not_linear(self) -> str:
        """Why no product with one matrix gives the scores; empty where one does."""
        if self.form.get("predictor", "") not in ("", "sums"):
            return f"models of {self.report.get('method')} follow paths"
        return f"models of {self.report.get('method')} average draws" if self.form.get("draws") else ""

    def weights(self) -> sp.csr_matrix:
        """Give the weights of the classes.

        Returns
        -------
        csr_matrix
            Classes x columns; the bias is the last column (if there is one). Column j is feature
            ``features[j]`` of the input. Where predictions follow paths (td, h-svm and such) they are
            those of the classes' own nodes.
        """
        if self.form.get("predictor") == "sums":
            above = sp.csr_matrix((np.ones(int((self.parent >= 0).sum())), (np.flatnonzero(self.parent >= 0), self.parent[self.parent >= 0])), shape=(len(self.parent),) * 2)
            way = up = sp.identity(len(self.parent), format="csr")[self.nodes]
            while way.nnz:
                way = way @ above
                up = up + way
            return (up @ self._delta).astype(np.float32).tocsr()
        if self._whole:
            return self._delta[self.nodes].astype(np.float32).tocsr()
        current = np.zeros(self._delta.shape[1])
        rows: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        undo: list[tuple[int, np.ndarray, np.ndarray]] = []  # of the path: node, columns, values before
        wanted = set(self.nodes.tolist())
        indptr, indices, data = self._delta.indptr, self._delta.indices, self._delta.data
        for n, p in enumerate(self.parent):
            while undo and undo[-1][0] != p:
                _, at, before = undo.pop()
                current[at] = before
            at = indices[indptr[n] : indptr[n + 1]]
            undo.append((n, at, current[at].copy()))
            current[at] = np.float32(current[at] + data[indptr[n] : indptr[n + 1]])
            if n in wanted:
                full = np.flatnonzero(current)
                rows[n] = full, current[full]
        parts = [rows[n] for n in self.nodes.tolist()]
        ends = np.cumsum([0] + [len(i) for i, _ in parts])
        return sp.csr_matrix(
            (np.concatenate([v for _, v in parts]).astype(np.float32), np.concatenate([i for i, _ in parts]), ends),
            shape=(len(parts), self._delta.shape[1]),
        )

    def hierarchy(self) -> Any:
        """Give the structure to networkx.

        Returns
        -------
        networkx.DiGraph
            From parents to children; of a class graph a ``networkx.Graph``.
        """
        need("networkx", "networkx")
        import networkx as nx

        graph = "graph" in self.manifest.get("options", {}) or bool(self.report) and len(self.parent) and (self.parent == -1).all()
        g = nx.Graph() if graph and self.edges else nx.DiGraph()
        g.add_nodes_from(self.labels)
        g.add_edges_from(self.edges)
        return g

    def path(self, label: str) -> list[str]:
        """Name the nodes on the way from the root to a class.

        Parameters
        ----------
        label : str
            The class.

        Returns
        -------
        list of str
            The class is the last.
        """
        n, out = int(self.nodes[self._find(label)]), []
        while n >= 0:
            if self.kind[n] == "node":
                out.append(self.name[n])
            elif self.kind[n] == "spawned" and (self.parent[n] < 0 or self.name[self.parent[n]] != self.name[n]):
                out.append(self.name[n])
            n = int(self.parent[n])
        return out[::-1]

    def explain(self, x: Any, label: str | None = None, top: int = 5, words: int = 5) -> dict[str, Any]:
        """Why a class has its score: what each level of its path adds, and by which features.

        Parameters
        ----------
        x : row or str
            One instance.
        label : str, optional
            The class to explain; the predicted one if left out.
        top : int
            How many of the best classes to list.
        words : int
            At most so many features for and against at each level.

        Returns
        -------
        dict
            ``label``, ``score``, ``levels`` (a list of ``name``, ``adds``, ``features``: pairs of name
            and contribution), ``best`` (pairs of class and score).
        """
        row = self.vectors([x] if isinstance(x, str) else x)
        if row.shape[0] != 1:
            raise ValueError(f"explain takes one instance, not {row.shape[0]}")
        scores, best = self._score(row)
        k = int(best[0]) if label is None else self._find(label)
        x1 = np.zeros(self._delta.shape[1])
        x1[row.indices] = row.data
        if self._delta.shape[1] > row.shape[1]:
            x1[-1] = self.bias
        n, levels = int(self.nodes[k]), []
        while n >= 0:
            d = self._delta[n]
            c = d.data * x1[d.indices]
            order = np.argsort(-c, kind="stable")
            chosen = [j for j in order[:words] if c[j] > 0] + [j for j in order[::-1][:words] if c[j] < 0]
            levels.append({"name": self.name[n], "kind": self.kind[n], "adds": float(c.sum()),
                           "features": [(self.feature_name(int(d.indices[j])), float(c[j])) for j in chosen]})
            n = -1 if self._whole and not self.form.get("predictor") else int(self.parent[n])
        ranked = np.argsort(-scores[0], kind="stable")[:top]
        return {"label": self.labels[k], "score": float(scores[0, k]), "levels": levels[::-1],
                "best": [(self.labels[j], float(scores[0, j])) for j in ranked]}

    def _find(self, label: str) -> int:
        try:
            return self.labels.index(label)
        except ValueError:
            raise ValueError(f"the model has no class {label!r}") from None

    def feature_name(self, column: int) -> str:
        """Name a column of the weights.

        Parameters
        ----------
        column : int
            From 0.

        Returns
        -------
        str
            The word, the name of a table's column in quotes, the feature's number in the input, or ``bias``.
        """
        if column >= len(self.features):
            return "bias"
        if self.words is None and self._table is not None:
            return self._table.term(int(self.features[column]) - 1)
        return self.words[column] if self.words is not None else str(int(self.features[column]))


class _Reader:
    """Reads the files of one model folder."""

    def __init__(self, path: Path, verify: bool) -> None:
        self.path, self.verify = path, verify
        text = (path / "manifest.json").read_bytes()
        try:
            self.manifest = json.loads(text)
        except ValueError as e:
            raise ValueError(f"{path}/manifest.json: damaged: {e}") from None
        if self.manifest.get("format") != "taxon-model":
            raise ValueError(f"{path}: not a model of taxon")
        if self.manifest.get("version") not in _VERSIONS:
            raise ValueError(f"{path}: version {self.manifest.get('version')} of the format is not known here: install a newer taxon")
        if verify:
            head = b'"checksum": "'
            at = text.index(head) + len(head)
            zeroed = text[:at] + b"0" * 64 + text[at + 64 :]
            if hashlib.sha256(zeroed).hexdigest() != text[at : at + 64].decode():
                raise ValueError(f"{path}/manifest.json: damaged: its checksum does not match")

    def file(self, name: str) -> bytes | None:
        entry = next((f for f in self.manifest["files"] if f["name"] == name), None)
        if entry is None:
            return None
        data = (self.path / name).read_bytes()
        if len(data) != entry["bytes"] or (self.verify and hashlib.sha256(data).hexdigest() != entry["sha256"]):
            raise ValueError(f"{self.path / name}: the file is damaged: its checksum does not match")
        return data

    def model(self) -> Model:
        m = Model()
        m.manifest = self.manifest
        form = m.form
        for key, known in (("weights", ("", "whole")), ("predictor", ("", "descent", "greedy", "sums", "nested", "paths")), ("link", ("", "logistic", "softmax")),
                           ("precision", ("", "children", "feature", "own"))):
            if form.get(key, "") not in known:
                raise ValueError(f"{self.path}: form: {key} {form[key]!r} is not known here: install a newer taxon")
        unknown = set(form) - {"weights", "predictor", "link", "precision", "draws"}
        if unknown:
            raise ValueError(f"{self.path}: form: {', '.join(sorted(unknown))}: not known here: install a newer taxon")
        self._structure(m)
        raw = self.file("features") or b""
        m.features = np.frombuffer(raw, "<u4", offset=12).astype(np.int64)
        m.width = int(m.features.max(initial=0))
        vocabulary = self.file("vocabulary")
        if vocabulary is not None:
            lines = vocabulary.decode().split("\n")[2:-1]
            m.words = [line.partition("\t")[2] for line in lines]
            idf = np.array([float(line.partition("\t")[0]) for line in lines])
            m._vectorizer = Vectorizer(m.words, idf, self.manifest.get("data", {}).get("words"))
        schema = self.manifest.get("data", {}).get("table")
        if schema and (schema.get("text") or schema.get("features")):
            m._table = Table(schema, m.features, m.words)
        elif schema:  # a matrix
            m.width = max(m.width, schema.get("matrix", 0))
        m.bias = float(np.float32(self.manifest["options"].get("bias", 0) or 0))
        width = len(m.features) + (m.bias > 0)
        m._whole = form.get("weights") == "whole" or bool(len(m.parent)) and bool((m.parent == -1).all())
        m._delta = self._packed(m, width) if self.manifest["version"] == 2 or "pruned" in self.manifest else self._shards(m, width)
        cutoffs = self.file("cutoffs.json")
        if cutoffs is not None:
            m.cutoffs = json.loads(cutoffs)
        calibration = self.file("calibration.json")
        if calibration is not None:
            m.calibration = json.loads(calibration)
        return m

    def _structure(self, m: Model) -> None:
        lines = iter((self.file("structure") or b"").decode().split("\n"))
        next(lines)
        count = int(next(lines).split("\t")[1])
        parent, label = np.empty(count, np.int32), np.empty(count, np.int64)
        m.terminal = np.empty(count, bool)
        for n in range(count):
            p, kind, role, lab, name = next(lines).split("\t")
            parent[n], label[n], m.terminal[n] = int(p), int(lab), role == "terminal"
            m.kind.append(kind)
            m.name.append(name_of(name))
        m.parent = parent
        names = next(lines).split("\t")[1]
        if names != "none":
            given = [name_of(next(lines)) for _ in range(int(names))]
            for _ in range(int(next(lines).split("\t")[1])):
                a, b = next(lines).split("\t")
                m.edges.append((given[int(a)], given[int(b)]))
        text = (self.file("labels") or b"").decode().split("\n")[2:-1]
        counts, all_names = zip(*((line.partition("\t")[0], name_of(line.partition("\t")[2])) for line in text)) if text else ((), ())
        has = np.flatnonzero((label >= 0) & m.terminal)
        m.nodes = has
        m.labels = [all_names[k] for k in label[has]]
        m.counts = [int(counts[k]) for k in label[has]]
        m._label = label[has]

    def _shards(self, m: Model, width: int) -> sp.csr_matrix:
        """Records as differences from the parent, in float64."""
        index: list[np.ndarray] = []
        data: list[np.ndarray] = []
        size = np.zeros(len(m.parent) + 1, np.int64)
        current = np.zeros(width)
        undo: list[tuple[int, np.ndarray, np.ndarray]] = []
        drawn: list[tuple[int, np.ndarray, np.ndarray]] = []  # of terminals
        for f in self.manifest["files"]:
            if not f["name"].startswith("weights-"):
                continue
            raw = self.file(f["name"]) or b""
            u, v = np.frombuffer(raw, "<u4"), np.frombuffer(raw, "<f4")
            at = 4
            for _ in range(f["nodes"]):
                n, k = int(u[at]), int(u[at + 1])
                columns, values = u[at + 2 : at + 2 + k], v[at + 2 + k : at + 2 + 2 * k].astype(np.float64)
                at += 2 + 2 * k
                if m.form.get("precision") or m.form.get("draws"):
                    means = columns < width
                    if m.form.get("draws") and m.terminal[n]:
                        drawn.append((n, columns[~means].astype(np.int64), values[~means]))
                    columns, values = columns[means], values[means]
                columns = columns.astype(np.int32)
                if not m._whole:
                    p = m.parent[n]
                    while undo and undo[-1][0] != p:
                        _, where, before = undo.pop()
                        current[where] = before
                    above = current[columns].copy()
                    undo.append((n, columns, above))
                    current[columns] = values
                    values = values - above
                index.append(columns)
                data.append(values)
                size[n + 1] = len(columns)
        if drawn:
            count = max((int(c[-1]) // width for _, c, _ in drawn if len(c)), default=0)
            m._draws = np.zeros((count, len(drawn), width))
            for t, (_, columns, values) in enumerate(drawn):
                m._draws[columns // width - 1, t, columns % width] = values
        return sp.csr_matrix((np.concatenate(data), np.concatenate(index), np.cumsum(size)), shape=(len(m.parent), width))

    def _packed(self, m: Model, width: int) -> sp.csr_matrix:
        columns, nodes, values = [], [], []
        for f in self.manifest["files"]:
            if not f["name"].startswith("packed-"):
                continue
            raw = self.file(f["name"]) or b""
            if raw[:8] != b"TXPACKED" or int.from_bytes(raw[8:12], "little") != 2:
                raise ValueError(f"{self.path / f['name']}: a packed shard of this version is not known here: install a newer taxon")
            first, k, size = (int.from_bytes(raw[i : i + 4], "little") for i in (12, 16, 20))
            entries = int.from_bytes(raw[24:32], "little")
            if size not in (1, 2, 4):
                raise ValueError(f"{self.path / f['name']}: values of {size} bytes are not known here: install a newer taxon")
            at = 32 + (2 * k if size == 1 else 0)
            value = np.frombuffer(raw, {1: "i1", 2: "<f2", 4: "<f4"}[size], count=entries, offset=at).astype(np.float32)
            numbers = _varints(np.frombuffer(raw, np.uint8, offset=at + size * entries), k + entries)
            counts, gaps = numbers[:k], numbers[k:]
            if size == 1:  # in steps of the column's scale, which is the upper half of a float32
                scale = (np.frombuffer(raw, "<u2", count=k, offset=32).astype("<u4") << 16).view("<f4")
                value = value * np.repeat(scale, counts)
            total = np.cumsum(gaps + 1) - 1  # a gap counts from the node after the entry before
            begin = np.concatenate(([0], np.cumsum(counts)))
            starts = np.concatenate(([0], total + 1))[begin[:-1]]
            nodes.append(total - np.repeat(starts, counts))
            columns.append(np.repeat(np.arange(first, first + k), counts))
            values.append(value.astype(np.float64))
        if not values:
            return sp.csr_matrix((len(m.parent), width))
        places = (np.concatenate(nodes), np.concatenate(columns))
        return sp.csr_matrix((np.concatenate(values), places), shape=(len(m.parent), width))


def _varints(raw: np.ndarray, count: int) -> np.ndarray:
    """Numbers of seven bits a byte, lowest first; the top bit is set on all but the last byte."""
    ends = np.flatnonzero(raw < 128)[:count]
    if len(ends) < count:
        raise ValueError("a packed shard is damaged: it ends too early")
    begins = np.concatenate(([0], ends[:-1] + 1)) if count else ends
    out = np.zeros(count, np.int64)
    for k in range(int((ends - begins).max(initial=-1)) + 1):
        has = begins + k <= ends
        out[has] |= (raw[begins[has] + k].astype(np.int64) & 127) << (7 * k)
    return out


def _load_export(path: Path) -> Model:
    """A matrix of ``taxon export`` as a flat model."""
    labels = path.with_name("labels.txt")
    if not labels.is_file():
        raise ValueError(f"{labels}: not there: it has the classes of {path.name}, a line a row")
    bias = 1.0
    if path.suffix == ".npz":
        W = sp.csr_matrix(sp.load_npz(path))
    else:
        raw = path.read_bytes()
        size = int.from_bytes(raw[:8], "little")
        head = json.loads(raw[8 : 8 + size])
        meta = head.pop("__metadata__", {})
        types = {"F32": "<f4", "I64": "<i8", "I32": "<i4", "U32": "<u4", "U64": "<u8"}
        t = {k: np.frombuffer(raw[8 + size + v["data_offsets"][0] : 8 + size + v["data_offsets"][1]], types[v["dtype"]]) for k, v in head.items()}
        shape = tuple(json.loads(meta["shape"])) if meta["shape"].startswith("[") else tuple(int(x) for x in meta["shape"].replace("x", ",").split(","))
        W = sp.csr_matrix((t["data"], t["indices"].astype(np.int64), t["indptr"].astype(np.int64)), shape=shape)
        bias = float(meta.get("bias", 1))
    m = Model()
    m.labels = [name_of(line) for line in labels.read_text(encoding="utf-8").split("\n")[:-1]]
    if len(m.labels) != W.shape[0]:
        raise ValueError(f"{labels}: {len(m.labels)} classes, and {path.name} has {W.shape[0]} rows")
    n = len(m.labels)
    m.manifest = {"options": {"bias": bias}, "report": {}, "data": {}}
    m.parent, m.kind, m.name = np.full(n, -1, np.int32), ["node"] * n, list(m.labels)
    m.terminal, m.nodes, m.counts = np.ones(n, bool), np.arange(n), [0] * n
    m.bias, m._whole = bias, True
    d = W.shape[1] - (bias > 0)
    m.features, m.width = np.arange(1, d + 1), d
    words, idf = path.with_name("features.txt"), path.with_name("idf.txt")
    if words.is_file() and idf.is_file():
        m.words = words.read_text(encoding="utf-8").split("\n")[:-1]
        known = np.array([float(v or 0) for v in idf.read_text().split("\n")[:-1]])
        if not len(m.words) == len(known) == d:
            raise ValueError(f"{words}: {len(m.words)} words, idf.txt has {len(known)}, and {path.name} has {d} columns of words")
        m._vectorizer = Vectorizer(m.words, known, json.loads(path.with_name("terms.json").read_text(encoding="utf-8")))
    table = path.with_name("table.json")
    if table.is_file():
        m._table = Table(json.loads(table.read_text(encoding="utf-8")), m.features, m.words)
    edges = path.with_name("edges.txt")
    if edges.is_file():
        name = r'("(?:[^"\\]|\\.)*"|\S+)'
        m.edges = [(name_of(a), name_of(b)) for a, b in re.findall(f"^{name} {name}$", edges.read_text(encoding="utf-8"), re.MULTILINE)]
    m._delta = W.astype(np.float64).tocsr()
    return m
