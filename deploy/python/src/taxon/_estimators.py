"""Estimators of scikit-learn's kind. Training is the binary's; scoring is _model's."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from inspect import cleandoc
from pathlib import Path
from typing import Any, Iterable, Sequence, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ._binary import run
from ._data import edges_of, quote, write_dataset, write_edges
from ._model import Model, load
from ._params import METHODS, OPTIONS, FlatParameters, HierarchicalParameters, TextParameters

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # before scikit-learn 1.6

    def validate_data(estimator: Any, X: Any, **options: Any) -> Any:
        return estimator._validate_data(X, **options)


__all__ = ["HierarchicalClassifier", "TaxonClassifier", "TaxonTextClassifier"]

_C = TypeVar("_C", bound="_Classifier")
_LEVELS, _SETS, _INDICATOR, _LABELS = "paths", "sets", "indicator", "labels"


class _Targets:
    """y in the binary's terms: names, and for each row numbers of them."""

    def __init__(self, y: Any, separator: str, read_as: str) -> None:
        self.edges: list[tuple[str, str]] = []
        self.separator = separator
        if y is None:
            raise ValueError("This estimator requires y to be passed, but the target y is None")
        if _is_lists(y):
            if any(isinstance(v, (list, tuple, set, frozenset)) for row in y for v in row):
                raise ValueError("y has several paths a row: make each path one name, as 'animal > cat', and give the tree as hierarchy=")
            if read_as == "paths" or read_as == "auto" and _is_tree(y):
                self._paths(_levels(y))
            else:
                self._sets(y)
            return
        y = np.asarray(y.toarray() if sp.issparse(y) else y)
        if y.ndim == 2 and y.shape[1] == 1:
            from sklearn.exceptions import DataConversionWarning

            warnings.warn("A column-vector y was passed when a 1d array was expected", DataConversionWarning, stacklevel=4)
            y = y.ravel()
        if y.ndim == 1:
            check_classification_targets(y)
            if y.dtype == object and any(v is None or v != v for v in y):
                raise ValueError("y holds None or NaN")
            self.form = _LABELS
            self.classes, index = np.unique(y, return_inverse=True)
            self._take([_name(c) for c in self.classes.tolist()], np.arange(len(y) + 1), index)
        elif y.ndim == 2 and y.dtype.kind in "bui" and set(np.unique(y)) <= {0, 1}:
            self.form = _INDICATOR
            self.classes = np.arange(y.shape[1])
            rows, index = np.nonzero(y)
            self._take([str(c) for c in self.classes], np.concatenate(([0], np.cumsum((y != 0).sum(axis=1)))), index)
        elif y.ndim == 2:
            self._paths(y)
        else:
            raise ValueError(f"y must have one or two dimensions, not {y.ndim}: y should be a 1d array")

    def _take(self, names: list[str], begin: np.ndarray, index: np.ndarray) -> None:
        self.names, self.begin, self.index = names, begin, index
        if len(set(names)) < len(names):
            raise ValueError("two classes of y have the same name as text")
        if "" in names:
            raise ValueError("a class of y has an empty name")

    def _sets(self, y: Sequence[Iterable[Any]]) -> None:
        self.form = _SETS
        flat = [v for row in y for v in row]
        if not flat:
            raise ValueError("y holds no label")
        if any(_is_empty(v) for v in flat):
            raise ValueError("y holds None, NaN or an empty name in a set of labels")
        self.classes = np.array(sorted(set(flat), key=lambda v: (str(type(v)), v)))
        number = {v: k for k, v in enumerate(self.classes.tolist())}
        rows = [sorted({number[v] for v in row}) for row in y]
        self._take([_name(c) for c in self.classes.tolist()], np.concatenate(([0], np.cumsum([len(r) for r in rows]))),
                   np.array([k for r in rows for k in r], np.int64))

    def _paths(self, y: np.ndarray) -> None:
        """An array of levels, as HiClass has it: a class is its whole path; an empty level ends it."""
        self.form = _LEVELS
        self.levels = y.shape[1]
        paths, edges = [], set()
        given: dict[tuple[str, ...], list[Any]] = {}
        for row in y.tolist():
            path: list[str] = []
            for v in row:
                if _is_empty(v):
                    break
                path.append(_name(v))
            if not path:
                raise ValueError("y holds a row without a label: the first level is empty")
            paths.append(tuple(path))
            given[paths[-1]] = row[: len(path)]
            for k in range(1, len(path)):
                edges.add((tuple(path[:k]), tuple(path[: k + 1])))
        unique = sorted(set(paths))
        number = {p: k for k, p in enumerate(unique)}
        self.paths = [given[p] for p in unique]
        self.classes = np.empty(len(unique), object)
        self.classes[:] = [self.separator.join(p) for p in unique]
        self.edges = [(self.separator.join(a), self.separator.join(b)) for a, b in sorted(edges)]
        self._take(self.classes.tolist(), np.arange(len(paths) + 1), np.array([number[p] for p in paths]))


