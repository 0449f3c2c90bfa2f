"""What pip asks for first, and what it is told where the binary can't be built."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent.parent


def asked(folder, **env):
    """The first thing that pip asks a package, before it installs or builds anything."""
    pytest.importorskip("hatchling")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TAXON_")}
    done = subprocess.run([sys.executable, "-c", "import hatchling.build as b; print(b.get_requires_for_build_wheel())"], cwd=folder, env={**environment, **env},
                          capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_what_is_missing_is_said_first(tmp_path):
    copy = tmp_path / "other" / "python"
    shutil.copytree(HERE, copy, ignore=shutil.ignore_patterns("build", "dist", "__pycache__", "_bin"))
    here = Path(sys.executable).parent
    (tmp_path / "bin").mkdir()
    for where, env, match in ((copy, {}, "the Go sources"), (HERE, {"PATH": str(tmp_path / "bin")}, "Go 1.26 or later"), (copy, {"TAXON_BINARY": "/nowhere/taxon"}, "/nowhere/taxon"),
                              (copy, {"TAXON_TARGET": "plan9/amd64"}, "plan9/amd64")):
        status, out, err = asked(where, **env)
        assert status == 1 and out == "" and err.startswith("taxon: ") and match in err and err.count("\n") == 1, (err, here)
    (tmp_path / "go.mod").write_text("module other\n")  # another module's folder
    assert "the Go sources" in asked(copy)[2]
    binary = tmp_path / "taxon"
    binary.write_text("#!/bin/sh\n")
    assert asked(copy, TAXON_BINARY=str(binary)) == (0, "[]\n", "")
    if shutil.which("go"):
        assert asked(HERE) == (0, "[]\n", "")
