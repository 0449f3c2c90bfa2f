"""Data for the binary: a folder that it maps, as ``taxon ingest`` writes it, and structure files.

The bytes are described in ``internal/data/dataset/FORMAT.md`` of the sources. A folder written here has
the same bytes as one that ``taxon ingest`` makes of the same rows.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence, Sized

import numpy as np
import scipy.sparse as sp

from ._cells import is_missing, label_name
from ._text import field

__all__ = ["LEAST_WEIGHT", "MOST_WEIGHT", "write_dataset", "write_edges", "edges_of", "structure_of", "quote"]

# Positive weights lie within these bounds, as internal/data/dataset/weights.go has them.
LEAST_WEIGHT, MOST_WEIGHT = 1e-15, 1e15

_SHARD_ROWS = 1 << 16
_MOST_INDEX = 2**31 - 1


def write_dataset(path: Path, X: Any, labels: Sequence[str], begin: np.ndarray, index: np.ndarray, weight: np.ndarray | None = None) -> None:
    """Write rows and their labels as an ingested data set.

    Parameters
    ----------
    path : Path
        The folder, made here.
    X : matrix
        Rows of features; column j is feature j+1.
    labels : sequence of str
        Names of the labels.
    begin, index : ndarray
        The labels of row i are ``index[begin[i]:begin[i+1]]``, numbers of ``labels``.
    weight : ndarray, optional
        Weights of the rows; rows of weight 0 are left out.
    """
    X, zeros = _float32(sp.csr_matrix(X))
    left_out = 0
    if weight is not None:
        weight = np.asarray(weight, np.float64)
        kept = np.flatnonzero(weight > 0)
        left_out = len(weight) - len(kept)
        if left_out:
            X, weight = X[kept], weight[kept]
            size = np.diff(begin)[kept]
            index = np.concatenate([index[begin[i] : begin[i + 1]] for i in kept]) if len(kept) else index[:0]
            begin = np.concatenate(([0], np.cumsum(size)))
        if (weight == 1).all():
            weight = None
    rows, width = X.shape
    if width > _MOST_INDEX:
        raise ValueError(f"{width} features: at most {_MOST_INDEX}")

    # Columns by falling document frequency, ties by the smaller index.
    df = np.bincount(X.indices, minlength=width)
    used = np.flatnonzero(df)
    order = used[np.lexsort((used, -df[used]))]
    column = np.zeros(width, np.int64)
    column[order] = np.arange(len(order))
    X = sp.csr_matrix((X.data, column[X.indices], X.indptr), shape=(rows, len(order)))
    X.sort_indices()

    names, begin, index = _by_appearance(labels, begin, index)
    path.mkdir()
    files = _Files(path)
    for k, first in enumerate(range(0, rows, _SHARD_ROWS)):
        last = min(first + _SHARD_ROWS, rows)
        a, b = int(X.indptr[first]), int(X.indptr[last])
        files.binary(f"shard-{k:05d}.csr", 1, (last - first, b - a, len(order)),
                     (X.indptr[first : last + 1].astype(np.int64) - a).astype("<u8"), X.indices[a:b].astype("<u4"), X.data[a:b].astype("<f4"))
    files.binary("rowlabels.bin", 2, (rows, len(index), len(names)), begin.astype("<u8"), index.astype("<u4"))
    owner = np.repeat(np.arange(rows), np.diff(begin))
    by_label = np.argsort(index, kind="stable")
    ends = np.concatenate(([0], np.cumsum(np.bincount(index, minlength=len(names)))))
    files.binary("postings.bin", 3, (len(names), len(index), rows), ends.astype("<u8"), owner[by_label].astype("<u4"))
    files.binary("features.bin", 4, (len(order), 0, 0), (order + 1).astype("<u4"), df[order].astype("<u4"))
    files.add("labels.txt", "".join(field(n) + "\n" for n in names).encode())
    if weight is not None:
        files.binary("weights.bin", 6, (rows, 0, 0), weight.astype("<f8"))

    per_row, labelled = np.diff(X.indptr), np.diff(begin)
    stats: dict[str, Any] = {
        "rows": rows, "empty_lines": 0, "comments": 0, "unlabelled": int((labelled == 0).sum()), "zero_rows": int((per_row == 0).sum()),
        "repeated_labels": 0, "explicit_zeros": zeros, "columns": len(order), "nonzeros": int(X.nnz), "labels": len(names),
        "label_entries": len(index), "max_labels": int(labelled.max(initial=0)), "max_features": int(per_row.max(initial=0)), "text": False,
    }
    if left_out:
        stats["left_out"] = left_out
    if weight is not None:
        stats["weight"] = float(np.add.accumulate(weight)[-1])
    files.manifest(stats)


def _float32(X: sp.csr_matrix) -> tuple[sp.csr_matrix, int]:
    """The matrix in float32, its columns ascending and no zero in it; and how many zeros it had."""
    X = X.copy() if X.has_canonical_format else X.tocoo().tocsr()
    if X.data.dtype != np.float32:
        with np.errstate(over="ignore"):
            X.data = X.data.astype(np.float32)
    if not np.isfinite(X.data).all():
        raise ValueError("X holds a value that is not finite in float32")
    zeros = int((X.data == 0).sum())
    X.eliminate_zeros()
    X.sort_indices()
    return X, zeros


def _by_appearance(labels: Sequence[str], begin: np.ndarray, index: np.ndarray) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Labels renumbered by first appearance, ascending within a row."""
    index = np.asarray(index, np.int64)
    seen, first = np.unique(index, return_index=True)
    order = seen[np.argsort(first, kind="stable")]
    number = np.zeros(len(labels), np.int64)
    number[order] = np.arange(len(order))
    owner = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
    index = number[index]
    index = index[np.lexsort((index, owner))]
    return [labels[k] for k in order], np.asarray(begin, np.int64), index


