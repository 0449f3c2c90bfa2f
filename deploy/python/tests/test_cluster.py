"""Jobs on a cluster of processes on this machine."""

import pytest

pytest.importorskip("grpc_reflection")

from taxon import Cluster, HierarchicalClassifier, TaxonError  # noqa: E402


def test_nobody_there():
    with pytest.raises(TaxonError, match="localhost:1: .*onnect"):
        Cluster("localhost:1").jobs()


def test_jobs(families, tmp_path):
    X, y, edges = families
    here = HierarchicalClassifier(hierarchy=edges).fit(X, y)
    with Cluster.local(workers=2, stores=1, dir=str(tmp_path / "c")) as cluster:
        job = cluster.submit(HierarchicalClassifier(hierarchy=edges), X, y)
        seen = []
        clf = job.wait(seen.append).fetch()
        assert job.state == "DONE" and seen
        assert clf.report_["weights_sha256"] == here.report_["weights_sha256"]
        assert (clf.predict(X) == here.predict(X)).all()
        assert [j.id for j in cluster.jobs()] == [job.id] and len(cluster.workers()) == 2
        assert cluster.job(job.id).model().labels == clf.model_.labels
        with pytest.raises(ValueError, match="no such job"):
            cluster.job("nothing").status()
        long = cluster.submit(HierarchicalClassifier(hierarchy=edges, gap=1e-12, C=1e6), X, y)
        long.cancel(discard=True)
        assert long.state == "CANCELLED"
