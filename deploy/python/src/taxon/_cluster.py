"""A cluster: jobs are submitted by the binary, which uploads their data, and followed over gRPC.

The messages are those of ``proto/taxon/v1`` in the sources. They are taken from the coordinator
itself, by gRPC's server reflection, so they are always those of its version.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np

from ._binary import binary, orderly, run, workspace
from ._errors import TaxonError, need
from ._estimators import _Classifier
from ._model import Model, load
from ._targets import Targets

__all__ = ["Cluster", "Job"]

_ENDED = ("DONE", "FAILED", "CANCELLED")

# A process of its own that ends a cluster when it is told to, or when its standard input ends, as it does with the
# Python that made the cluster, however that ends. It also removes the cluster's folder if that is a temporary one.
_KEEPER = """
import shutil, subprocess, sys
status = 0
if sys.stdin.buffer.read(1) != b"n":
    status = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode
if sys.argv[1]:
    shutil.rmtree(sys.argv[1], ignore_errors=True)
sys.exit(status)
"""


class Cluster:
    """A cluster's coordinator.

    Parameters
    ----------
    address : str
        The coordinator, as ``host:port``.
    ca, cert, key : str, optional
        PEM files: the certificate authority, and a certificate with its key.
    token : str, optional
        File with a token, in place of a certificate of one's own.

    Examples
    --------
    >>> with Cluster.local(workers=2) as cluster:  # doctest: +SKIP
    ...     clf = cluster.submit(HierarchicalClassifier(hierarchy=edges), X, y).wait().fetch()
    """

    def __init__(self, address: str, *, ca: str | None = None, cert: str | None = None, key: str | None = None, token: str | None = None) -> None:
        need("grpc_reflection", "cluster")
        import grpc
        from google.protobuf.descriptor_pool import DescriptorPool
        from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

        self.address = address
        self._flags = ["--coordinator", address]
        security = {"tls-ca": ca, "tls-cert": cert, "tls-key": key, "token-file": token}
        if any(security.values()):
            self._folder = tempfile.TemporaryDirectory(prefix="taxon-profile-")
            profile = Path(self._folder.name) / "profile"
            profile.write_text("".join(f"{name}: {json.dumps(os.path.abspath(path))}\n" for name, path in security.items() if path))
            self._flags += ["--profile", str(profile)]
        self._metadata = [("authorization", "Bearer " + Path(token).read_text().strip())] if token else []
        if ca:
            authority, own_key, own = (Path(p).read_bytes() if p else None for p in (ca, key, cert))
            self._channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(authority, own_key, own))
        else:
            self._channel = grpc.insecure_channel(address)
        self._pool = DescriptorPool(ProtoReflectionDescriptorDatabase(self._channel))
        self._end: Callable[[], None] = lambda: None

    @classmethod
    def local(cls, workers: int = 2, stores: int = 1, slots: int = 1, dir: str | None = None) -> "Cluster":
        """A cluster of processes on this machine.

        It ends at the end of ``with``, by :meth:`close`, when nothing refers to it any more, or with this process,
        also if that is killed.

        Parameters
        ----------
        workers, stores, slots : int
            Processes of each kind, and tasks at a time of each worker.
        dir : str, optional
            Its folder, which stays; a temporary one if left out.
        """
        need("grpc_reflection", "cluster")
        program = binary()
        with orderly():
            folder = "" if dir is not None else tempfile.mkdtemp(prefix="taxon-cluster-")
            where = os.path.abspath(dir) if dir is not None else str(Path(folder) / "cluster")
            down = [program, "cluster", "down", "--quiet", "--dir", where]
            keeper = subprocess.Popen([sys.executable, "-I", "-c", _KEEPER, folder, *down], start_new_session=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            counts = ["--workers", str(workers), "--stores", str(stores), "--slots", str(slots)]
            try:
                up = run(["cluster", "up", "--dir", where, *counts])
            except BaseException as e:  # a ValueError: nothing was started, and what runs in dir is not ours
                keeper.communicate(b"n" if isinstance(e, ValueError) else b"y")
                raise
            try:
                cluster = cls(up["coordinator"])
            except BaseException:
                keeper.communicate(b"y")
                raise
            cluster._end = weakref.finalize(cluster, _dismiss, keeper, os.getpid())
            return cluster

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, and the cluster if it was made by :meth:`local`."""
        self._channel.close()
        self._end()

    def submit(self, estimator: _Classifier, X: Any, y: Any, sample_weight: Any = None) -> "Job":
        """Queue the training of an estimator: its data are uploaded, and the call returns.

        Parameters
        ----------
        estimator : HierarchicalClassifier, TaxonClassifier or TaxonTextClassifier
            Says how to train.
        X, y, sample_weight : as for fit
            The data.

        Returns
        -------
        Job
            ``job.wait().fetch()`` is the estimator, fitted.
        """
        X, targets, weight = estimator._inputs(X, y, sample_weight)
        with workspace() as folder:
            options, expected = estimator._options(folder, targets, "submit")
            data = estimator._data(folder, X, targets, weight)
            out = run(["submit", "--method", estimator.method, *options, *data, *self._flags], expected=expected)
        return Job(self, out["job"], estimator, targets)

    def jobs(self) -> list["Job"]:
        """List the jobs that the coordinator knows.

        Returns
        -------
        list of Job
            Ended ones, too.
        """
        return [Job(self, j.job) for j in self._call("ListJobs").jobs]

    def job(self, name: str) -> "Job":
        """Take up a job by its id.

        Parameters
        ----------
        name : str
            As :attr:`Job.id` or ``taxon submit`` gives it.

        Returns
        -------
        Job
            It isn't looked up before it is used.
        """
        return Job(self, name)

    def workers(self) -> list[Any]:
        """List the workers.

        Returns
        -------
        list
            The messages ``WorkerInfo`` of the services.
        """
        return list(self._call("Workers").workers)

    def _method(self, name: str) -> Any:
        return self._pool.FindServiceByName("taxon.v1.Jobs").FindMethodByName(name)

    def _call(self, name: str, stream: bool = False, **fields: Any) -> Any:
        from google.protobuf.message_factory import GetMessageClass
        import grpc

        try:
            method = self._method(name)
        except grpc.RpcError as e:
            raise TaxonError(f"{self.address}: {e.details()}") from None
        request, reply = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
        kind = self._channel.unary_stream if stream else self._channel.unary_unary
        call = kind(f"/taxon.v1.Jobs/{name}", request_serializer=request.SerializeToString, response_deserializer=reply.FromString)
        try:
            return call(request(**fields), metadata=self._metadata)
        except grpc.RpcError as e:
            raise _explained(e) from None

    def _state(self, status: Any) -> str:
        field = status.DESCRIPTOR.fields_by_name["state"]
        return str(field.enum_type.values_by_number[status.state].name).rpartition("_")[2]


