"""A training on a cluster: here one of processes on this machine."""

from sklearn.datasets import load_iris

from taxon import Cluster, HierarchicalClassifier

X, y = load_iris(return_X_y=True)
with Cluster.local(workers=2) as cluster:
    job = cluster.submit(HierarchicalClassifier(hierarchy=[("large", "1"), ("large", "2"), ("small", "0")], C=0.1), X, y)
    clf = job.wait(lambda status: print("sweep", status.sweep)).fetch()
print(f"{clf.score(X, y):.3f}")
