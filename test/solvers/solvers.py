"""Holds trainings of the program against other solvers, on small random problems.

    python solvers.py TAXON [CASES [METHOD...]]       pip install cvxpy clarabel scikit-learn

Each problem is written out from docs/methods.md and solved anew: quadratic and cone programmes by cvxpy and Clarabel
(hm3 with a constraint for each of all labelings), one machine a node by scikit-learn's LinearSVC (LIBLINEAR), ridge
regressions in closed form. ot is not convex as it is written; its dual is, jointly in the duals and the signs, and
whatever the weights are, no objective is below it. The problems have chains, only children, labels of inner nodes,
several roots, classes with one row, equal rows with unlike labels, rows without features, weights, and C of 0.001 to 1000.
"""

import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

import cvxpy as cp
import numpy as np
from sklearn.svm import LinearSVC

VIRTUAL = "*"


def ancestors(edges, n):
    up = {c: p for p, c in edges}
    out = []
    while n in up:
        n = up[n]
        out.append(n)
    return out


class Tree:
    """The tree that is trained: leaves spawned, empty ones pruned, roots joined."""

    def __init__(self, edges, used, spawn):
        names = {n for e in edges for n in e} | set(used)
        self.parent = {n: None for n in names} | {c: p for p, c in edges}
        inner = {p for p, _ in edges}
        self.leaf = {}  # of a label
        if spawn:
            for label in used:
                self.leaf[label] = label
                if label in inner:
                    self.leaf[label] = "+" + label
                    self.parent["+" + label] = label
            kept = set()
            for n in self.leaf.values():
                kept |= set(self.path(n))
        else:
            kept = {a for label in used for a in self.path(label)}
        self.parent = {n: p for n, p in self.parent.items() if n in kept}
        roots = [n for n, p in self.parent.items() if p is None]
        self.root = roots[0]
        if len(roots) > 1:
            self.root = VIRTUAL
            self.parent |= {n: VIRTUAL for n in roots}
            self.parent[VIRTUAL] = None
        self.nodes = [n for n in self.parent if n != self.root]
        self.children = {n: [c for c in self.nodes if self.parent[c] == n] for n in self.parent}

    def path(self, n):
        """n and all above it."""
        out = []
        while n is not None:
            out.append(n)
            n = self.parent[n]
        return out

    def below(self, n):
        return [c for c in self.parent if n in self.path(c)]

    def leaves(self):
        return [n for n in self.parent if not self.children[n] and n != self.root]

    def distance(self, a, b):
        return len(set(self.path(a)) ^ set(self.path(b)))


class Problem:
    def __init__(self, seed, several, most):
        r = self.random = random.Random(seed)
        depth = {"n0": 0}
        self.edges = []
        for k in range(1, r.randint(3, most)):
            parent = r.choice([n for n in depth if depth[n] < 3])
            depth[f"n{k}"] = depth[parent] + 1
            self.edges.append((parent, f"n{k}"))
        self.chain = r.random() < 0.3
        if self.chain:  # an only child between a node and its first child
            p, c = self.edges[0]
            self.edges[0] = (p, "m")
            self.edges.append(("m", c))
            depth["m"] = 1
        if r.random() < 0.25 and len(self.edges) > 2:  # without its root: several of them
            rest = [e for e in self.edges if e[0] != "n0"]
            if rest:
                self.edges = rest
        inner = {p for p, _ in self.edges}
        names = sorted({n for e in self.edges for n in e})
        pool = [n for n in names if n not in inner] + r.sample(sorted(inner), min(len(inner), r.randint(0, 2)))
        rows, d = r.randint(5, 14), r.randint(2, 4)
        self.x = np.array([[r.randint(-32, 32) / 32 * (r.random() < 0.8) for _ in range(d)] for _ in range(rows)])
        self.labels = [[r.choice(pool)] for _ in range(rows)]
        self.labels[0], self.labels[1] = [pool[0]], [pool[-1]]
        for _ in range(r.randint(0, 3)):  # equal rows
            a, b = r.sample(range(rows), 2)
            self.x[a] = self.x[b]
        if r.random() < 0.3:
            self.x[r.randrange(2, rows)] = 0
        if several:
            for i in range(2, rows):
                if r.random() < 0.3:
                    self.labels[i] = sorted(set(r.choices(pool, k=2)))
                elif r.random() < 0.15:
                    self.labels[i] = []
            for i, l in enumerate(self.labels):  # one of two labels may be above the other: it says no more
                up = {a for n in l for a in ancestors(self.edges, n)}
                self.labels[i] = [n for n in l if n not in up]
        self.used = sorted({l for row in self.labels for l in row})
        self.c = r.choice([0.001, 0.01, 0.1, 1, 10, 100, 1000])
        self.bias = r.choice([0, 1, 1, 2])
        self.weight = np.array([r.choice([0.25, 0.5, 1, 2, 3]) for _ in range(rows)]) if r.random() < 0.3 else np.ones(rows)
        self.weighted = self.weight.min() < 1 or self.weight.max() > 1
        self.xb = np.hstack([self.x, np.full((rows, 1), self.bias)]) if self.bias else self.x
        extra = np.array([[r.randint(-64, 64) / 32 for _ in range(d)] for _ in range(10)])
        self.test = np.vstack([self.x, extra])
        self.testb = np.hstack([self.test, np.full((len(self.test), 1), self.bias)]) if self.bias else self.test

    def write(self, folder):
        def lines(x, labels):
            return "".join(",".join(l) + " " + " ".join(f"{k + 1}:{v:.9g}" for k, v in enumerate(row) if v) + "\n" for row, l in zip(x, labels))

        (folder / "train").write_text(lines(self.x, self.labels))
        (folder / "test").write_text(lines(self.test, [[self.used[0]]] * len(self.test)))
        (folder / "tree").write_text("".join(f"{p} {c}\n" for p, c in self.edges))
        (folder / "weights").write_text("".join(f"{w:g}\n" for w in self.weight))


