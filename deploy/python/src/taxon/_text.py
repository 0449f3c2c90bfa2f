"""Texts as taxon reads them: the binary cuts them into terms, numpy weighs these."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from typing import Any, Sequence

import numpy as np
import scipy.sparse as sp

from ._binary import binary
from ._errors import TaxonError

__all__ = ["Vectorizer", "field", "name_of", "terms"]


def field(name: str) -> str:
    """A name as taxon's own files have it: as it is, or as a JSON string where it holds a control
    character or begins with a quote."""
    return json.dumps(name, ensure_ascii=False) if name.startswith('"') or any(c < " " or "\x7f" <= c <= "\x9f" for c in name) else name


def name_of(field: str) -> str:
    """The way back. A quote that opens no JSON string belongs to the name."""
    if field.startswith('"'):
        try:
            return str(json.loads(field))
        except ValueError:
            pass
    return field


def terms(texts: Sequence[str], options: dict[str, Any]) -> list[list[str]]:
    """The terms of texts, cut by the binary, so that they are those of the training. Of options, which
    are a manifest's data.words, it takes those on terms: words that the training left out, such as
    stop words, are not in the vocabulary."""
    args = [binary(), "terms"]
    for name, flag in (("features", "features"), ("chars", "chars"), ("languages", "language"), ("ngrams", "ngrams")):
        if name in options:
            args += ["--" + flag, str(options[name])]
    lines = "".join(" ".join(t.split("\n")) + "\n" for t in texts)
    done = subprocess.run(args, input=lines.encode("utf-8", "surrogatepass"), capture_output=True)
    if done.returncode != 0:
        raise TaxonError(done.stderr.decode(errors="replace").strip())
    return [line.split("\t") if line else [] for line in done.stdout.decode().split("\n")[:-1]]


class Vectorizer:
    """Unit rows of (1 + ln tf) idf over a fixed vocabulary of terms.

    Each kind of terms has a part of the row: docs/formats.md, "The analysers".
    """

    def __init__(self, vocabulary: Sequence[str], idf: np.ndarray, options: dict[str, Any] | None = None) -> None:
        self.column = {w: i for i, w in enumerate(vocabulary)}
        self.idf = np.asarray(idf, np.float64)
        self.options = options or {}
        parts = [part.partition(":") for part in self.options.get("features", "words").split("+")]
        self.weight = np.array([float(weight or 1) for _, _, weight in parts])
        kinds = [kind for kind, _, _ in parts]
        self.part = np.array([kinds.index(_kind(w)) if len(kinds) > 1 and _kind(w) in kinds else 0 for w in vocabulary], np.int64)

    def __call__(self, texts: Sequence[str]) -> sp.csr_matrix:
        indices: list[int] = []
        data: list[float] = []
        ends = [0]
        for row in terms(texts, self.options):
            count = Counter(c for c in map(self.column.get, row) if c is not None)
            columns = sorted(count)
            value = (1 + np.log([float(count[c]) for c in columns])) * self.idf[columns] if columns else np.zeros(0)
            if len(columns):
                part = self.part[columns]
                norm = np.sqrt(np.bincount(part, value * value, minlength=len(self.weight)))
                whole = np.sqrt((self.weight[norm > 0] ** 2).sum()) if len(self.weight) > 1 else self.weight[0]
                value = value / np.where(norm > 0, norm, 1)[part] * (self.weight / whole)[part]
            indices += columns
            data += value.tolist()
            ends.append(len(indices))
        return sp.csr_matrix((np.asarray(data, np.float32), np.asarray(indices, np.int64), ends), shape=(len(texts), len(self.idf)))


def _kind(term: str) -> str:
    """The kind of a term, by its mark."""
    return {"#": "chars", "~": "stems"}.get(term[:1], "words")
