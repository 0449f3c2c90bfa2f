"""taxon: linear classifiers for large class hierarchies, trained jointly and with a certificate.

``HierarchicalClassifier``, ``TaxonClassifier`` and ``TaxonTextClassifier`` are estimators of scikit-learn's
kind; ``load`` reads models with NumPy and SciPy alone; ``Cluster`` trains on a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import TaxonError

if TYPE_CHECKING:
    from ._cluster import Cluster, Job
    from ._estimators import HierarchicalClassifier, TaxonClassifier, TaxonTextClassifier
    from ._model import Model, load

__version__ = "0.1.0"
__all__ = ["Cluster", "HierarchicalClassifier", "Job", "Model", "TaxonClassifier", "TaxonError", "TaxonTextClassifier", "load"]

_LAZY = {
    "HierarchicalClassifier": "_estimators", "TaxonClassifier": "_estimators", "TaxonTextClassifier": "_estimators",
    "Cluster": "_cluster", "Job": "_cluster", "Model": "_model", "load": "_model",
}


def __getattr__(name: str) -> Any:
    # load needs neither scikit-learn nor gRPC.
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