class Run:
    """What the program made of a problem."""

    def __init__(self, taxon, folder, p, method, flags):
        p.write(folder)
        model = folder / "model"
        command = [taxon, "train", "--data", folder / "train", "--out", model, "--force", "--json", "--quiet", "--method", method, "--gap", "1e-9",
                   "--C", str(p.c), "--bias", str(p.bias), "--threads", "1", "--cutoff", "none", *flags]
        if "none" not in flags[:1]:
            command += ["--hierarchy", folder / "tree"]
        if p.weighted:
            command += ["--instance-weights", folder / "weights"]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        self.report = json.loads(done.stdout)
        self.primal, self.dual = self.report["objective"], self.report["dual"]
        call = lambda *a: subprocess.run([str(taxon), *map(str, a)], capture_output=True, text=True, check=True).stdout  # noqa: E731
        self.w = {}
        for line in call("export", "--model", model, "--out", "-", "--quiet").splitlines():
            kind, name, *entries = line.split(" ")
            v = np.zeros(p.xb.shape[1])
            for e in entries:
                k, _, value = e.partition(":")
                v[-1 if k == "bias" else int(k) - 1] = float(value)
            self.w["+" + name if kind == "spawned" else VIRTUAL if kind == "virtual" else name] = v
        self.predicted = [tuple(sorted(filter(None, l.split(",")))) for l in call("predict", "--model", model, "--data", folder / "test", "--quiet").splitlines()]


def solve(problem):
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11, max_iter=400)
    if problem.status not in ("optimal", "optimal_inaccurate"):
        raise RuntimeError("Clarabel: " + problem.status)
    return problem.value


def close(run, value, tolerance=1e-5):
    """Both bounds of the program enclose the optimum, to its tolerance."""
    scale = max(abs(value), 1e-12)
    above, below = (run.primal - value) / scale, (value - run.dual) / scale
    if not (-2e-6 <= above <= tolerance and -2e-6 <= below <= tolerance):
        return f"objective {run.primal:.9g}, dual {run.dual:.9g}, the other solver {value:.9g}"
    return ""


