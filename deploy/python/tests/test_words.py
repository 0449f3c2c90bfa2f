"""Type hints and docstrings."""

import doctest
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import taxon

HERE = Path(__file__).resolve().parent.parent

# Not asked for: a longer text, an example and a "see also" everywhere; a summary on a line of its own.
STYLE = {"ES01", "EX01", "SA01", "GL01", "SS06"}


def public():
    """All names a user meets, with the methods and properties that the package wrote itself."""
    for name in taxon.__all__:
        thing = getattr(taxon, name)
        yield f"taxon.{name}"
        for member, value in inspect.getmembers_static(thing) if inspect.isclass(thing) else ():
            value = getattr(value, "fget", None) or getattr(value, "fn", None) or getattr(value, "__func__", value)
            if not member.startswith("_") and getattr(value, "__module__", "").startswith("taxon"):
                yield f"taxon.{name}.{member}"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the source is the same: read on a newer Python")
def test_numpydoc():
    validate = pytest.importorskip("numpydoc.validate").validate
    pytest.importorskip("grpc_reflection")
    names = list(public())
    assert {"taxon.load", "taxon.Model.predict_sets", "taxon.TaxonTextClassifier.predict_proba", "taxon.Job.wait", "taxon.Model.report"} <= set(names)
    assert {n: wrong for n in names if (wrong := [e for e in validate(n)["errors"] if e[0] not in STYLE])} == {}


def test_examples_of_docstrings():
    import taxon._estimators

    result = doctest.testmod(taxon._estimators)
    assert result.attempted >= 9 and result.failed == 0


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="NumPy's own types are others before 2.0")
def test_types():
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", "/dev/null"], cwd=HERE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
