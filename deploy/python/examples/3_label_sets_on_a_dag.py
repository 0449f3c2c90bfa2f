"""Several labels a row, and classes with two parents."""

import numpy as np

from taxon import HierarchicalClassifier

rng = np.random.default_rng(0)
kinds = {"bat": (0, 1), "bird": (1, 2), "mouse": (0, 3)}
X, y = [], []
for _ in range(300):
    labels = rng.choice(list(kinds), size=rng.integers(1, 3), replace=False)
    x = 0.3 * rng.random(6)
    for name in labels:
        x[list(kinds[name])] += 1
    X.append(x)
    y.append(labels.tolist())
edges = [("animal", "mammal"), ("animal", "flyer"), ("mammal", "bat"), ("flyer", "bat"), ("flyer", "bird"), ("mammal", "mouse")]
clf = HierarchicalClassifier(hierarchy=edges).fit(X[:200], y[:200])
print(f"label sets that are right: {clf.score(X[200:], y[200:]):.2f}", clf.predict(X[200:203]))