def _is_lists(y: Any) -> bool:
    return isinstance(y, (list, tuple)) and len(y) > 0 and all(isinstance(v, (list, tuple, set, frozenset)) for v in y)


def _is_empty(v: Any) -> bool:
    if isinstance(v, str):
        return v == ""
    return v is None or type(v).__name__ in ("NAType", "NaTType") or bool(v != v)


def _name(c: Any) -> str:
    """A class as text. Whole numbers that a table made floats are whole again."""
    return str(int(c)) if isinstance(c, float) and c.is_integer() else str(c)


def _is_tree(rows: Sequence[Iterable[Any]]) -> bool:
    """Whether lists read as paths are those of a tree: some lead below the top, and each name has
    one parent."""
    parent: dict[Any, Any] = {}
    for row in rows:
        if not isinstance(row, (list, tuple)) or not row:
            return False
        above = None
        for v in row:
            if _is_empty(v):
                break
            if parent.setdefault(v, above) != above or v == above:
                return False
            above = v
    return any(p is not None for p in parent.values())


def _levels(y: Any) -> np.ndarray:
    """Label paths as an array, filled up with empty levels."""
    if not _is_lists(y):
        return np.asarray(y)
    out = np.full((len(y), max(len(row) for row in y)), "", dtype=object)
    for i, row in enumerate(y):
        out[i, : len(row)] = row
    return out


def _probabilities(self: "_Classifier") -> bool:
    """Whether there are probabilities: of an estimator that is not fitted yet, whether there will be."""
    if hasattr(self, "model_"):
        there, method = self.model_.has_probabilities, self.model_.report.get("method")
    else:
        there, method = self.method in _PROBABLE, self.method
    if not there:
        raise AttributeError(f"models of {method} have no probabilities; methods that have them: {', '.join(_PROBABLE)}")
    return True


_PROBABLE = ("rr-lr", "blr", "mlr", "rr-mlr", "corrmnl", "hblr-m1", "hblr-m2", "hblr-m3")