class _Files:
    """The files of a folder, with their checksums."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.items: list[dict[str, Any]] = []

    def add(self, name: str, *parts: bytes) -> None:
        h, size = hashlib.sha256(), 0
        with open(self.path / name, "wb") as f:
            for p in parts:
                f.write(p)
                h.update(p)
                size += memoryview(p).nbytes
        self.items.append({"name": name, "bytes": size, "sha256": h.hexdigest()})

    def binary(self, name: str, kind: int, counts: tuple[int, int, int], *arrays: np.ndarray) -> None:
        head = b"TAXONSET" + np.array([kind, 1], "<u4").tobytes() + np.array(counts, "<u8").tobytes() + bytes(24)
        parts: list[Any] = [head]
        for a in arrays:
            a = np.ascontiguousarray(a)
            parts += [a.data.cast("B") if a.size else b"", bytes(-a.nbytes % 8)]
        self.add(name, *parts)

    def manifest(self, stats: Mapping[str, Any]) -> None:
        self.items.sort(key=lambda f: f["name"])
        h = hashlib.sha256(b"taxon-data 1\n")
        for f in self.items:
            h.update(f"{f['name']} {f['bytes']} {f['sha256']}\n".encode())
        document = {"format": "taxon-data", "version": 1, "fingerprint": h.hexdigest(), "stats": dict(stats), "files": self.items,
                    "source": {"paths": ["python"], "form": "libsvm", "zero_based": False}, "sha256": ""}
        document["sha256"] = hashlib.sha256(_json(document).encode()).hexdigest()
        (self.path / "manifest.json").write_text(_json(document) + "\n", encoding="utf-8")


def _json(document: Any) -> str:
    """As Go writes it."""
    weight = document["stats"].get("weight")
    text = json.dumps({**document, "stats": {**document["stats"], **({"weight": "@"} if weight is not None else {})}}, indent=2, ensure_ascii=False)
    return text.replace('"weight": "@"', f'"weight": {_go_float(weight)}') if weight is not None else text


def _go_float(x: float) -> str:
    if 1e-6 <= x < 1e21:
        return np.format_float_positional(x, trim="-")
    mantissa, _, exponent = np.format_float_scientific(x, trim="-").partition("e")
    return f"{mantissa}e{'-' if exponent[0] == '-' else '+'}{exponent[1:].lstrip('0').zfill(1)}"


_PLAIN_OUT = set(' \t,:"#')


def quote(name: str) -> str:
    """A name as it stands in line formats: a JSON string where it holds a blank, comma, colon, quote,
    ``#`` or control character."""
    if name and not any(c in _PLAIN_OUT or c < " " or c.isspace() for c in name):
        return name
    return json.dumps(name, ensure_ascii=False)


