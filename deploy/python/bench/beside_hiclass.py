"""HiClass and taxon side by side: the same fit call but for the class.

    pip install hiclass
    python beside_hiclass.py [TRAIN.svm[.xz] TEST.svm[.xz] TREE]

Without files: the two examples of HiClass's own README. With files: label paths of the rows' first labels in
the tree, by a linear SVM at each parent node (HiClass) and by all classes jointly (taxon). Printed are the share
of rows whose whole path is right, HiClass's own hierarchical F1, and CPU seconds (user).
"""

from __future__ import annotations

import os
import sys
import warnings

import hiclass
import numpy as np
from hiclass.metrics import f1
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from fit_cost import edges, read
from taxon import HierarchicalClassifier


def readme() -> None:
    X_train, X_test = [[1], [2], [3], [4]], [[4], [3], [2], [1]]
    Y_train = [["Animal", "Mammal", "Sheep"], ["Animal", "Mammal", "Cow"], ["Animal", "Reptile", "Snake"], ["Animal", "Reptile", "Lizard"]]
    for classifier in (hiclass.LocalClassifierPerNode(local_classifier=RandomForestClassifier(random_state=0)), HierarchicalClassifier(method="mlr", C=100.0)):
        classifier.fit(X_train, Y_train)
        predictions = classifier.predict(X_test)
        print(type(classifier).__name__, [row[-1] for row in np.asarray(predictions).tolist()])

    texts, Y_texts = ["Struggling to repay loan", "Unable to get annual report"], [["Loan", "Student loan"], ["Credit reporting", "Reports"]]
    for classifier in (hiclass.LocalClassifierPerParentNode(local_classifier=LogisticRegression()), HierarchicalClassifier(method="rr-lr")):
        pipeline = Pipeline([("count", CountVectorizer()), ("tfidf", TfidfTransformer()), ("classifier", classifier)])
        pipeline.fit(texts, Y_texts)
        print(type(classifier).__name__, pipeline.predict(texts[::-1]).tolist())


def side_by_side(train: str, test: str, tree: str) -> None:
    X_train, labels = read(train)
    X_test, truth = read(test)
    X_test.resize(X_test.shape[0], X_train.shape[1])
    parent = {child: above for above, child in edges(tree)}

    def path(label: str) -> list[str]:
        out = [label]
        while out[-1] in parent:
            out.append(parent[out[-1]])
        return out[::-1]

    kept = [i for i, row in enumerate(labels) if row[0]]
    X_train, Y_train = X_train[kept], [path(labels[i][0]) for i in kept]
    kept = [i for i, row in enumerate(truth) if row[0]]
    X_test, Y_test = X_test[kept], [path(truth[i][0]) for i in kept]
    depth = max(map(len, Y_train + Y_test))

    def levels(rows: object) -> np.ndarray:
        return np.array([[*row, *[""] * (depth - len(row))] for row in (list(map(str, r)) for r in rows)])

    print(f"{X_train.shape[0]} rows to train, {X_test.shape[0]} to test, {X_train.shape[1]} columns, {len({tuple(p) for p in Y_train})} classes, {depth} levels")
    paths = levels(Y_train)  # lists of unlike lengths HiClass refuses
    for name, classifier in (("taxon, rr-svm", HierarchicalClassifier(C=1.0)),
                             ("HiClass, per parent node", hiclass.LocalClassifierPerParentNode(local_classifier=LinearSVC(C=1.0)))):
        before = os.times()
        classifier.fit(X_train, paths)
        fitted = os.times()
        said = levels(classifier.predict(X_test))
        after = os.times()
        right, want = (said == levels(Y_test)).all(axis=1).mean(), levels(Y_test)
        fit, predict = (b[0] + b[2] - a[0] - a[2] for a, b in ((before, fitted), (fitted, after)))
        print(f"{name}: paths right {100 * right:.2f} %, hierarchical F1 {100 * f1(want, said):.2f}, fit {fit:.0f} s, predict {predict:.0f} s", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    side_by_side(*sys.argv[1:4]) if sys.argv[3:] else readme()
