"""y as scikit-learn and tables bring it, in the binary's terms."""

from __future__ import annotations

import warnings
from typing import Any, Iterable

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from ._cells import is_missing, label_name

__all__ = ["INDICATOR", "LABELS", "LEVELS", "SETS", "Targets", "read"]

LABELS, INDICATOR, SETS, LEVELS = "labels", "indicator", "sets", "paths"


def read(y: Any, read_as: str = "auto", tree: bool = True, form: str | None = None) -> tuple[str, Any]:
    """Read y, whatever holds it.

    Parameters
    ----------
    y : array-like, sparse matrix, or a table or column of pandas, polars or Arrow
        The targets.
    read_as : str
        What lists of lists are: ``auto``, ``sets`` or ``paths``. ``paths`` also says what an array of two dimensions
        is.
    tree : bool
        Whether ``auto`` looks for paths among lists.
    form : str, optional
        The form that y must have, as it had in fit; found out if left out.

    Returns
    -------
    form : str
        LABELS, INDICATOR, SETS or LEVELS.
    y : ndarray or csr_matrix or list of list
        Of LABELS an array of one dimension, of INDICATOR a matrix of 0 and 1, of SETS and LEVELS lists.
    """
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None")
    y = _natural(y)
    if sp.issparse(y):
        found, y = INDICATOR, _indicator(y)
    elif isinstance(y, list):
        if any(_is_list(v) for row in y for v in row):
            raise ValueError("y has several paths a row: make each path one name, as 'animal > cat', and give the tree "
                             "as hierarchy=")
        if read_as == "auto" and form in (None, INDICATOR) and _lists_of_flags(y):
            found, y = INDICATOR, _indicator(np.array(y))
        elif form in (SETS, LEVELS):
            found = form
        else:
            found = LEVELS if read_as == "paths" or read_as == "auto" and tree and _is_tree(y) else SETS
    elif y.ndim == 1:
        found = LABELS
    elif y.ndim == 2:
        found = form if form in (INDICATOR, LEVELS) else LEVELS if read_as == "paths" else _matrix(y)
        y = _indicator(y) if found == INDICATOR else _lists(y.tolist())
    else:
        raise ValueError(f"y must have one or two dimensions, not {y.ndim}: y should be a 1d array")
    if form not in (None, found):
        raise ValueError(f"y is read as {found}, and fit's was read as {form}: give it in the same form")
    if found == SETS and any(is_missing(v) for row in y for v in row):
        raise ValueError("y holds None, NaN or an empty name in a set of labels")
    return found, y


def _natural(y: Any) -> Any:
    """y without what it came in: a sparse matrix; lists, if they are its rows or in its only column; else an array, of
    numbers where all are."""
    if getattr(y, "ndim", 0) == 2 and hasattr(y, "sparse"):  # a table of sparse columns
        y = y.sparse.to_coo()
    if sp.issparse(y):
        return y
    if isinstance(y, (list, tuple)) and any(_is_list(row) for row in y):
        return _lists(y)
    a = np.asarray(y)
    table = hasattr(y, "columns")
    if a.dtype == object or a.ndim > 1 and not table or a.dtype.kind == "f" and np.isnan(a).any():
        cells = _cells(y)  # NumPy makes lists arrays, and whole numbers beside a null floats
        if cells is not None:
            if not table and any(_is_list(v) for v in cells):
                return _lists(cells)
            a = np.empty(a.shape, object)
            a[:] = cells
    if a.ndim == 2 and a.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected", DataConversionWarning, stacklevel=6)
        a = a.ravel()
    if a.dtype != object:
        return a
    values = a.ravel().tolist()
    if a.ndim == 1 and any(_is_list(v) for v in values):
        return _lists(values)
    if values and all(isinstance(v, (int, float, np.number, np.bool_)) for v in values):
        return np.array(values).reshape(a.shape)
    return a


def _cells(y: Any) -> list[Any] | None:
    """The rows or values of a column or table of polars or Arrow, or of a column of pandas, as Python has them."""
    for name in ("rows", "to_pylist", "to_list"):
        if callable(way := getattr(y, name, None)):
            cells = list(way())
            return [tuple(row.values()) for row in cells] if name == "to_pylist" and hasattr(y, "columns") else cells
    return None


def _is_list(v: Any) -> bool:
    plain = isinstance(v, (list, tuple, set, frozenset))
    return plain or isinstance(v, np.ndarray) and v.ndim > 0 or hasattr(v, "to_list")


def _lists(rows: Iterable[Any]) -> list[Any]:
    """Lists, and sets, of Python's own values. A missing list is an empty one."""
    out: list[Any] = []
    for i, row in enumerate(rows):
        if not _is_list(row):
            if not is_missing(row):
                raise ValueError(f"y holds lists, and {row!r} in row {i}: give each row a list")
            row = []
        values = (v.item() if isinstance(v, (np.number, np.bool_, np.str_)) else v for v in row)
        out.append(set(values) if isinstance(row, (set, frozenset)) else list(values))
    return out


def _lists_of_flags(y: list[list[Any]]) -> bool:
    """Whether lists are the rows of a matrix of 0 and 1."""
    width = len(y[0]) if y else 0
    flags = (all(isinstance(v, (int, float)) and v in (0, 1) for v in row) for row in y)
    return width > 1 and all(len(row) == width for row in y) and all(flags)


