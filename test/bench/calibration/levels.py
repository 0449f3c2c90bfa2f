"""A calibration common to all levels beside one per level: log-loss and ECE on test data that no fit has seen.

    python calibration_levels.py DATA clef ROWS TEST_ROWS TAXON MAX_SWEEPS SCRATCH

DATA has a folder clef with train.svm.xz, test.svm.xz and hierarchy.txt (or tree.txt). A quarter of the training
rows is held out, and what is fitted is fitted there. Needs numpy, scipy, scikit-learn. docs/decisions/0048 has the results.
"""
import lzma
import os
import random
import subprocess
import sys

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
D, name, n_train, n_test, T, W = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], sys.argv[7]; os.makedirs(W, exist_ok=True)
tree = next(f for f in ("hierarchy.txt", "tree.txt") if os.path.exists(f"{D}/{name}/{f}"))
lines = lambda f: [l for l in lzma.open(f"{D}/{name}/{f}", "rt") if l.strip() and not l.startswith("#")]
random.seed(1); rows = lines("train.svm.xz"); random.shuffle(rows); rows = rows[:n_train]
test = lines("test.svm.xz"); random.shuffle(test); test = test[:n_test]
cut = len(rows) * 3 // 4; held = rows[cut:][:n_test]; rows = rows[:cut]
for f, r in (("train", rows), ("held", held), ("test", test)): open(f"{W}/{f}.svm", "w").writelines(r)
if not os.path.exists(f"{W}/m"):
    subprocess.run([T, "train", "--data", f"{W}/train.svm", "--hierarchy", f"{D}/{name}/{tree}", "--out", f"{W}/m", "--quiet", "--threads", "1", "--cutoff", "none", "--max-sweeps", sys.argv[6]], check=True)
parent = {}
for l in open(f"{D}/{name}/{tree}"):
    p = l.split()
    if len(p) == 2 and not l.startswith("#"): parent.setdefault(p[1], p[0])
def path(c):
    out = [c]
    while out[-1] in parent: out.append(parent[out[-1]])
    return out[::-1]
classes = None
def scores(f, r):
    global classes
    out = subprocess.run([T, "predict", "--model", f"{W}/m", "--data", f"{W}/{f}.svm", "--scores", "--top", "1000000", "--out", "-", "--quiet", "--threads", "1"], check=True, capture_output=True, text=True).stdout.splitlines()
    if classes is None: classes = {c: i for i, c in enumerate(sorted(p.rpartition(":")[0] for p in out[0].split(",")))}
    S = np.empty((len(out), len(classes)))
    for i, l in enumerate(out):
        for p in l.split(","):
            c, _, v = p.rpartition(":"); S[i, classes[c]] = float(v)
    Y = np.zeros_like(S, bool)
    for i, l in enumerate(r):
        first = l.split(None, 1)[0] if not l[0].isspace() else ""
        for c in first.split(","):
            if c in classes: Y[i, classes[c]] = True
    return S, Y
SH, YH = scores("held", held); ST, YT = scores("test", test)
joint = YH.sum(1).max() <= 1 and YT.sum(1).max() <= 1
names = sorted(classes, key=classes.get)
depth = np.array([len(path(c)) for c in names]); levels = np.unique(depth); lev = np.searchsorted(levels, depth)
if joint:
    k = YH.sum(1) == 1; SH, YH = SH[k], YH[k]; k = YT.sum(1) == 1; ST, YT = ST[k], YT[k]
def softmax(Z): Z = Z - Z.max(1, keepdims=True); E = np.exp(Z); return E / E.sum(1, keepdims=True)
def loss(P, Y):
    P = np.clip(P, 1e-15, 1 - 1e-15)
    return float(-np.log(P[Y]).mean()) if joint else float(-(np.where(Y, np.log(P), np.log1p(-P))).mean())
def ece(P, Y):
    if joint: p, y = P.max(1), Y[np.arange(len(P)), P.argmax(1)]
    else: p, y = P.ravel(), Y.ravel()
    b = np.minimum((p * 15).astype(int), 14)
    n, sp, sy = (np.bincount(b, w, 15) for w in (None, p, y.astype(float)))
    return float(np.abs(sp - sy).sum() / len(p))
