"""The binary is built once for all tests, unless TAXON_BINARY names one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE / "src"))


def pytest_configure(config):
    if not os.environ.get("TAXON_BINARY"):
        out = HERE / "build" / "test" / "taxon"
        out.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["go", "build", "-o", str(out), "./cmd/taxon"], cwd=HERE.parent.parent, check=True)
        os.environ["TAXON_BINARY"] = str(out)


@pytest.fixture
def families():
    """Nine classes in three families: rows, labels, edges."""
    rng = np.random.default_rng(0)
    family = rng.normal(size=(3, 30))
    centre = family[np.arange(9) // 3] + 0.7 * rng.normal(size=(9, 30))
    y = rng.integers(0, 9, 300)
    X = centre[y] + rng.normal(size=(300, 30))
    X[np.abs(X) < 0.4] = 0
    names = np.array([f"c{k}" for k in range(9)])
    edges = [(f"f{k // 3}", f"c{k}") for k in range(9)]
    return X / np.linalg.norm(X, axis=1, keepdims=True), names[y], edges
