"""Serves a linear scikit-learn model with FastAPI, with the calls of `taxon serve`.

The model is an export of taxon's (--format npz), as a fitted LinearSVC. Its coefficients lie
transposed in memory: as they usually do, each call would copy all of them.
"""

import sys

import numpy as np
import scipy.sparse as sp
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sklearn.svm import LinearSVC

weights = sp.load_npz(sys.argv[1]).toarray(order="F").astype(np.float32, order="F")
names = open(sys.argv[2], encoding="utf-8").read().splitlines()
model = LinearSVC()
model.coef_, model.intercept_, model.classes_, model.n_features_in_ = weights[:, :-1], weights[:, -1], np.arange(len(names)), weights.shape[1] - 1


class Instance(BaseModel):
    features: dict[int, float]


class Request(BaseModel):
    instances: list[Instance]
    top: int = 1


class Label(BaseModel):
    label: str
    score: float


class Prediction(BaseModel):
    labels: list[Label]


class Response(BaseModel):
    predictions: list[Prediction]


app = FastAPI()


@app.get("/readyz")
async def ready() -> str:
    return "ok"


@app.post("/v1/models/model:predict")
async def predict(r: Request) -> Response:
    ends, index, value = [0], [], []
    for i in r.instances:
        known = [(c - 1, v) for c, v in i.features.items() if c <= model.n_features_in_]
        index.extend(c for c, _ in known)
        value.extend(v for _, v in known)
        ends.append(len(index))
    x = sp.csr_matrix((np.array(value, np.float32), np.array(index, np.int32), np.array(ends)), shape=(len(r.instances), model.n_features_in_))
    scores = model.decision_function(x)
    best = np.argpartition(-scores, r.top, axis=1)[:, : r.top]
    out = []
    for row, columns in zip(scores, best):
        columns = columns[np.argsort(-row[columns], kind="stable")]
        out.append(Prediction(labels=[Label(label=names[c], score=float(row[c])) for c in columns]))
    return Response(predictions=out)


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[3]), log_level="warning")