def _dismiss(keeper: subprocess.Popen[bytes], owner: int) -> None:
    """Has the keeper end its cluster. A process that was forked has no part in it."""
    if os.getpid() != owner:
        return
    _, said = keeper.communicate(b"y")
    if keeper.returncode != 0:
        raise TaxonError(f"the cluster did not end: {said.decode(errors='replace').strip()}")


def _explained(e: Any) -> Exception:
    import grpc

    wrong = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)
    return (ValueError if e.code() in wrong else TaxonError)(e.details() or str(e.code()))


class Job:
    """A training on a cluster.

    Parameters
    ----------
    cluster : Cluster
        Where it runs.
    job : str
        Its id.
    estimator, targets : optional
        What :meth:`Cluster.submit` sent.

    Attributes
    ----------
    id : str
        Its name, as ``taxon status`` takes it.
    """

    def __init__(self, cluster: Cluster, job: str, estimator: _Classifier | None = None, targets: Targets | None = None) -> None:
        self.cluster, self.id, self._estimator, self._targets = cluster, job, estimator, targets

    def __repr__(self) -> str:
        return f"<taxon.Job {self.id} on {self.cluster.address}>"

    def status(self) -> Any:
        """Ask where the job stands.

        Returns
        -------
        JobStatus
            The message of the services.
        """
        return self.cluster._call("Status", job=self.id)

    @property
    def state(self) -> str:
        """``QUEUED``, ``RUNNING``, ``DONE``, ``FAILED`` or ``CANCELLED``."""
        return self.cluster._state(self.status())

    def watch(self) -> Iterator[Any]:
        """Follow the job until it has ended.

        Yields
        ------
        JobStatus
            At each change.
        """
        import grpc

        try:
            yield from self.cluster._call("Watch", stream=True, job=self.id)
        except grpc.RpcError as e:
            raise _explained(e) from None

    def wait(self, callback: Callable[[Any], None] | None = None) -> "Job":
        """Follow the job to its end.

        Parameters
        ----------
        callback : callable, optional
            Called with each ``JobStatus``.

        Returns
        -------
        Job
            Itself.

        Raises
        ------
        TaxonError
            If it failed or was cancelled.
        """
        last = None
        for last in self.watch():
            if callback is not None:
                callback(last)
        state = self.cluster._state(last if last is not None else self.status())
        if state != "DONE":
            raise TaxonError(f"job {self.id}: {state.lower()}: {getattr(last, 'error', '')}".rstrip(": "))
        return self

    def cancel(self, discard: bool = False) -> None:
        """Stop the job.

        Parameters
        ----------
        discard : bool
            Drop what it has done. Without it the job stays resumable.
        """
        self.cluster._call("Cancel", job=self.id, discard=discard)

    def model(self) -> Model:
        """Fetch the model of a job that is done.

        Returns
        -------
        Model
            As :func:`taxon.load` reads it.
        """
        with workspace() as folder:
            out = str(folder / "model")
            run(["export", "--job", self.id, "--format", "model", "--out", out, *self.cluster._flags])
            return load(out)

    def fetch(self) -> Any:
        """Fetch the model into the estimator that was submitted.

        Returns
        -------
        estimator
            Fitted.
        """
        if self._estimator is None or self._targets is None:
            raise ValueError(f"job {self.id} was not submitted by this program: take its model()")
        model = self.model()
        return self._estimator._fitted(model, model.report, self._targets)