def _matrix(y: np.ndarray) -> str:
    """What a dense matrix is: type_of_target says it of numbers. Missing numbers end paths."""
    if y.dtype.kind not in "biuf":
        there = [v for v in y.ravel().tolist() if not is_missing(v)]
        if not all(isinstance(v, (int, float)) for v in there):
            return LEVELS
        numbers, missing = np.array(there), len(there) < y.size
    else:
        gone = np.isnan(y) if y.dtype.kind == "f" else np.zeros(y.shape, bool)
        numbers, missing = y[~gone], bool(gone.any())
    if not numbers.size:
        return LEVELS
    # Two equal columns of what is there: of one column type_of_target would not say that it is an indicator.
    kind, values = type_of_target(np.column_stack([numbers, numbers])), set(np.unique(numbers).tolist())
    if kind.startswith("continuous"):
        raise ValueError("Unknown label type: continuous: y is a matrix of numbers that are not whole")
    if kind != "multilabel-indicator" or not values <= {-1, 0, 1}:
        return LEVELS
    if missing or -1 in values:
        held = ", ".join(str(int(v)) for v in sorted(values)) + (" with missing values" if missing else "")
        raise ValueError(f"y is a matrix of {held}: an indicator holds 0 and 1 alone; targets='paths' reads levels")
    return INDICATOR


def _indicator(y: Any) -> Any:
    """A matrix of 0 and 1, sparse as csr_matrix where it was sparse."""
    if not sp.issparse(y):
        if y.dtype == object or not np.isin(y, (0, 1)).all():
            raise ValueError("y is no indicator as it was in fit: it holds something other than 0 and 1")
        return y.astype(bool)
    if y.ndim != 2:
        raise ValueError("y is sparse, and has one dimension: give an array of labels, or a matrix with a column a "
                         "class")
    y = sp.csr_matrix(y, copy=True)
    y.sum_duplicates()
    other = y.data[~np.isin(y.data, (0, 1))]
    if len(other):
        raise ValueError(f"y is sparse, and holds {other[0]}: an indicator holds 0 and 1 alone")
    y.data = y.data.astype(bool)
    y.eliminate_zeros()
    return y


def _is_tree(rows: list[list[Any]]) -> bool:
    """Whether lists read as paths are those of a tree: some lead below the top, and each name has
    one parent."""
    parent: dict[Any, Any] = {}
    for row in rows:
        if isinstance(row, set) or not row:
            return False
        above = None
        for v in row:
            if is_missing(v):
                break
            if parent.setdefault(v, above) != above or v == above:
                return False
            above = v
    return any(p is not None for p in parent.values())


class Targets:
    """y in the binary's terms: names, and for each row numbers of them."""

    def __init__(self, y: Any, separator: str, read_as: str, tree: bool = True) -> None:
        self.edges: list[tuple[str, str]] = []
        self.separator = separator
        self.form, y = read(y, read_as, tree)
        self.sparse = sp.issparse(y)
        {LABELS: self._labels, INDICATOR: self._indicator, SETS: self._sets, LEVELS: self._paths}[self.form](y)

    def _take(self, names: list[str], begin: np.ndarray, index: np.ndarray) -> None:
        self.names, self.begin, self.index = names, begin, index
        if len(set(names)) < len(names):
            raise ValueError("two classes of y have the same name as text")
        if "" in names:
            raise ValueError("a class of y has an empty name")

    def _labels(self, y: np.ndarray) -> None:
        if y.dtype == object and any(is_missing(v) and not isinstance(v, str) for v in y):
            raise ValueError("y holds None or NaN")
        if y.dtype == object and len({isinstance(v, str) for v in y}) > 1:
            raise ValueError("y holds labels of several types: make them all text")
        check_classification_targets(y)
        self.classes, index = np.unique(y, return_inverse=True)
        self._take([label_name(c) for c in self.classes], np.arange(len(y) + 1), index)

    def _indicator(self, y: Any) -> None:
        self.classes = np.arange(y.shape[1])
        y = sp.csr_matrix(y)
        self._take([str(c) for c in self.classes], y.indptr, y.indices)

    def _sets(self, y: list[list[Any]]) -> None:
        flat = {v for row in y for v in row}
        if not flat:
            raise ValueError("y holds no label")
        values = sorted(flat, key=lambda v: (str(type(v)), v))
        self.classes = np.array(values)
        if self.classes.ndim != 1 or self.classes.tolist() != values:  # of several types
            self.classes = np.empty(len(values), object)
            self.classes[:] = values
        number = {v: k for k, v in enumerate(values)}
        rows = [sorted({number[v] for v in row}) for row in y]
        self._take([label_name(c) for c in values], np.concatenate(([0], np.cumsum([len(r) for r in rows]))),
                   np.array([k for r in rows for k in r], np.int64))

    def _paths(self, y: list[list[Any]]) -> None:
        """Levels, as HiClass has them: a class is its whole path; an empty level ends it."""
        self.levels = max((len(row) for row in y), default=0)
        paths, edges = [], set()
        given: dict[tuple[str, ...], list[Any]] = {}
        for row in y:
            path = path_of(row)
            if not path:
                raise ValueError("y holds a row without a label: the first level is empty")
            paths.append(path)
            given[path] = row[: len(path)]
            for k in range(1, len(path)):
                edges.add((path[:k], path[: k + 1]))
        unique = sorted(set(paths))
        number = {p: k for k, p in enumerate(unique)}
        self.paths = [given[p] for p in unique]
        self.classes = np.empty(len(unique), object)
        self.classes[:] = [self.separator.join(p) for p in unique]
        self.edges = [(self.separator.join(a), self.separator.join(b)) for a, b in sorted(edges)]
        self._take(self.classes.tolist(), np.arange(len(paths) + 1), np.array([number[p] for p in paths]))


def path_of(row: Iterable[Any]) -> tuple[str, ...]:
    """The names of a row of levels, up to the first empty one."""
    path: list[str] = []
    for v in row:
        if is_missing(v):
            break
        path.append(label_name(v))
    return tuple(path)
