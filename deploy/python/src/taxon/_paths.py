"""Predictions that are sets of paths from a root down (h-svm, h-rls, hm3). A set may end at inner nodes
and may be empty. A spawned leaf stands for the path that ends at its parent."""

from __future__ import annotations

from typing import Sequence

import numpy as np

__all__ = ["nested", "best_union", "lowest"]


def nested(S: np.ndarray, parent: np.ndarray, kind: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """A node is in where its parent is and its own score is above 0.

    Parameters
    ----------
    S : ndarray of shape (nodes, rows)
        Each node's own score. Parents come before their children.
    parent, kind : sequences
        Of each node.

    Returns
    -------
    score, inside : ndarray of shape (nodes, rows)
        A score above 0 where a path that ends there is predicted; and which nodes are in.
    """
    score, most = S.copy(), np.full(S.shape, -np.inf)
    for n, p in enumerate(parent):
        way = score[p] if p >= 0 else np.inf
        score[n] = np.minimum(way, S[n]) if kind[n] == "node" else way
        if p >= 0 and kind[n] == "node":
            np.maximum(most[p], S[n], out=most[p])
    inside = score > 0
    for n, p in enumerate(parent):
        if kind[n] == "spawned":
            score[n] = np.minimum(score[p], -most[p])
    return score, inside


def best_union(S: np.ndarray, parent: np.ndarray, kind: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The union of paths with the greatest sum of scores over its nodes. A node's score is the best
    sum with it less the best one without it; a spawned leaf's that with its parent lowest less any other.
    Parameters and returns are those of :func:`nested`."""
    score, below, most = S.copy(), np.zeros(S.shape), np.full(S.shape, -np.inf)
    inside, having, lacking = np.zeros(S.shape, bool), np.zeros(S.shape), np.zeros(S.shape)
    nodes = [n for n in range(len(parent)) if kind[n] != "spawned"]
    for n in reversed(nodes):  # the best sum at and below a node
        score[n] += below[n]
        if parent[n] >= 0:
            below[parent[n]] += np.maximum(0, score[n])
            np.maximum(most[parent[n]], score[n], out=most[parent[n]])
    for n in nodes:
        p = parent[n]
        inside[n], having[n] = score[n] > 0, score[n]
        if p >= 0:
            inside[n] &= inside[p]
            rest = having[p] - np.maximum(0, score[n])
            having[n], lacking[n] = rest + score[n], np.maximum(rest, lacking[p])
    score = having - lacking
    for n, p in enumerate(parent):
        if kind[n] == "spawned":
            score[n] = having[p] - below[p] - np.maximum(lacking[p], having[p] + np.minimum(most[p], 0))
    return score, inside


def lowest(inside: np.ndarray, parent: np.ndarray, kind: Sequence[str]) -> np.ndarray:
    """Where the paths end, nodes x rows: at nodes with no child inside, a spawned leaf in place of
    its parent."""
    end = inside.copy()
    for n, p in enumerate(parent):
        if kind[n] == "virtual":
            end[n] = False
        elif kind[n] != "spawned" and p >= 0:
            end[p] &= ~inside[n]
    for n, p in enumerate(parent):
        if kind[n] == "spawned":
            end[n], end[p] = end[p], False
    return end
