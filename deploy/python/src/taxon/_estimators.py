"""Estimators of scikit-learn's kind. Training is the binary's; scoring is _model's."""

from __future__ import annotations

import os
import sys
import warnings
from inspect import cleandoc
from pathlib import Path
from typing import Any, Iterable, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from ._binary import run, workspace
from ._cells import label_name
from ._data import LEAST_WEIGHT, MOST_WEIGHT, quote, structure_of, write_dataset, write_edges
from ._model import Model, load
from ._params import METHODS, OPTIONS, PROBABLE, FlatParameters, HierarchicalParameters, TextParameters
from ._targets import INDICATOR, LABELS, LEVELS, SETS, Targets, path_of, read

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # before scikit-learn 1.6

    def validate_data(estimator: Any, X: Any, **options: Any) -> Any:
        return estimator._validate_data(X, **options)


__all__ = ["HierarchicalClassifier", "TaxonClassifier", "TaxonTextClassifier"]

_C = TypeVar("_C", bound="_Classifier")
_LARGE = 1 << 24  # numbers; a larger coef_ is sparse


def _probabilities(self: "_Classifier") -> bool:
    """Whether there are probabilities: of an estimator that is not fitted yet, whether there will be."""
    if hasattr(self, "model_"):
        there, method = self.model_.has_probabilities, self.model_.report.get("method")
    else:
        there, method = self.method in PROBABLE, self.method
    if not there:
        raise AttributeError(f"models of {method} have no probabilities; methods that have them: {', '.join(PROBABLE)}")
    return True


