"""Builds the Go binary into the wheel.

TAXON_TARGET=GOOS/GOARCH cross-compiles (linux/amd64, linux/arm64, darwin/arm64); without it the
binary is for this machine. TAXON_BINARY takes a binary that is there in place of a build, and
TAXON_LICENSES the licences of what is inside it.
"""

import os
import platform
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
    def dependencies(self) -> list:
        """Is asked for before anything is installed or built: what is missing is said then."""
        _check(_sources(self.root))
        return []

    def initialize(self, version: str, build_data: dict) -> None:
        sources = _sources(self.root)
        _check(sources)
        target = _target()
        built = Path(self.root) / "build" / target.replace("/", "-") / "taxon"
        built.parent.mkdir(parents=True, exist_ok=True)
        if os.environ.get("TAXON_BINARY"):
            shutil.copy2(os.environ["TAXON_BINARY"], built)
        else:
            goos, goarch = target.split("/")
            flags = ["-trimpath", "-tags=grpcnotrace", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", str(built)]
            done = subprocess.run(["go", "build", *flags, "./cmd/taxon"], cwd=sources,
                                  env={**os.environ, "CGO_ENABLED": "0", "GOOS": goos, "GOARCH": goarch})
            if done.returncode != 0:
                raise SystemExit("taxon: the binary could not be built: go says why above")
        built.chmod(0o755)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TAGS[target]}"
        if version != "editable":
            build_data["force_include"][str(built)] = "taxon/_bin/taxon"
            if os.environ.get("TAXON_LICENSES"):
                build_data["force_include"][os.environ["TAXON_LICENSES"]] = "taxon/_bin/LICENSES.txt"


def _sources(root: str) -> Path:
    return Path(root).parent.parent


def _check(sources: Path) -> None:
    """Ends with one line if the wheel can't come to be."""
    if _target() not in TAGS:
        raise SystemExit(f"taxon: there is no wheel for {_target()}: TAXON_TARGET is one of {', '.join(TAGS)}")
    given = os.environ.get("TAXON_BINARY")
    if given:
        if not os.path.isfile(given):
            raise SystemExit(f"taxon: {given}, which TAXON_BINARY names, is no file")
        return
    module = sources / "go.mod"
    ours = module.is_file() and module.read_text(encoding="utf-8").startswith("module taxon\n")
    if not ours or not (sources / "cmd" / "taxon").is_dir():
        raise SystemExit("taxon: the Go sources, from which the binary inside is built, are not here: this folder must "
                         "be deploy/python of a clone of the repository. Install from the clone, or a wheel, or let "
                         "TAXON_BINARY name a binary of taxon")
    if shutil.which("go") is None:
        raise SystemExit("taxon: Go 1.26 or later, which builds the binary inside, is not on the PATH. Install it "
                         "(https://go.dev/dl), or a wheel, or let TAXON_BINARY name a binary of taxon")
    # It fails where go is too old.
    known = subprocess.run(["go", "list", "-m"], cwd=sources, capture_output=True, text=True)
    if known.returncode != 0:
        raise SystemExit(f"taxon: Go 1.26 or later builds the binary inside: {known.stderr.strip()}")


def _target() -> str:
    """TAXON_TARGET, or this machine's GOOS/GOARCH."""
    machine = platform.machine().lower()
    here = f"{platform.system().lower()}/{ {'x86_64': 'amd64', 'aarch64': 'arm64'}.get(machine, machine)}"
    return os.environ.get("TAXON_TARGET") or here