L = len(levels)
fam, kept = {}, {}
if joint:
    fam["one temperature"] = (lambda S, t: softmax(np.exp(t[0]) * S), [0.0])
    fam["slope and offset per depth of the class"] = (lambda S, t: softmax(np.exp(t[:L])[lev] * S + np.append(0, t[L:])[lev]), [0.0] * (2 * L - 1))
    anc = [[path(c)[:d] for c in names] for d in range(1, int(levels.max()) + 1)]
    groups = []
    for a in anc:
        ids = {}; g = np.array([ids.setdefault(tuple(x), len(ids)) for x in a]); groups.append(g)
    def chain(S, t):
        q = softmax(np.exp(t[0]) * S); logp = np.zeros_like(q)
        above = np.zeros(q.shape[1], int)
        for d, g in enumerate(groups):
            m = np.zeros((len(q), g.max() + 1)); np.add.at(m.T, g, q.T)
            z = np.log(np.maximum(m, 1e-300)) * np.exp(t[1 + d])
            up = np.zeros(g.max() + 1, int); up[g] = above
            mx = np.full((len(q), above.max() + 1), -np.inf); np.maximum.at(mx.T, up, z.T)
            e = np.exp(z - mx[:, up]); s = np.zeros_like(mx); np.add.at(s.T, up, e.T)
            logp += (np.log(np.maximum(e / s[:, up], 1e-300)))[:, g]; above = g
        return np.exp(logp)
    fam["a temperature per level of the way down"] = (chain, [0.0] * (1 + len(groups)))
else:
    sg = expit
    fam["one temperature"] = (lambda S, t: sg(np.exp(t[0]) * S + t[1]), [0.0, 0.0])
    fam["slope and offset per depth of the class"] = (lambda S, t: sg(np.exp(t[:L])[lev] * S + t[L:][lev]), [0.0] * (2 * L))
print(f"{name}: {len(rows)} training, {len(SH)} held out, {len(ST)} test, {len(names)} classes, depths {dict(zip(levels.tolist(), np.bincount(lev).tolist()))}, {'one label' if joint else 'sets'}")
for k, (f, t0) in fam.items():
    if "way down" in k: t0 = np.append(one[0], np.zeros(len(t0) - 1))
    if "per depth" in k: t0 = np.repeat(one, L) if not joint else np.append(np.full(L, one[0]), np.zeros(L - 1))
    r = minimize(lambda t: loss(f(SH, t), YH), np.array(t0, float), method="L-BFGS-B", options={"maxiter": 300, "maxfun": 100000})
    if k == "one temperature": one = r.x
    kept[k] = (f, r.x); P = f(ST, r.x)
    # spread of the difference by resampling the test rows
    base = P if k == "one temperature" else base
    g = np.random.default_rng(0); dl = []; de = []
    for _ in range(100 if k != "one temperature" else 0):
        i = g.integers(0, len(P), len(P)); dl.append(loss(P[i], YT[i]) - loss(base[i], YT[i])); de.append(ece(P[i], YT[i]) - ece(base[i], YT[i]))
    sd = f" (difference {loss(P,YT)-loss(base,YT):+.6f} ± {np.std(dl):.6f}, ECE {ece(P,YT)-ece(base,YT):+.6f} ± {np.std(de):.6f})" if dl else ""
    print(f"  {k}: held-out log-loss {r.fun:.6f}, test log-loss {loss(P, YT):.6f}, ECE {ece(P, YT):.6f}{sd}", flush=True)

from sklearn.isotonic import IsotonicRegression
def iso(f, t, what):
    PH, PT = f(SH, t), f(ST, t)
    g = IsotonicRegression(y_min=1e-6, y_max=1 - 1e-6, out_of_bounds="clip").fit(PH.ravel(), YH.ravel().astype(float))
    Q = g.predict(PT.ravel()).reshape(PT.shape)
    if joint: Q = Q / Q.sum(1, keepdims=True)
    print(f"  isotonic on {what}: test log-loss {loss(Q, YT):.6f}, ECE {ece(Q, YT):.6f}", flush=True)
for k, v in kept.items(): iso(*v, k)
