"""Texts with a column of label paths, from a CSV file."""

import csv

import numpy as np

from taxon import TaxonTextClassifier

rows = [("a lion sleeps in the grass", "animal > cat"), ("the tiger eats", "animal > cat"), ("a wolf howls", "animal > dog"), ("my dog barks", "animal > dog"),
        ("oak leaves fall", "plant > tree"), ("a tall pine", "plant > tree"), ("the rose smells", "plant > flower"), ("a red tulip", "plant > flower")] * 3
with open("texts.csv", "w", newline="") as f:
    csv.writer(f).writerows([("text", "category"), *rows])

with open("texts.csv", newline="") as f:
    table = list(csv.DictReader(f))
levels = np.array([row["category"].split(" > ") for row in table])
clf = TaxonTextClassifier(method="rr-lr", C=10.0).fit([row["text"] for row in table], levels)
for text, path, p in zip(*(lambda t: (t, clf.predict(t), clf.predict_proba(t).max(axis=1)))(["the dog sleeps", "a red rose"])):
    print(f"{text}: {' > '.join(path)} ({p:.2f})")
