"""Opens what `taxon export` wrote with the programs it is meant for, and compares.

    read.py FOLDER

FOLDER holds: labels.txt, weights.npz, weights.safetensors, weights.parquet, weights.model,
weights.txt, features.txt (text models), test.svm, expected.txt (a label a line), meta.json
(bias, features, threshold). Prints what it checked; the first difference ends it.
"""
import json
import pathlib
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse as sp
from safetensors import safe_open
from sklearn.datasets import load_svmlight_file
from sklearn.svm import LinearSVC

folder = pathlib.Path(sys.argv[1])
meta = json.loads((folder / "meta.json").read_text())
bias, features = meta["bias"], meta["features"]
labels = (folder / "labels.txt").read_text().split("\n")[:-1]
expected = (folder / "expected.txt").read_text().split("\n")[:-1]


def same(what, got):
    wrong = [(i, g, e) for i, (g, e) in enumerate(zip(got, expected)) if g != e]
    if len(got) != len(expected) or wrong:
        sys.exit(f"{what}: {len(got)} labels for {len(expected)} instances, first differences {wrong[:3]}")
    print(f"{what}: {len(got)} labels agree")


W = sp.load_npz(folder / "weights.npz")
if W.shape != (len(labels), features + (bias > 0)) or W.dtype != np.float32:
    sys.exit(f"npz: shape {W.shape}, {W.dtype}; {len(labels)} labels, {features} features")
W.check_format(full_check=True)
X, _ = load_svmlight_file(str(folder / "test.svm"), n_features=features, zero_based=meta["zero_based"], multilabel=False, dtype=np.float64)

# The snippet of docs/formats.md.
clf = LinearSVC()
clf.classes_ = np.array(labels)
clf.coef_ = W[:, :features].toarray().astype(np.float64)
clf.intercept_ = bias * W[:, features].toarray().ravel().astype(np.float64) if bias > 0 else np.zeros(len(labels))
same("scikit-learn, npz", list(clf.predict(X)) if len(labels) > 2 else [labels[k] for k in np.argmax(X @ clf.coef_.T + clf.intercept_, axis=1)])

with safe_open(folder / "weights.safetensors", "np") as f:
    shape = tuple(int(n) for n in f.metadata()["shape"].split(","))
    S = sp.csr_matrix((f.get_tensor("data"), f.get_tensor("indices"), f.get_tensor("indptr")), shape=shape)
if (S != W).nnz:
    sys.exit("safetensors: not the matrix of the npz")
print(f"safetensors: {S.nnz} weights as in npz")

# Long form and text hold internal nodes too; the terminals among them are the matrix's rows.
rows = [line.split() for line in (folder / "weights.txt").read_text().splitlines()]
text = [(r[0], r[1], 0 if k == "bias" else int(k), np.float32(v)) for r in rows for k, v in (e.split(":") for e in r[2:])]
table = pq.read_table(folder / "weights.parquet")
want = ["kind", "node", "feature"] + (["word"] if (folder / "features.txt").exists() else []) + ["weight"]
if table.column_names != want:
    sys.exit(f"parquet: columns {table.column_names}, want {want}")
d = table.to_pydict()
if list(zip(d["kind"], d["node"], d["feature"], np.array(d["weight"], dtype=np.float32))) != text:
    sys.exit("parquet: not the weights of the text form")
if "word" in d:
    words = (folder / "features.txt").read_text().split("\n")
    if any(w != (words[f - 1] if f else "") for f, w in zip(d["feature"], d["word"])):
        sys.exit("parquet: words do not belong to their features")
print(f"parquet: {table.num_rows} weights as in the text form")

out = folder / "liblinear.out"
numbered = folder / "test.numbered"
numbered.write_text("".join("0 " + line.split(" ", 1)[1] if " " in line.strip() else "0\n" for line in (folder / "test.svm").read_text().splitlines(keepends=True)))
if meta["liblinear"]:
    subprocess.run([meta["liblinear"], str(numbered), str(folder / "weights.model"), str(out)], check=True, stdout=subprocess.DEVNULL)
    numbers = (folder / "weights.model").read_text().split("\n")[2].split()[1:]
    if len(numbers) == 2:  # the second class stands first
        numbers.reverse()
    of = dict(zip(numbers, labels))
    same("liblinear-predict", [of[n] for n in out.read_text().split()])
else:
    print("liblinear-predict: not installed, not checked")
