"""Trains one peer on a libsvm file and prints what it took as a JSON object.

CPU seconds are of the call that trains, user and system, on one thread; reading the file
is not in them unless the peer reads it itself (omikuji). Objectives are those of the
one-versus-rest problem sum_c 1/2 |w_c|^2 + C sum_i loss, or with the loss of Crammer and Singer, bias
regularised, computed here from the weights in double precision.
"""

import argparse
import ctypes
import json
import os
import resource
import tempfile
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
import scipy.sparse as sp


def read(path, labels=None):
    """Rows, one label a row as an index into labels, and the labels by first appearance."""
    known = labels is not None
    labels = dict(labels or {})
    indptr, index, value, y = [0], [], [], []
    with open(path) as lines:
        for line in lines:
            words = line.split()
            name = words[0].split(",")[0]
            y.append(labels.get(name, -1) if known else labels.setdefault(name, len(labels)))
            for word in words[1:]:
                i, v = word.split(":")
                index.append(int(i) - 1)
                value.append(float(v))
            indptr.append(len(index))
    return sp.csr_matrix((np.array(value, np.float64), np.array(index, np.int32), np.array(indptr, np.int64))), np.array(y), labels


def fit_columns(x, columns):
    x = x[:, :columns] if x.shape[1] > columns else x
    return sp.csr_matrix((x.data, x.indices, x.indptr), shape=(x.shape[0], columns))


def with_bias(x, bias):
    return sp.hstack([x, np.full((x.shape[0], 1), bias)], format="csr") if bias > 0 else x


def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def objective(x, y, w, loss, c):
    """P of weights w, features x classes, the bias in the last row of both."""
    total = 0.5 * float(np.einsum("ij,ij->", w, w, dtype=np.float64))
    if loss == "crammer-singer":
        score = x @ w
        own = score[np.arange(len(y)), y].copy()
        score[np.arange(len(y)), y] -= 1
        return total + c * float(np.sum(1 + score.max(axis=1) - own))
    step = max(1, int(2e7 // x.shape[0]))
    for lo in range(0, w.shape[1], step):
        score = x @ w[:, lo : lo + step]
        sign = np.where(y[:, None] == np.arange(lo, lo + score.shape[1])[None, :], 1.0, -1.0)
        slack = np.maximum(0, 1 - sign * score)
        total += c * float(np.sum({"hinge": lambda: slack, "squared-hinge": lambda: slack**2, "logistic": lambda: np.logaddexp(0, -sign * score)}[loss]()))
    return total


class Node(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int), ("value", ctypes.c_double)]


class Problem(ctypes.Structure):
    _fields_ = [("l", ctypes.c_int), ("n", ctypes.c_int), ("y", ctypes.c_void_p), ("x", ctypes.c_void_p), ("bias", ctypes.c_double)]


class Parameter(ctypes.Structure):
    _fields_ = [
        ("solver_type", ctypes.c_int), ("eps", ctypes.c_double), ("C", ctypes.c_double), ("nr_weight", ctypes.c_int),
        ("weight_label", ctypes.c_void_p), ("weight", ctypes.c_void_p), ("p", ctypes.c_double), ("init_sol", ctypes.c_void_p),
    ]


class Model(ctypes.Structure):
    _fields_ = [
        ("param", Parameter), ("nr_class", ctypes.c_int), ("nr_feature", ctypes.c_int), ("w", ctypes.POINTER(ctypes.c_double)),
        ("label", ctypes.POINTER(ctypes.c_int)), ("bias", ctypes.c_double),
    ]


def liblinear_primal(a, x, y, labels):
    """The trust-region Newton method of -s 0, with that solver's default tolerance."""
    return liblinear(a, x, y, labels, primal=True)


def liblinear(a, x, y, labels, primal=False):
    """The library that liblinear-train links: train() alone is timed, with default tolerances."""
    lib = ctypes.CDLL("liblinear.so.4")
    version = ctypes.c_int.in_dll(lib, "liblinear_version").value
    if version != 230:
        raise SystemExit(f"liblinear {version}: the structures here are those of 2.30")
    quiet = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda _: None)
    lib.set_print_string_function(quiet)
    rows, columns = x.shape
    per_row = np.diff(x.indptr) + (2 if a.bias > 0 else 1)
    nodes = np.zeros(per_row.sum(), dtype=[("index", "<i4"), ("pad", "<i4"), ("value", "<f8")])
    start = np.concatenate([[0], np.cumsum(per_row)[:-1]])
    for i in range(rows):
        lo, hi = x.indptr[i], x.indptr[i + 1]
        at = slice(start[i], start[i] + hi - lo)
        nodes["index"][at] = x.indices[lo:hi] + 1
        nodes["value"][at] = x.data[lo:hi]
    ends = start + per_row - 1
    nodes["index"][ends] = -1
    if a.bias > 0:
        nodes["index"][ends - 1] = columns + 1
        nodes["value"][ends - 1] = a.bias
    pointers = (nodes.ctypes.data + start * nodes.itemsize).astype(np.uint64)
    target = (y + 1).astype(np.float64)
    problem = Problem(rows, columns + (a.bias > 0), target.ctypes.data, pointers.ctypes.data, a.bias)
    solver = {"hinge": 3, "squared-hinge": 1, "logistic": 0 if primal else 7, "crammer-singer": 4}[a.loss]
    parameter = Parameter(solver, 0.01 if primal else a.eps, a.c, 0, None, None, 0.1, None)
    lib.train.restype = ctypes.POINTER(Model)
    began = cpu()
    model = lib.train(ctypes.byref(problem), ctypes.byref(parameter)).contents
    took = cpu() - began
    w = np.ctypeslib.as_array(model.w, shape=(problem.n, model.nr_class))
    column = np.empty(model.nr_class, int)  # of each label
    column[[model.label[k] - 1 for k in range(model.nr_class)]] = np.arange(model.nr_class)
    out = {"train_cpu_seconds": took, "objective": objective(with_bias(x, a.bias), column[y], w, a.loss, a.c)}
    if a.test:
        tx, ty, _ = read(a.test, labels)
        tx = with_bias(fit_columns(tx, columns), a.bias)
        guess = np.concatenate([np.asarray(tx[lo : lo + 1000] @ w).argmax(axis=1) for lo in range(0, tx.shape[0], 1000)])
        out.update(scores(ty, np.argsort(column)[guess], len(labels)))
    return out


