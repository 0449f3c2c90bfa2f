"""Texts as taxon reads them: docs/formats.md has the rule, and this is it in Python."""

from __future__ import annotations

import json
import re
from typing import Any, Sequence

import numpy as np
import scipy.sparse as sp

__all__ = ["Vectorizer", "field", "name_of", "words"]


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


_WORD = re.compile(r"[^\W_]+")  # runs of letters and numbers


class _Lower(dict[int, int]):
    """Lower case, character by character: str.lower() looks at a character's neighbours."""

    def __missing__(self, c: int) -> int:
        self[c] = low = ord(chr(c).lower()[0])
        return low


_LOWER = _Lower()


def words(text: str) -> list[str]:
    """The words of a text: runs of letters and numbers (categories L and N), lower-cased."""
    return [w.translate(_LOWER) for w in _WORD.findall(text)]


class Vectorizer:
    """Unit rows of (1 + ln tf) idf over a fixed vocabulary of words and runs of words."""

    def __init__(self, vocabulary: Sequence[str], idf: np.ndarray, data: dict[str, Any] | None = None) -> None:
        self.column = {w: i for i, w in enumerate(vocabulary)}
        self.longest = max((w.count(" ") for w in vocabulary if not w.startswith('"')), default=0) + 1  # words of a term
        self.idf = np.asarray(idf, np.float64)

    def __call__(self, texts: Sequence[str]) -> sp.csr_matrix:
        indices: list[int] = []
        data: list[float] = []
        ends = [0]
        for text in texts:
            count: dict[int, int] = {}
            said = words(text)
            for n in range(1, self.longest + 1):
                for i in range(len(said) - n + 1):
                    c = self.column.get(" ".join(said[i : i + n]))
                    if c is not None:
                        count[c] = count.get(c, 0) + 1
            columns = sorted(count)
            value = (1 + np.log([float(count[c]) for c in columns])) * self.idf[columns] if columns else np.zeros(0)
            norm = np.sqrt((value * value).sum())
            indices += columns
            data += (value / norm if norm > 0 else value).tolist()
            ends.append(len(indices))
        return sp.csr_matrix((np.asarray(data, np.float32), np.asarray(indices, np.int64), ends), shape=(len(texts), len(self.idf)))
