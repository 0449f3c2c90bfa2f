"""Rows of tables, by the columns that a model remembers: docs/formats.md says how they are read."""

from __future__ import annotations

import json
import math
from typing import Any, Sequence

import numpy as np
import scipy.sparse as sp

__all__ = ["Table"]

_MISSING = ("", "na", "nan", "null", "none")
_WORDS = {"true": 1.0, "false": 0.0}


def _missing(v: Any) -> bool:
    return v is None or isinstance(v, (float, np.floating)) and math.isnan(v)


def _number(v: Any) -> float:
    """A cell as a number; NaN where it is missing."""
    if isinstance(v, str):
        word = v.strip().lower()
        return math.nan if word in _MISSING else _WORDS.get(word) if word in _WORDS else float(word)  # type: ignore[return-value]
    return math.nan if _missing(v) else float(v)


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
            if name not in X.columns:
                raise ValueError(f"no column {name!r}: the model was trained on it")
            return list(X[name])
        return [row.get(name) for row in X]

    def texts(self, X: Any) -> list[str]:
        """The texts of the rows, columns joined by blanks."""
        said = [self.cells(X, name) for name in self.text]
        return [" ".join(str(v) for v in row if not _missing(v) and v != "") for row in zip(*said)]

    def numbers(self, X: Any) -> sp.csr_matrix:
        """The numbers of the rows in the model's columns and scale."""
        blocks = []
        for name, w in zip(self.names, self.widths):
            block = np.full((len(X), w), np.nan)
            for i, v in enumerate(self.cells(X, name)):
                if isinstance(v, (list, tuple, np.ndarray)):
                    if len(v) != w:
                        raise ValueError(f"column {name!r}, row {i}: a list of {len(v)} numbers, want {w}")
                    block[i] = [_number(x) for x in v]
                else:
                    block[i, 0] = _number(v)
            blocks.append(block)
        return self.scaled(np.hstack(blocks) if blocks else np.zeros((len(X), 0)))

    def scaled(self, X: np.ndarray) -> sp.csr_matrix:
        """Numbers as the table has them, a column a feature, in the model's columns and scale."""
        if X.shape[1] != len(self.column):
            raise ValueError(f"{X.shape[1]} columns of numbers, and the model was trained on {len(self.column)}: {', '.join(self.names)}")
        values = (X.astype(np.float64) - self.mean) / self.scale
        kept = self.column >= 0
        rows, at = np.nonzero(~np.isnan(values) & kept)
        return sp.csr_matrix((values[rows, at].astype(np.float32), (rows, self.column[at])), shape=(len(X), self.width))