def multiclass(p, tree, method):
    """msvm, flatmult, hiermult, hsvm, transfer, mlr and the rr forms: one programme, or one a node."""
    y = [tree.leaf[l[0]] for l in p.labels]
    c = p.c * p.weight
    if method in ("flatmult", "hsvm", "transfer"):
        c = c / p.weight.sum()
    d = p.xb.shape[1]
    if method == "hiermult":
        total = 0
        for n in tree.parent:
            if len(tree.children[n]) < 2:
                continue
            rows = [i for i in range(len(y)) if n in tree.path(y[i])]
            total += crammer_singer(p.xb[rows], [next(a for a in tree.path(y[i]) if tree.parent[a] == n) for i in rows], tree.children[n], p.c * p.weight[rows] / p.weight[rows].sum())
        return total
    if method in ("msvm", "flatmult"):
        return crammer_singer(p.xb, y, sorted(set(y)), c)
    nodes = tree.nodes + ([tree.root] if method.startswith("rr") else [])
    w = {n: cp.Variable(d) for n in nodes} if method != "mlr" else {n: cp.Variable(d) for n in set(y)}
    total = sum(cp.sum_squares(v) for v in w.values()) / 2
    if method == "transfer":
        total += sum(cp.sum_squares(w[n] - w[m]) for n in tree.nodes for m in tree.children[n]) / 2

    def score(leaf, x):
        return sum(w[a] @ x for a in tree.path(leaf) if a in w) if method != "mlr" else w[leaf] @ x

    leaves = tree.leaves()
    for i, x in enumerate(p.xb):
        if method == "transfer":
            loss = [1 - (w[a] - w[b]) @ x for a in tree.path(y[i]) if a != tree.root for b in tree.children[tree.parent[a]] if b != a]
        elif method in ("mlr", "rr-mlr"):
            total += c[i] * (cp.log_sum_exp(cp.hstack([score(r, x) for r in (leaves if method == "rr-mlr" else sorted(w))])) - score(y[i], x))
            continue
        else:
            slack = lambda r: tree.distance(y[i], r) / 2 if method == "hsvm" else 1  # noqa: E731
            loss = [slack(r) * (1 - score(y[i], x) + score(r, x)) for r in leaves if r != y[i]]
        if loss:
            total += c[i] * cp.maximum(0, *loss)
    return solve(cp.Problem(cp.Minimize(total)))


def crammer_singer(x, y, classes, c):
    w = {m: cp.Variable(x.shape[1]) for m in classes}
    total = sum(cp.sum_squares(v) for v in w.values()) / 2
    for i in range(len(y)):
        others = [1 + (w[m] - w[y[i]]) @ x[i] for m in classes if m != y[i]]
        if others:
            total += c[i] * cp.maximum(0, *others)
    return solve(cp.Problem(cp.Minimize(total)))


def orthogonal(p, tree, alpha):
    """The alpha used, a function of weights that is ot's objective, and the greatest lower bound of it."""
    nodes, y = tree.nodes, [tree.leaf[l[0]] for l in p.labels]
    at = {n: k for k, n in enumerate(nodes)}
    size = np.array([len(tree.below(n)) for n in nodes], float)
    pairs = [(at[a], at[n]) for n in nodes for a in tree.path(n)[1:] if a in at]

    def least(alpha):
        m = np.diag(size)
        for a, b in pairs:
            m[a, b] = m[b, a] = -alpha
        return np.linalg.eigvalsh(m)[0]

    while least(alpha) <= 1e-6:
        alpha /= 2
    margins = [(i, at[a], at[b]) for i in range(len(y)) for a in tree.path(y[i]) if a in at for b in tree.children[tree.parent[a]] if b != a]
    c = p.c * p.weight / p.weight.sum()

    def objective(w):
        loss = np.zeros(len(y))
        for i, a, b in margins:
            loss[i] = max(loss[i], 1 - (w[a] - w[b]) @ p.xb[i])
        return (size * (w**2).sum(1)).sum() / 2 + alpha * sum(abs(w[a] @ w[b]) for a, b in pairs) + c @ loss

    if not margins:
        return alpha, objective, 0
    duals = cp.Variable(len(margins), nonneg=True)
    flow = np.zeros((len(nodes), p.xb.shape[1], len(margins)))
    for k, (i, a, b) in enumerate(margins):
        flow[a, :, k] += p.xb[i]
        flow[b, :, k] -= p.xb[i]
    v = cp.reshape(flow.reshape(-1, len(margins)) @ duals, (len(nodes), p.xb.shape[1]), order="C")
    limits, cost = [], cp.sum(cp.multiply(1 / size[:, None], cp.square(v)))
    if pairs:
        signs = cp.Variable(len(pairs))
        limits = [signs <= 1, signs >= -1]
        m = np.diag(size)
        for k, (a, b) in enumerate(pairs):
            e = np.zeros((len(nodes), len(nodes)))
            e[a, b] = e[b, a] = alpha
            m = m + signs[k] * e
        cost = cp.matrix_frac(v, m)
    for i in range(len(y)):
        mine = [k for k, t in enumerate(margins) if t[0] == i]
        if mine:
            limits.append(cp.sum(duals[mine]) <= c[i])
    return alpha, objective, solve(cp.Problem(cp.Maximize(cp.sum(duals) - cost / 2), limits))