class _Classifier(ClassifierMixin):
    """What the estimators share."""

    _text = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "_Classifier":
        """Train.

        Parameters
        ----------
        X : matrix of shape (n_samples, n_features), or list of str for TaxonTextClassifier
            Dense, sparse or a data frame.
        y : array-like
            Labels; or an array of levels (label paths: they bring their hierarchy); or an indicator
            matrix (several labels a row); or a list of lists: sets of labels or paths, as ``targets`` says.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the losses of the rows, 0 or more. A row of weight 0 is left out.

        Returns
        -------
        self
            The estimator, fitted.
        """
        X, targets, weight = self._inputs(X, y, sample_weight)
        progress = self.callback
        if progress is None and self.verbose:
            progress = lambda line: print(line, file=sys.stderr)  # noqa: E731
        with tempfile.TemporaryDirectory(prefix="taxon-") as name:
            folder = Path(name)
            args = ["train", "--method", self.method, "--out", str(folder / "model"), *self._data(folder, X, targets, weight), *self._options(folder, targets)]
            try:
                # A path of one level has no edge.
                report = run(args, progress=progress, expected="labels that are not in the structure" if targets.form == _LEVELS else None)
            except ValueError as e:  # the folder says nothing to who gave matrices
                raise ValueError(str(e).replace(f"{folder}/", "")) from None
            return self._fitted(load(folder / "model", verify=False), report, targets)

    def _inputs(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, _Targets, np.ndarray | None]:
        """X, y and the weights, checked."""
        if self.method not in METHODS:
            raise ValueError(f"method {self.method!r}: use one of {', '.join(METHODS)}")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback {self.callback!r}: give a function that takes a line")
        if self.n_jobs is not None and (not isinstance(self.n_jobs, (int, np.integer)) or self.n_jobs == 0):
            raise ValueError(f"n_jobs {self.n_jobs!r}: give a number of threads, or -1 for all cores")
        X = self._rows(X, reset=True)
        n = len(X) if self._text else X.shape[0]
        if self.targets not in ("auto", "paths", "sets"):
            raise ValueError(f"targets {self.targets!r}: use auto, paths or sets")
        read_as = self.targets
        if read_as == "auto" and any(getattr(self, name, "sets") is not None for name in ("hierarchy", "graph")):
            read_as = "sets"
        targets = _Targets(y, getattr(self, "path_separator", " > "), read_as)
        if len(targets.begin) - 1 != n:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: [{n}, {len(targets.begin) - 1}]")
        weight, kept = None, np.ones(n, bool)
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X if not self._text else np.zeros((n, 1)), dtype=np.float64)
            if (weight < 0).any():
                raise ValueError("sample_weight holds a negative value")
            kept = weight > 0
        if targets.form == _LABELS and len(np.unique(targets.index[kept])) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        return X, targets, weight

    def _fitted(self, model: Model, report: dict[str, Any], targets: _Targets) -> "_Classifier":
        self.model_, self.report_ = model, report
        self.n_iter_ = int(report.get("sweeps", 1))
        self.classes_ = targets.classes
        self._targets = targets.form
        self._paths: list[list[str]] = getattr(targets, "paths", [])
        self._depth = getattr(targets, "levels", 0)
        position = {name: k for k, name in enumerate(targets.names)}
        self._column = np.array([position[name] for name in model.labels])
        why, gap = report.get("stopped_by"), report.get("gap")
        if why in ("max_sweeps", "max_time"):
            warnings.warn(f"stopped by {why} before the tolerance asked for: raise {why}", ConvergenceWarning, stacklevel=3)
        elif why == "stationary" and gap is not None and gap > self.gap:
            warnings.warn(f"the gap stopped falling at {gap:.2g}: scale rows to unit length or lower C to reach a lower one", ConvergenceWarning, stacklevel=3)
        return self

    def _data(self, folder: Path, X: Any, targets: _Targets, weight: np.ndarray | None) -> list[str]:
        write_dataset(folder / "data", X, targets.names, targets.begin, targets.index, weight)
        return ["--data", str(folder / "data")]

    def _options(self, folder: Path, targets: _Targets, verb: str = "train") -> list[str]:
        """Flags of train, or of submit, which has those of this machine not."""
        args = []
        for option, (name, default) in OPTIONS.items():
            value = getattr(self, name)
            if value is not None and value != default:
                args += [f"--{option}", str(value).lower() if isinstance(value, bool) else str(value)]
        if self.random_state is not None:
            seed = self.random_state
            args += ["--seed", str(seed if isinstance(seed, (int, np.integer)) else check_random_state(seed).randint(2**31 - 1))]
        if verb == "train":
            if self.n_jobs is not None and self.n_jobs != -1:  # -2: all cores but one
                args += ["--threads", str(self.n_jobs if self.n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + self.n_jobs))]
            for flag in ("memory", "cutoff"):
                value = getattr(self, flag)
                if value is not None and value != "auto":
                    args += [f"--{flag}", str(value)]
        for flag in ("hierarchy", "graph"):
            given = getattr(self, flag, None)
            if isinstance(given, str) and given == "learned":
                args += ["--hierarchy", "learned"]
                continue
            edges = edges_of(given, flag) if given is not None else targets.edges if flag == "hierarchy" else []
            if edges:
                write_edges(folder / flag, edges)
                args += [f"--{flag}", str(folder / flag)]
        if getattr(self, "dag", "graph") != "graph":
            args += ["--dag", self.dag]
        return args

    def _rows(self, X: Any, reset: bool = False) -> Any:
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)

    def _scores(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Scores in the order of classes_, and the class of each row."""
        X = self._rows(X)
        scores, best = self.model_._score(self.model_.vectors(X))
        out = np.full((len(scores), len(self.classes_)), -np.inf)
        out[:, self._column] = scores
        return out, self._column[best]

    def decision_function(self, X: Any) -> np.ndarray:
        """Score the classes, in the order of ``classes_``.

        Parameters
        ----------
        X : matrix of shape (n_samples, n_features), or list of str for TaxonTextClassifier
            Dense, sparse or a data frame.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            Of two classes the second's score less the first's. A class without a row of its own (all
            of weight 0) has -inf.
        """
        check_is_fitted(self)
        scores, _ = self._scores(X)
        if self._targets == _LABELS and scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores

    def predict(self, X: Any) -> Any:
        """Predict labels, in the form in which y was given to fit.

        Parameters
        ----------
        X : matrix of shape (n_samples, n_features), or list of str for TaxonTextClassifier
            Dense, sparse or a data frame.

        Returns
        -------
        ndarray or list
            Of one label a row the best class. Sets of paths (``h-svm``, ``h-rls``, ``hm3``) may end at
            inner nodes, which lists of labels name and an indicator has no column for.
        """
        check_is_fitted(self)
        if self._targets in (_SETS, _INDICATOR):
            sets = self.model_.predict_sets(self._rows(X))
            number = {name: k for k, name in zip(self._column, self.model_.labels)}
            if self._targets == _SETS:  # a path may end at an inner node, which is no class
                classes = self.classes_.tolist()
                return [[classes[number[name]] if name in number else name for name in row] for row in sets]
            out = np.zeros((len(sets), len(self.classes_)), int)
            for i, row in enumerate(sets):
                out[i, [number[name] for name in row if name in number]] = 1
            return out
        _, best = self._scores(X)
        if self._targets == _LEVELS:
            out = np.full((len(best), self._depth), "", dtype=object)
            for i, k in enumerate(best):
                out[i, : len(self._paths[k])] = self._paths[k]
            whole = all(isinstance(v, (int, float)) for path in self._paths for v in path) and min(map(len, self._paths)) == self._depth
            return np.array(out.tolist()) if whole else out
        return self.classes_[best]

    @available_if(_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the classes probabilities.

        Parameters
        ----------
        X : matrix of shape (n_samples, n_features), or list of str for TaxonTextClassifier
            Dense, sparse or a data frame.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Where each row has one label they sum to 1; binary models' are divided by their sum, as
            ``taxon eval`` does.
        """
        check_is_fitted(self)
        scores, _ = self._scores(X)
        p = self.model_._probabilities(scores)
        if self._targets in (_LABELS, _LEVELS):
            total = p.sum(axis=1, keepdims=True)
            p = np.divide(p, total, out=np.full_like(p, 1 / p.shape[1]), where=total > 0)
        return p

    @available_if(_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Take the logarithms of :meth:`predict_proba`.

        Parameters
        ----------
        X : matrix of shape (n_samples, n_features), or list of str for TaxonTextClassifier
            Dense, sparse or a data frame.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms; -inf of 0.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Measure the share of rows whose label, path or set of labels is right.

        Parameters
        ----------
        X : matrix of shape (n_samples, n_features), or list of str for TaxonTextClassifier
            Dense, sparse or a data frame.
        y : array-like
            The truth, in the form in which y was given to fit.
        sample_weight : array-like of shape (n_samples,), optional
            What each row counts.

        Returns
        -------
        float
            From 0 to 1.
        """
        check_is_fitted(self)
        if self._targets == _LABELS:
            return float(super().score(X, y, sample_weight))
        said = self.predict(X)
        if (n := y.shape[0] if hasattr(y, "shape") else len(y)) != len(said):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: [{len(said)}, {n}]")
        if self._targets == _LEVELS:
            truth, said = ([[_name(v) for v in row if not _is_empty(v)] for row in part.tolist()] for part in (_levels(y), said))
            right = [a == b for a, b in zip(said, truth)]
        elif self._targets == _SETS:
            right = [set(a) == set(b) for a, b in zip(said, y)]
        else:
            right = (said == np.asarray(y.toarray() if sp.issparse(y) else y)).all(axis=1)
        return float(np.average(right, weights=sample_weight))

    def explain(self, x: Any, label: Any = None, top: int = 5, words: int = 5) -> dict[str, Any]:
        """Take the score of one row's class apart.

        Parameters
        ----------
        x : row or str
            One instance.
        label : optional
            The class to explain; the predicted one if left out.
        top, words : int
            How many of the best classes, and of the features for and against at each level, to list.

        Returns
        -------
        dict
            As :meth:`taxon.Model.explain` gives it.
        """
        check_is_fitted(self)
        row = x if self._text else self._rows(np.atleast_2d(x) if not sp.issparse(x) else x)
        return self.model_.explain(row, None if label is None else _name(label), top, words)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._text
        if self._text:
            tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags

    def _more_tags(self) -> dict[str, Any]:  # before scikit-learn 1.6
        return {"X_types": ["string"] if self._text else ["2darray", "sparse"]}


_ATTRIBUTES = """Attributes
----------
classes_ : ndarray
    The classes; of label paths, the paths joined by ``path_separator``.
model_ : taxon.Model
    The model: its scores, weights and hierarchy.
report_ : dict
    The figures of the training: ``objective``, ``dual``, ``gap``, ``stopped_by``, ``seconds``, ...
n_iter_ : int
    Sweeps."""


def _documented(cls: type[_C]) -> type[_C]:
    """The class's text with the parameters that the binary's options give, and the attributes."""
    about, examples = cleandoc(cls.__doc__ or "").split("\n\nExamples\n")
    parameters = cleandoc(cls.__bases__[1].__doc__ or "").partition("\n\n")[2]
    cls.__doc__ = f"{about}\n\n{parameters}\n\n{_ATTRIBUTES}\n\nExamples\n{examples}\n"
    return cls


@_documented
class HierarchicalClassifier(_Classifier, HierarchicalParameters):
    """Classifiers of a class hierarchy or graph, trained jointly.

    By recursive regularisation, or by any other method of taxon.

    Examples
    --------
    >>> import numpy as np
    >>> from taxon import HierarchicalClassifier
    >>> clf = HierarchicalClassifier(hierarchy=[("animal", "cat"), ("animal", "dog"), ("plant", "oak")])
    >>> clf.fit(np.eye(3), ["cat", "dog", "oak"]).predict(np.eye(3)).tolist()
    ['cat', 'dog', 'oak']
    """


@_documented
class TaxonClassifier(_Classifier, FlatParameters):
    """Flat classifiers: the same without a hierarchy.

    Examples
    --------
    >>> import numpy as np
    >>> from taxon import TaxonClassifier
    >>> TaxonClassifier(method="mlr").fit(np.eye(3), [3, 1, 2]).predict(np.eye(3)).tolist()
    [3, 1, 2]
    """


@_documented
class TaxonTextClassifier(_Classifier, TextParameters):
    """Classifiers of texts: X is a list of str.

    Words and their weights are the binary's.

    Examples
    --------
    >>> from taxon import TaxonTextClassifier
    >>> clf = TaxonTextClassifier(min_df=1).fit(["a small dog", "an old oak"], ["animal", "plant"])
    >>> clf.predict(["the dog"]).tolist()
    ['animal']
    """

    _text = True

    def _rows(self, X: Any, reset: bool = False) -> list[str]:
        if isinstance(X, (str, bytes)) or not isinstance(X, Iterable) or getattr(X, "ndim", 1) != 1:
            raise ValueError(f"X is {'one text' if isinstance(X, (str, bytes)) else type(X).__name__}: give a list of texts, or one column of a table")
        texts = list(X)
        if not texts:
            raise ValueError("X holds no texts: 0 samples")
        if not all(isinstance(t, str) for t in texts):
            raise ValueError("X must hold texts (str)")
        return texts

    def _data(self, folder: Path, X: list[str], targets: _Targets, weight: np.ndarray | None) -> list[str]:
        names = [quote(n) for n in targets.names]
        with open(folder / "data.txt", "w", encoding="utf-8") as f:
            for i, text in enumerate(X):
                row = targets.index[targets.begin[i] : targets.begin[i + 1]]
                f.write(",".join(names[k] for k in row) + "\t" + " ".join(text.split()) + "\n")
        args = ["--text", "--data", str(folder / "data.txt")]
        if self.ngrams != 1:
            args += ["--ngrams", str(self.ngrams)]
        if isinstance(self.stop_words, str):
            if self.stop_words != "english":
                raise ValueError(f"stop_words {self.stop_words!r}: english, or a list of words")
            args += ["--stop-words", self.stop_words]
        elif self.stop_words is not None:
            (folder / "stop.txt").write_text("".join(w + "\n" for w in self.stop_words), encoding="utf-8")
            args += ["--stop-words", str(folder / "stop.txt")]
        for flag, value, default in (("min-df", self.min_df, 2), ("max-df", self.max_df, 1.0)):
            if value != default:
                args += [f"--{flag}", str(value)]
        if weight is not None:
            (folder / "weights.txt").write_text("".join(f"{w!r}\n" for w in weight.tolist()))
            args += ["--instance-weights", str(folder / "weights.txt")]
        return args
