"""Builds the Go binary into the wheel.

TAXON_TARGET=GOOS/GOARCH cross-compiles (linux/amd64, linux/arm64, darwin/arm64); without it the
binary is for this machine. TAXON_BINARY takes a binary that is there in place of a build, and
TAXON_LICENSES the licences of what is inside it.
"""

import os
import shutil
import subprocess
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TAGS = {
    "linux/amd64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux/arm64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin/arm64": "macosx_12_0_arm64",
    "darwin/amd64": "macosx_12_0_x86_64",
}


class BuildHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict) -> None:
        root = Path(self.root)
        sources = root.parent.parent
        target = os.environ.get("TAXON_TARGET") or _here()
        if target not in TAGS:
            raise RuntimeError(f"taxon: no wheel for {target}: one of {', '.join(TAGS)}")
        built = root / "build" / target.replace("/", "-") / "taxon"
        built.parent.mkdir(parents=True, exist_ok=True)
        if os.environ.get("TAXON_BINARY"):
            shutil.copy2(os.environ["TAXON_BINARY"], built)
        else:
            if not (sources / "go.mod").is_file():
                raise RuntimeError("taxon: the Go sources are not beside this folder: build it in a clone of the repository, or install a wheel")
            if shutil.which("go") is None:
                raise RuntimeError("taxon: building needs Go 1.26 or later on the PATH; a wheel has the binary inside")
            goos, goarch = target.split("/")
            subprocess.run(["go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", str(built), "./cmd/taxon"],
                           cwd=sources, check=True, env={**os.environ, "CGO_ENABLED": "0", "GOOS": goos, "GOARCH": goarch})
        built.chmod(0o755)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TAGS[target]}"
        if version != "editable":
            build_data["force_include"][str(built)] = "taxon/_bin/taxon"
            if os.environ.get("TAXON_LICENSES"):
                build_data["force_include"][os.environ["TAXON_LICENSES"]] = "taxon/_bin/LICENSES.txt"


def _here() -> str:
    out = subprocess.run(["go", "env", "GOOS", "GOARCH"], capture_output=True, text=True, check=True).stdout.split()
    return "/".join(out)
