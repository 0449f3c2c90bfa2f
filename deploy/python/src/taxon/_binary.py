"""Runs the taxon binary: where it is, its progress, its errors, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

from ._errors import TaxonError

__all__ = ["binary", "orderly", "run", "workspace"]

_OPTION = re.compile("‹([A-Za-z][A-Za-z0-9-]*)(?:=([^‹›]*))?›")  # as the binary marks one in a text
_USAGE = 2  # exit status: the command line or the input is wrong
# Options that the package names otherwise than by _ for -.
_PARAMETERS = {"seed": "random_state", "threads": "n_jobs"}

_PATIENCE = 20.0  # seconds for a training to end by itself after Ctrl-C


def binary() -> str:
    """The path of the binary: ``TAXON_BINARY``, the wheel's own, or ``taxon`` on the PATH."""
    own = Path(__file__).parent / "_bin" / ("taxon.exe" if os.name == "nt" else "taxon")
    for found in (os.environ.get("TAXON_BINARY"), str(own) if own.is_file() else None, shutil.which("taxon")):
        if found:
            if shutil.which(found) is None:
                raise TaxonError(f"{found}, which TAXON_BINARY names, is no program")
            return found
    raise TaxonError("the taxon binary is not installed: install a wheel of taxon, or set TAXON_BINARY")


class _Terminated(BaseException):
    """SIGTERM came."""


@contextmanager
def orderly() -> Iterator[None]:
    """What must be cleaned up is, also where SIGTERM ends the process, as it does by default."""
    def terminate(*_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        raise _Terminated

    by_default = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not by_default or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def workspace() -> Iterator[Path]:
    """A temporary folder that is gone in the end."""
    with orderly(), tempfile.TemporaryDirectory(prefix="taxon-") as name:
        yield Path(name)


def run(args: Sequence[str], *, progress: Callable[[str], None] | None = None, expected: str | None = None) -> Any:
    """Run a verb with ``--json`` and return its document. The process ends when this one does, however that ends.

    Parameters
    ----------
    args : sequence of str
        The verb and its flags.
    progress : callable, optional
        Called with each line of progress.
    expected : str, optional
        The beginning of a warning that the caller knows and passes over.

    Raises
    ------
    ValueError
        If the input or an option is wrong.
    TaxonError
        If the binary failed while it ran.
    """
    command = [binary(), *args, "--json"] + ([] if progress else ["--quiet"])
    # A group of its own: Ctrl-C reaches Python alone, which then ends the training. Standard input ends with Python.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               encoding="utf-8", start_new_session=True,
                               env={"TAXON_PROGRESS_EVERY": "1", **os.environ, "TAXON_ENDS_WITH_STDIN": "1",
                                    "TAXON_MARK_OPTIONS": "1"})
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    answer = process.stdout
    lines: list[str] = []
    out: list[str] = []
    failed: list[BaseException] = []  # what the callback raised
    readers = [threading.Thread(target=_read, args=(process.stderr, lines, progress, failed), daemon=True),
               threading.Thread(target=lambda: out.append(answer.read()), daemon=True)]
    for r in readers:
        r.start()
    try:
        while True:
            try:
                process.wait(0.1 if progress else None)
                break
            except subprocess.TimeoutExpired:
                if failed:
                    break
        if failed:
            raise failed[0]
    except BaseException:
        _end(process)
        with process:  # closes its pipes
            raise
    for r in readers:
        r.join()
    process.stdin.close()
    process.stderr.close()
    answer.close()
    problem = ""
    for line in map(_named, lines):
        if line.startswith("taxon: warning: stopped by ") or expected is not None and line.startswith(f"taxon: warning: {expected}"):
            continue  # the report says it, and the estimator warns
        if line.startswith("taxon: warning: "):
            warnings.warn(line.removeprefix("taxon: warning: "), UserWarning, stacklevel=3)
        elif line.startswith("taxon: "):
            problem = line.removeprefix("taxon: ")
    if process.returncode == 0:
        return json.loads(out[0]) if out and out[0].strip() else None
    problem = problem or (lines[-1] if lines else f"taxon ended with status {process.returncode}")
    raise (ValueError if process.returncode == _USAGE else TaxonError)(problem)


def _read(stream: Any, lines: list[str], progress: Callable[[str], None] | None, failed: list[BaseException]) -> None:
    for line in stream:
        line = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line).rstrip()
        if not line:
            continue
        if line.startswith("taxon: "):
            lines.append(line)
        elif progress is not None and not failed:
            try:
                progress(line)
            except BaseException as e:
                failed.append(e)
        else:
            lines.append(line)


def _named(text: str) -> str:
    """Options as parameters: ``‹label-loss=delta›`` is ``label_loss=delta``."""
    def parameter(m: re.Match[str]) -> str:
        return f"{_PARAMETERS.get(m[1], m[1].replace('-', '_'))}={m[2] or ''}"

    return _OPTION.sub(parameter, text)


def _end(process: subprocess.Popen[str]) -> None:
    """Ends a training as Ctrl-C does; one that does not end is killed."""
    for how, patience in ((signal.SIGINT, _PATIENCE), (signal.SIGKILL, None)):
        if process.poll() is not None:
            return
        process.send_signal(how)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
