"""Checks a release: built twice with the same bytes, each file what it says, and this machine's wheel trains.

    python deploy/release_check.py [DIR]      # DIR: a release that `make release` has built (default: dist)

The second build is of a fresh clone in another folder, with an empty build cache. TARGETS=linux/amd64 builds that target alone there,
as CI does.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The first bytes of a program: ELF of 64 bits with its machine, or Mach-O with its processor.
KINDS = {"linux/amd64": (b"\x7fELF\x02", 18, b"\x3e\x00"), "linux/arm64": (b"\x7fELF\x02", 18, b"\xb7\x00"), "darwin/arm64": (b"\xcf\xfa\xed\xfe", 4, b"\x0c\x00\x00\x01")}
TAGS = {"linux/amd64": "manylinux_2_17_x86_64", "linux/arm64": "manylinux_2_17_aarch64", "darwin/arm64": "macosx_12_0_arm64"}


def need(holds: bool, what: str) -> None:
    if not holds:
        sys.exit(f"release check: {what}")


def program(raw: bytes, target: str, where: str) -> None:
    magic, at, machine = KINDS[target]
    need(raw.startswith(magic) and raw[at : at + len(machine)] == machine, f"{where}: no program for {target}")
    if target.startswith("linux"):  # static: no segment names an interpreter (PT_INTERP)
        begin, size, count = (int.from_bytes(raw[a:b], "little") for a, b in ((32, 40), (54, 56), (56, 58)))
        kinds = [int.from_bytes(raw[begin + k * size : begin + k * size + 4], "little") for k in range(count)]
        need(kinds != [] and 3 not in kinds, f"{where}: not static")


def contents(dist: Path) -> Path:
    """Checks all files; returns the wheel for this machine."""
    version = next(line.split('"')[1] for line in (ROOT / "deploy/python/pyproject.toml").read_text().splitlines() if line.startswith("version = "))
    sums = dict(reversed(line.split("  ")) for line in (dist / "SHA256SUMS").read_text().splitlines())
    need(set(sums) == {p.name for p in dist.iterdir()} - {"SHA256SUMS"}, "SHA256SUMS does not name the files that are there")
    for name, value in sums.items():
        need(hashlib.sha256((dist / name).read_bytes()).hexdigest() == value, f"{name}: other bytes than SHA256SUMS has")
    modules = subprocess.run(["go", "list", "-deps", "-f", "{{with .Module}}{{if not (or .Main .Replace)}}{{.Path}} {{.Version}}{{end}}{{end}}", "./cmd/taxon"],
                             cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    licences = (dist / "LICENSES.txt").read_text(errors="replace")
    for module in filter(None, set(modules)):
        need(f"=== {module}\n" in licences, f"LICENSES.txt lacks {module}")
    need(f"## {version}" in (ROOT / "docs/changelog.md").read_text(), f"docs/changelog.md has no section {version}")
    own = ""
    for target in KINDS:
        folder = f"taxon-{version}-{target.replace('/', '-')}"
        with tarfile.open(dist / f"{folder}.tar.gz") as t:
            files = {m.name.removeprefix(folder + "/"): m for m in t.getmembers() if m.isfile()}
            need(set(files) == {"taxon", "README.md", "NOTICE", "LICENSES.txt", "changelog.md"}, f"{folder}: has {sorted(files)}")
            need(files["taxon"].mode & 0o111 == 0o111 and all(m.uid == m.gid == 0 for m in files.values()), f"{folder}: modes or owners")
            binary = t.extractfile(files["taxon"]).read()
        program(binary, target, folder)
        wheels = [p for p in dist.glob(f"taxon-{version}-py3-none-*.whl") if TAGS[target] in p.name]
        need(len(wheels) == 1, f"{len(wheels)} wheels for {target}")
        with zipfile.ZipFile(wheels[0]) as z:
            need(z.testzip() is None and z.read("taxon/_bin/taxon") == binary, f"{wheels[0].name}: its binary is not the archive's")
            need(z.getinfo("taxon/_bin/taxon").external_attr >> 16 & 0o111 == 0o111, f"{wheels[0].name}: its binary can't be run")
            sources = {f"taxon/{p.name}" for p in (ROOT / "deploy/python/src/taxon").glob("*.py")} | {"taxon/py.typed"}
            need(sources <= set(z.namelist()) and not [n for n in z.namelist() if n.endswith((".go", ".pyc"))], f"{wheels[0].name}: its files")
            licence = [n for n in z.namelist() if n.endswith("LICENSES.txt")]
            need(licence != [] and z.read(licence[0]).decode(errors="replace") == licences, f"{wheels[0].name}: no licences")
        if target == f"{sys.platform}/{ {'x86_64': 'amd64', 'aarch64': 'arm64'}.get(platform.machine(), platform.machine()) }":
            own = wheels[0].name
        print(f"{target}: archive and wheel hold the same {len(binary)} bytes of binary", flush=True)
    return dist / own


def trains(wheel: Path, folder: Path) -> None:
    """The wheel installs without Go, and fits."""
    venv.create(folder / "env", with_pip=True)
    python = str(folder / "env/bin/python")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **{k: v for k, v in os.environ.items() if k.startswith("PIP_") or k.endswith("_proxy")}}
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel)], check=True, cwd=folder, env=env)
    said = subprocess.run([python, "-c", "import numpy as np, taxon; print(taxon.TaxonClassifier(method='mlr').fit(np.eye(3), [3, 1, 2]).predict(np.eye(3)).tolist())"],
                          cwd=folder, env=env, check=True, capture_output=True, text=True).stdout
    need(said == "[3, 1, 2]\n", f"the wheel's classifier says {said!r}")
    print(f"{wheel.name}: installs without Go, and fits", flush=True)


def twice(dist: Path, folder: Path) -> None:
    """A clone elsewhere gives the same bytes."""
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    need(changed == "", f"a clone can't have these changes: commit them, and build again:\n{changed}")
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(folder / "clone")], check=True)
    (folder / "again").mkdir()  # what looks like an earlier release is replaced
    (folder / "again/LICENSES.txt").write_text("earlier")
    (folder / "again/SHA256SUMS").write_text(f"{'0' * 64}  LICENSES.txt\n{'0' * 64}  taxon-0.0.1-linux-arm64.tar.gz\n")
    (folder / "again/taxon-0.0.1-linux-arm64.tar.gz").write_text("earlier")
    env = {**os.environ, "GOCACHE": str(folder / "cache"), "PYTHON": sys.executable}
    subprocess.run([str(folder / "clone/deploy/release.sh"), str(folder / "again")], check=True, env=env, stdout=subprocess.DEVNULL)
    names = [p.name for p in (folder / "again").iterdir() if p.name != "SHA256SUMS"]
    need("taxon-0.0.1-linux-arm64.tar.gz" not in names, "an earlier release's file is still there")
    other = [n for n in names if (folder / "again" / n).read_bytes() != (dist / n).read_bytes()]
    need(other == [] and len(names) > 2, f"a second build has other bytes: {', '.join(other)}")
    print(f"a second build of a fresh clone has the same bytes: {', '.join(sorted(names))}")


def main() -> None:
    dist = Path(sys.argv[1] if sys.argv[1:] else ROOT / "dist").resolve()
    with tempfile.TemporaryDirectory(prefix="taxon-release-") as name:
        wheel = contents(dist)
        if wheel.is_file():
            trains(wheel, Path(name))
        twice(dist, Path(name))


if __name__ == "__main__":
    main()
