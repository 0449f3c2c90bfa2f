"""Rows of tables, by the columns that a model remembers: docs/formats.md says how they are read."""

from __future__ import annotations

import json
import math
from typing import Any, Callable, Sequence

import numpy as np
import scipy.sparse as sp

from ._cells import is_list, number_of, text_of, values

__all__ = ["Table"]

def _numbers(v: Any) -> float | list[float]:
    """A cell as a number, or a list of them."""
    return [number_of(x) for x in values(v)] if is_list(v) else number_of(v)


class Table:
    """The columns of a model's training data, and how its numbers are scaled."""

    def __init__(self, schema: dict[str, Any], features: np.ndarray, words: Sequence[str] | None) -> None:
        self.text: list[str] = schema.get("text", [])
        self.names: list[str] = schema.get("features", [])
        self.lists = [w > 0 for w in schema.get("widths", [])]
        self.widths = [max(1, w) for w in schema.get("widths", [])]
        self.mean = np.asarray(schema.get("mean", []), np.float64)
        self.scale = np.asarray(schema.get("scale", []), np.float64)
        self.width = len(features)
        if words is None:
            self.column = np.full(int(sum(self.widths)), -1, np.int64)
            self.column[features - 1] = np.arange(len(features))
            return
        at: dict[tuple[str, int], int] = {}
        for c, term in enumerate(words):
            if term.startswith('"'):
                name, end = json.JSONDecoder().raw_decode(term)
                at[name, int(term[end:] or 1)] = c
        self.column = np.array([at.get((n, k + 1), -1) for n, w in zip(self.names, self.widths) for k in range(w)], np.int64)

    def term(self, k: int) -> str:
        """The name of a feature, from 0: the column's as a JSON string, in lists with the place from 1."""
        i = int(np.searchsorted(np.cumsum(self.widths), k, side="right"))
        place = k - sum(self.widths[:i]) + 1
        return json.dumps(self.names[i], ensure_ascii=False) + (f" {place}" if self.lists[i] else "")

    @staticmethod
    def holds(X: Any) -> bool:
        """Whether X is a data frame, or a list of dicts: rows with named columns."""
        return hasattr(X, "columns") or isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], dict)

    def cells(self, X: Any, name: str) -> list[Any]:
        """A column, from a data frame or a list of dicts."""
        if hasattr(X, "columns"):
            if name not in getattr(X, "column_names", X.columns):
                raise ValueError(f"no column {name!r}: the model was trained on it")
            if getattr(X[name], "ndim", 1) > 1:
                raise ValueError(f"several columns {name!r}: the model was trained on one")
            return values(X[name])
        return [row.get(name) for row in X]

    def texts(self, X: Any) -> list[str]:
        """The texts of the rows, columns joined by blanks."""
        said = [self._read(X, name, text_of) for name in self.text]
        return [" ".join(text for text in row if text) for row in zip(*said)]

    def _read(self, X: Any, name: str, read: Callable[[Any], Any]) -> list[Any]:
        """What a function gives of each cell of a column."""
        out = []
        for i, v in enumerate(self.cells(X, name)):
            try:
                out.append(read(v))
            except ValueError as err:
                raise ValueError(f"column {name!r}, row {i + 1}: it {err}") from None
        return out

    def numbers(self, X: Any) -> sp.csr_matrix:
        """The numbers of the rows in the model's columns and scale."""
        blocks = []
        for name, w, lists in zip(self.names, self.widths, self.lists):
            block = np.full((len(X), w), np.nan)
            for i, v in enumerate(self._read(X, name, _numbers)):
                if isinstance(v, list) and (not lists or len(v) != w):
                    want = f"a list of {w}" if lists else "a number"
                    raise ValueError(f"column {name!r}, row {i + 1}: a list of {len(v)} numbers, want {want}")
                if lists and isinstance(v, float) and not math.isnan(v):
                    raise ValueError(f"column {name!r}, row {i + 1}: a number, want a list of {w}")
                block[i] = v
            blocks.append(block)
        return self.scaled(np.hstack(blocks) if blocks else np.zeros((len(X), 0)))

    def scaled(self, X: np.ndarray) -> sp.csr_matrix:
        """Numbers as the table has them, a column a feature, in the model's columns and scale."""
        if X.shape[1] != len(self.column):
            raise ValueError(f"{X.shape[1]} columns of numbers, and the model was trained on {len(self.column)}: {', '.join(self.names)}")
        X = X.astype(np.float64)
        with np.errstate(over="ignore"):
            scaled = ((X - self.mean) / self.scale).astype(np.float32)
        for i, k in np.argwhere(np.isinf(scaled))[:1]:
            raise ValueError(f"column {self.term(int(k))}, row {i + 1}: {X[i, k]:g} is too large for float32, or not "
                             "finite")
        rows, at = np.nonzero(~np.isnan(scaled) & (self.column >= 0))
        return sp.csr_matrix((scaled[rows, at], (rows, self.column[at])), shape=(len(X), self.width))