def scores(y, guess, classes):
    """Micro and macro F1 of one label a row, macro over the labels of the training data."""
    hit = y == guess
    tp = np.bincount(y[hit & (y >= 0)], minlength=classes)
    real = np.bincount(y[y >= 0], minlength=classes)
    given = np.bincount(guess, minlength=classes)
    f1 = 2 * tp / np.maximum(real + given, 1)
    return {"micro_f1": float(hit.mean()), "macro_f1": float(f1.mean())}


def folder_bytes(path):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(path) for f in files)


def pecos(a, x, y, labels):
    """One-versus-rest with squared hinge; prediction is timed too."""
    from pecos.xmc.xlinear.model import XLinearModel

    x32 = x.astype(np.float32)
    target = sp.csr_matrix((np.ones(len(y), np.float32), (np.arange(len(y)), y)), shape=(len(y), len(labels)))
    began = cpu()
    m = XLinearModel.train(x32, target, C=None, Cp=a.c, Cn=a.c, bias=a.bias, threshold=0.1, threads=1)
    out = {"train_cpu_seconds": cpu() - began}
    tx, ty, _ = read(a.test, labels)
    tx = fit_columns(tx, x.shape[1]).astype(np.float32)
    m.predict(tx[:100], only_topk=5, threads=1)
    docs, began = 0, cpu()
    while cpu() - began < 2:
        p = m.predict(tx, only_topk=5, threads=1)
        docs += tx.shape[0]
    out["docs_per_second"] = docs / (cpu() - began)
    guess = np.asarray(p.tocsr().argmax(axis=1)).ravel()
    out.update(scores(ty, guess, len(labels)))
    with tempfile.TemporaryDirectory() as d:
        m.save(d)
        out["model_bytes"] = folder_bytes(d)
    return out


def omikuji(a, x, y, labels):
    """Three learned trees, its defaults. It reads the file itself, which is timed."""
    import omikuji as om

    def line(i):
        lo, hi = x.indptr[i], x.indptr[i + 1]
        return f"{y[i]} " + " ".join(f"{j}:{v:.7g}" for j, v in zip(x.indices[lo:hi], x.data[lo:hi]))

    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "train.txt")
        rows = [i for i in range(x.shape[0]) if x.indptr[i] < x.indptr[i + 1]]
        with open(path, "w") as f:
            f.write(f"{len(rows)} {x.shape[1]} {len(labels)}\n")
            f.writelines(line(i) + "\n" for i in rows)
        began = cpu()
        m = om.Model.train_on_data(path, om.Model.default_hyper_param(), 1)
        out = {"train_cpu_seconds": cpu() - began}
    tx, ty, _ = read(a.test, labels)
    tx = fit_columns(tx, x.shape[1])
    guess = np.zeros(len(ty), int)
    began = cpu()
    for i in range(len(ty)):
        lo, hi = tx.indptr[i], tx.indptr[i + 1]
        best = m.predict(list(zip(tx.indices[lo:hi].tolist(), tx.data[lo:hi].tolist())), 10, 1)
        guess[i] = best[0][0] if best else 0
    out["docs_per_second"] = len(ty) / (cpu() - began)
    out.update(scores(ty, guess, len(labels)))
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("peer", choices=["liblinear", "liblinear_primal", "pecos", "omikuji"])
    p.add_argument("train")
    p.add_argument("--test")
    p.add_argument("--loss", default="hinge", choices=["hinge", "squared-hinge", "logistic", "crammer-singer"])
    p.add_argument("--c", type=float, default=1)
    p.add_argument("--bias", type=float, default=1)
    p.add_argument("--eps", type=float, default=0.1)
    a = p.parse_args()
    x, y, labels = read(a.train)
    began = time.time()
    out = globals()[a.peer](a, x, y, labels)
    out.update(seconds=time.time() - began, classes=len(labels), instances=x.shape[0], peer=a.peer)
    out["peak_rss_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(out))


main()