class _Classifier(ClassifierMixin):
    """What the estimators share."""

    _text = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "_Classifier":
        """Train.

        Parameters
        ----------
        X : matrix of shape (n_samples, n_features), or list of str for TaxonTextClassifier
            Dense, sparse or a data frame.
        y : array-like or sparse matrix
            Labels; or an array of levels (label paths: they bring their hierarchy); or an indicator
            matrix (several labels a row); or lists: sets of labels or paths, as ``targets`` says.
            Also a column or table of pandas, polars or Arrow.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the losses of the rows: 0, or from 1e-15 to 1e15. A row of weight 0 is left out.

        Returns
        -------
        self
            The estimator, fitted.
        """
        X, targets, weight = self._inputs(X, y, sample_weight)
        progress = self.callback
        if progress is None and self.verbose:
            progress = lambda line: print(line, file=sys.stderr)  # noqa: E731
        with workspace() as folder:
            options, expected = self._options(folder, targets)
            data = self._data(folder, X, targets, weight)
            args = ["train", "--method", self.method, "--out", str(folder / "model"), *options, *data]
            try:
                report = run(args, progress=progress, expected=expected)
            except ValueError as e:  # the folder says nothing to who gave matrices
                raise ValueError(str(e).replace(f"{folder}/", "")) from None
            return self._fitted(load(folder / "model", verify=False), report, targets)

    def _inputs(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Targets, np.ndarray | None]:
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
        tree = all(getattr(self, name, "none") is None for name in ("hierarchy", "graph"))
        targets = Targets(y, getattr(self, "path_separator", " > "), self.targets, tree)
        if len(targets.begin) - 1 != n:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: [{n}, {len(targets.begin) - 1}]")
        weight, kept = None, np.ones(n, bool)
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X if not self._text else np.zeros((n, 1)), dtype=np.float64)
            if (weight < 0).any():
                raise ValueError("sample_weight holds a negative value")
            kept = weight > 0
            out = kept & ((weight < LEAST_WEIGHT) | (weight > MOST_WEIGHT))
            if out.any():
                raise ValueError(f"sample_weight holds {weight[out][0]:g}, in row {out.argmax()}: weights are 0, or from "
                                 f"{LEAST_WEIGHT:g} to {MOST_WEIGHT:g}: divide them by their mean, or make those that are "
                                 "too small 0")
        if targets.form == LABELS and len(np.unique(targets.index[kept])) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        return X, targets, weight

    def _fitted(self, model: Model, report: dict[str, Any], targets: Targets) -> "_Classifier":
        self.model_, self.report_ = model, report
        if not self._text:
            model.width = self.n_features_in_  # the last columns may have been zero in all rows
        self.n_iter_ = int(report.get("sweeps", 1))
        self.classes_ = targets.classes
        self._targets, self._sparse = targets.form, targets.sparse
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

    def _data(self, folder: Path, X: Any, targets: Targets, weight: np.ndarray | None) -> list[str]:
        write_dataset(folder / "data", X, targets.names, targets.begin, targets.index, weight)
        return ["--data", str(folder / "data")]

    def _options(self, folder: Path, targets: Targets, verb: str = "train") -> tuple[list[str], str | None]:
        """Flags of train, or of submit, which has those of this machine not; and the beginning of a warning to pass
        over."""
        args = []
        # A path of one level has no edge, nor has a root alone.
        known = set(targets.names if targets.form == LEVELS else ())
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
            edges = targets.edges if flag == "hierarchy" else []
            if given is not None:
                edges, names = structure_of(given, flag)
                known |= names
            if edges:
                write_edges(folder / flag, edges)
                args += [f"--{flag}", str(folder / flag)]
        if getattr(self, "dag", "graph") != "graph":
            args += ["--dag", self.dag]
        return args, "labels that are not in the " if known.issuperset(targets.names) else None

    def _rows(self, X: Any, reset: bool = False) -> Any:
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)

    def _scores(self, X: Any) -> np.ndarray:
        """Scores in the order of classes_."""
        scores = self.model_._score(self.model_.vectors(self._rows(X)))[0]
        out = np.full((len(scores), len(self.classes_)), -np.inf)
        out[:, self._column] = scores
        return out

    @property
    def coef_(self) -> Any:
        """The weights of the features, as ``decision_function`` is ``X @ coef_.T + intercept_``.

        An array of shape (n_classes, n_features), rows in the order of ``classes_``; of two classes one row, the
        second's weights less the first's. A csr_matrix where the array would have more than 2**24 numbers. Of
        TaxonTextClassifier the features are ``model_.words``. Missing (as ``hasattr`` tells) of methods
        whose predictions follow paths or average draws.
        """
        return self._linear()[0]

    @property
    def intercept_(self) -> np.ndarray:
        """The bias of the classes: shape (n_classes,), or (1,) where ``coef_`` has one row."""
        return self._linear()[1]

    def _linear(self) -> tuple[Any, np.ndarray]:
        check_is_fitted(self)
        m = self.model_
        if why := m._not_linear():
            raise AttributeError(f"{why}: no product with one matrix gives their scores, so there is no coef_")
        W, known, classes = m.weights().astype(np.float64), len(m.features), len(self.classes_)
        intercept = np.full(classes, -np.inf)  # of a class without a row
        intercept[self._column] = m.bias * W[:, known].toarray().ravel() if W.shape[1] > known else 0.0
        w = W[:, :known].tocoo()
        shape = (classes, known if self._text else self.n_features_in_)
        column = w.col if self._text else m.features[w.col] - 1
        coef = sp.csr_matrix((w.data, (self._column[w.row], column)), shape=shape)
        if self._targets == LABELS and classes == 2:
            coef, intercept = coef[1] - coef[0], intercept[1:] - intercept[:1]
        return coef if coef.shape[0] * coef.shape[1] > _LARGE else coef.toarray(), intercept

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
        scores = self._scores(X)
        if self._targets == LABELS and scores.shape[1] == 2:
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
        ndarray, csr_matrix or list
            Of one label a row the best class. Sets of paths (``h-svm``, ``h-rls``, ``hm3``) may end at
            inner nodes, which lists of labels name and an indicator has no column for.
        """
        check_is_fitted(self)
        if self._targets in (SETS, INDICATOR):
            sets = self.model_.predict_sets(self._rows(X))
            number = {name: k for k, name in zip(self._column, self.model_.labels)}
            if self._targets == SETS:  # a path may end at an inner node, which is no class
                classes = self.classes_.tolist()
                return [[classes[number[name]] if name in number else name for name in row] for row in sets]
            rows = [sorted(number[name] for name in row if name in number) for row in sets]
            ends = np.cumsum([0] + [len(row) for row in rows])
            index = np.array([k for row in rows for k in row], int)
            out = sp.csr_matrix((np.ones(len(index), int), index, ends), shape=(len(rows), len(self.classes_)))
            return out if self._sparse else out.toarray()
        best = self._column[self.model_._best(self.model_.vectors(self._rows(X)))]
        if self._targets == LEVELS:
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
        scores = self._scores(X)
        p = self.model_._probabilities(scores)
        if self._targets in (LABELS, LEVELS):
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
        if self._targets == LABELS:
            return float(super().score(X, read(y, form=LABELS)[1], sample_weight))
        said, truth = self.predict(X), read(y, form=self._targets)[1]
        n, rows = (v.shape[0] if sp.issparse(v) else len(v) for v in (truth, said))
        if n != rows:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: [{rows}, {n}]")
        if self._targets == LEVELS:
            right = [path_of(a) == path_of(b) for a, b in zip(said, truth)]
        elif self._targets == SETS:
            right = [{label_name(v) for v in a} == {label_name(v) for v in b} for a, b in zip(said, truth)]
        elif said.shape != truth.shape:
            raise ValueError(f"y has {truth.shape[1]} columns, and in fit it had {said.shape[1]}")
        else:
            right = (sp.csr_matrix(said, dtype=bool) != sp.csr_matrix(truth)).getnnz(axis=1) == 0
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
        return self.model_.explain(row, None if label is None else label_name(label), top, words)

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
coef_ : ndarray or csr_matrix of shape (n_classes, n_features)
    The weights, rows in the order of ``classes_``; of two classes one row.
intercept_ : ndarray of shape (n_classes,)
    The biases; of two classes one.
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

    def _data(self, folder: Path, X: list[str], targets: Targets, weight: np.ndarray | None) -> list[str]:
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