def paths(p, tree, loss):
    """hm3 by a constraint for each labeling: the optimum, and the best unions of partial paths of the test rows with their lead."""
    order = sorted(tree.parent, key=lambda n: len(tree.path(n)))
    real = [n for n in order if n != VIRTUAL]
    weight = {}
    for n in order:
        up = tree.parent[n]
        if loss == "sibl":
            weight[n] = 1 if up is None else weight[up] / len(tree.children[up])
        else:
            weight[n] = len(tree.below(n)) / len(real) if loss == "subtree" else 1
    edges = [n for n in order if tree.parent[n] is not None]
    d = p.xb.shape[1]
    w = cp.Variable((4 * len(edges), d))
    column = {(n, a, b): 4 * k + 2 * a + b for k, n in enumerate(edges) for a in (0, 1) for b in (0, 1)}
    every = [dict(zip(order, bits)) for bits in itertools.product((0, 1), repeat=len(order))]

    def phi(y):
        out = np.zeros(4 * len(edges))
        for n in edges:
            out[column[n, y[tree.parent[n]], y[n]]] = 1
        return out

    def cost(t, y):
        total = 0
        for n in real:
            up = tree.parent[n]
            if y[n] != t[n] and (loss == "delta" or up is None or up == VIRTUAL or y[up] == t[up]):
                total += weight[n]
        return total

    all_phi = np.array([phi(y) for y in every])
    total = cp.sum_squares(w) / 2
    for i, x in enumerate(p.xb):
        on = {a for l in p.labels[i] for a in tree.path(l)}
        t = {n: int(n in on) for n in order}
        score = w @ x
        total += p.c * p.weight[i] * cp.max(np.array([cost(t, y) for y in every]) - (phi(t) - all_phi) @ score)
    value = solve(cp.Problem(cp.Minimize(total)))
    unions = [y for y in every if all(not y[n] or tree.parent[n] is None or y[tree.parent[n]] for n in order)]
    unions_phi = np.array([phi(y) for y in unions])
    said = []
    for x in p.testb:
        s = unions_phi @ (w.value @ x)
        best, second = np.argsort(-s)[:2] if len(s) > 1 else (0, 0)
        y = unions[best]
        lowest = tuple(sorted(n for n in real if y[n] and not any(y[c] for c in tree.children[n])))
        said.append((lowest, s[best] - s[second]))
    return value, said


def machine(x, sign, c):
    """An SVM with hinge loss by LIBLINEAR, or by a quadratic programme where all rows are of one side."""
    if len(set(sign)) == 2:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            w = LinearSVC(loss="hinge", C=1, fit_intercept=False, tol=1e-10, max_iter=3_000_000, dual=True).fit(x, sign, sample_weight=c).coef_[0]
    else:
        v = cp.Variable(x.shape[1])
        solve(cp.Problem(cp.Minimize(cp.sum_squares(v) / 2 + c @ cp.pos(1 - cp.multiply(sign, x @ v)))))
        w = v.value
    return w, w @ w / 2 + c @ np.maximum(0, 1 - sign * (x @ w))