def write_edges(path: Path, edges: Iterable[tuple[str, str]]) -> None:
    """A structure file: a line an edge."""
    with open(path, "w", encoding="utf-8") as f:
        for a, b in edges:
            f.write(f"{quote(a)} {quote(b)}\n")


def edges_of(structure: Any, what: str = "hierarchy") -> list[tuple[str, str]]:
    """The edges of a hierarchy or graph: :func:`structure_of` without the names."""
    return structure_of(structure, what)[0]


def structure_of(structure: Any, what: str) -> tuple[list[tuple[str, str]], set[str]]:
    """The edges and the names of a hierarchy or graph. A node whose parent is missing (None, NaN, NA) has none.

    Parameters
    ----------
    structure : pairs, table, dict or networkx graph
        Pairs of parent and child, as a list, an array or a table of two columns; or a dict from a parent to its child
        or children, or to a nested dict of them; or anything with ``edges()``.
    what : str
        The parameter it was given as.
    """
    edges, names = [], set()
    for pair in _pairs(structure, what):
        if len(pair) != 2:
            raise ValueError(f"{what}: {pair!r} is no pair of parent and child")
        parent, child = pair
        if not is_missing(parent):
            if is_missing(child):
                raise ValueError(f"{what}: parent {parent!r} has a missing child")
            edges.append((label_name(parent), label_name(child)))
            names.add(label_name(parent))
        if not is_missing(child):
            names.add(label_name(child))
    return edges, names


def _pairs(structure: Any, what: str) -> list[Any]:
    if isinstance(structure, Mapping):
        return _below(structure)
    if hasattr(structure, "edges"):
        if what == "hierarchy" and hasattr(structure, "is_directed") and not structure.is_directed():
            raise ValueError("hierarchy: the graph has no directions, so nobody says who is a parent: give a networkx.DiGraph from parents to children, or give it as graph=")
        return [(None, node) for node in getattr(structure, "nodes", ())] + [edge[:2] for edge in structure.edges()]
    for name, options in (("itertuples", {"index": False, "name": None}), ("rows", {}), ("to_pylist", {})):
        if hasattr(structure, "columns") and callable(way := getattr(structure, name, None)):
            return [tuple(row.values()) if isinstance(row, dict) else row for row in way(**options)]
    if isinstance(structure, str) or not isinstance(structure, Iterable):
        raise ValueError(f"{what}: {structure!r}: give pairs of parent and child, a table of two columns, a dict or "
                         "a graph")
    return [edge if isinstance(edge, Sized) and not isinstance(edge, str) else (edge,) for edge in structure]


def _below(tree: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """The pairs of a dict from parents to what is below them."""
    out: list[tuple[Any, Any]] = []
    for parent, children in tree.items():
        out.append((None, parent))
        if isinstance(children, Mapping):
            out += [(parent, c) for c in children] + _below(children)
        elif isinstance(children, str) or not isinstance(children, Iterable):
            out += [] if is_missing(children) else [(parent, children)]
        else:
            out += [(parent, c) for c in children]
    return out
