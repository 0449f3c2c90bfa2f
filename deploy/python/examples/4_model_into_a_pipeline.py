"""A model trained by the command line, scored in Python, and a pipeline that is pickled."""

import pickle
import subprocess

import taxon
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from taxon._binary import binary

X, y = load_iris(return_X_y=True)
pipe = make_pipeline(StandardScaler(), taxon.TaxonClassifier(method="mlr")).fit(X, y)
again = pickle.loads(pickle.dumps(pipe))
print(f"{again.score(X, y):.3f}", again.predict_proba(X[:1]).round(2))

with open("iris.svm", "w") as f:
    f.writelines(f"{c} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) + "\n" for row, c in zip(X, y))
subprocess.run([binary(), "train", "--data", "iris.svm", "--method", "bsvm", "--out", "model", "--quiet"], check=True, stdout=subprocess.DEVNULL)
model = taxon.load("model")
print(model, model.weights().shape, model.explain(X[:1], top=2)["best"])