def check(taxon, folder, method, seed):
    """What differs; nothing if nothing does."""
    several = method in ("hm3", "h-svm", "h-rls")
    p = Problem(seed, several, {"hm3": 5, "ot": 8}.get(method, 9))
    tree = Tree(p.edges, p.used, not several)
    flags, faults = [], []
    r = p.random
    if len(p.used) < 2 or method in ("td", "hiermult", "transfer", "ot", "hsvm") and all(len(c) < 2 for c in tree.children.values()):
        return None
    if method in ("msvm", "mlr", "flatmult"):
        run = Run(taxon, folder, p, method, flags)
        return [close(run, multiclass(p, tree, method))]
    if method in ("hiermult", "hsvm", "transfer", "rr-msvm", "rr-mlr"):
        run = Run(taxon, folder, p, method, flags)
        return [close(run, multiclass(p, tree, method))]
    if method == "ot":
        alpha = r.choice([1, 1, 0.5, 0.1])
        run = Run(taxon, folder, p, method, ["--x", f"alpha={alpha}"])
        used, objective, bound = orthogonal(p, tree, alpha)
        if abs(run.report["alpha_used"] - used) > 1e-12:
            faults.append(f"alpha {run.report['alpha_used']}, not {used}")
        mine = objective(np.array([run.w.get(n, np.zeros(p.xb.shape[1])) for n in tree.nodes]))
        if abs(mine - run.primal) > 3e-5 * mine:  # weights are written in float32
            faults.append(f"the objective of the exported weights is {mine:.9g}, not {run.primal:.9g}")
        return [*faults, close(run, bound)]
    if method == "hm3":
        loss = ["delta", "unif", "sibl", "subtree"][seed % 4]
        run = Run(taxon, folder, p, method, ["--x", f"label-loss={loss}"])
        value, said = paths(p, tree, loss)
        for i, (labels, lead) in enumerate(said):
            if lead > 1e-3 and run.predicted[i] != labels:
                faults.append(f"row {i}: {run.predicted[i]}, not {labels}, which leads by {lead:.3g}")
        return [*faults, close(run, value, 1e-4)]
    # one problem a node
    weight = 1 if method == "h-rls" else r.choice([1, 1, 4])
    run = Run(taxon, folder, p, method, [] if weight == 1 else ["--positive-weight", str(weight)])
    total, w = 0, {}
    for n in tree.parent:
        up = tree.parent[n]
        if n == VIRTUAL or method == "td" and (up is None or len(tree.children[up]) < 2):
            continue
        inside = [{a for l in row for a in tree.path(tree.leaf.get(l, l))} for row in p.labels]
        rows = [i for i, on in enumerate(inside) if up is None or up == VIRTUAL or up in on]
        sign = np.array([1.0 if n in inside[i] else -1.0 for i in rows])
        c = p.c * p.weight[rows] * np.where(sign > 0, weight, 1)
        x = p.xb[rows]
        if method == "h-rls":
            w[n] = np.linalg.solve(np.eye(x.shape[1]) + x.T @ (c[:, None] * x), x.T @ (c * sign))
            total += w[n] @ w[n] / 2 + c @ (sign - x @ w[n]) ** 2 / 2
        else:
            w[n], value = machine(x, sign, c)
            total += value
    faults.append(close(run, total))
    for i, x in enumerate(p.testb):
        said, lead = [], np.inf
        if method == "td":
            n = tree.root
            while tree.children[n]:
                ranked = sorted(tree.children[n], key=lambda m: -(w[m] @ x) if m in w else 0)
                if len(ranked) > 1:
                    lead = min(lead, (w[ranked[0]] - w[ranked[1]]) @ x)
                n = ranked[0]
            said = [n.lstrip("+")]
        else:
            on = set()
            for n in sorted(w, key=lambda n: len(tree.path(n))):
                up = tree.parent[n]
                if up is None or up == VIRTUAL or up in on:
                    lead = min(lead, abs(w[n] @ x))
                    if w[n] @ x > 0:
                        on.add(n)
            said = [n for n in on if not any(m in on for m in tree.children[n])]
        if lead > 1e-4 * max(1, np.abs(x).max()) and run.predicted[i] != tuple(sorted(said)):
            faults.append(f"row {i}: {run.predicted[i]}, not {sorted(said)}, which leads by {lead:.3g}")
    return faults


METHODS = ["ot", "hm3", "td", "h-svm", "h-rls", "msvm", "mlr", "flatmult", "hiermult", "hsvm", "transfer", "rr-msvm", "rr-mlr"]


def main():
    taxon, cases = sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else 50
    failed = 0
    for method in sys.argv[3:] or METHODS:
        done, bad, unsolved, seed = 0, 0, 0, 0
        while done < cases:
            seed += 1
            with tempfile.TemporaryDirectory() as folder:
                try:
                    faults = check(taxon, pathlib.Path(folder), method, seed)
                except (RuntimeError, cp.SolverError) as e:
                    if "Clarabel" not in str(e) and not isinstance(e, cp.SolverError):
                        raise
                    unsolved += 1
                    continue
            if faults is None:
                continue
            done += 1
            faults = [f for f in faults if f]
            bad += bool(faults)
            for f in faults:
                print(f"{method}, case {seed}: {f}", flush=True)
        print(f"{method}: {done - bad} of {done} problems agree" + (f"; {unsolved} more the other solver did not solve" if unsolved else ""), flush=True)
        failed += bad
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
