"""Runs the taxon binary: where it is, its progress, its errors, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import warnings
from pathlib import Path
from typing import Any, Callable, Sequence

from ._errors import TaxonError

__all__ = ["binary", "run"]

_USAGE = 2  # exit status: the command line or the input is wrong
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


def run(args: Sequence[str], *, progress: Callable[[str], None] | None = None, stdin: str | None = None, expected: str | None = None) -> Any:
    """Run a verb with ``--json`` and return its document.

    Parameters
    ----------
    args : sequence of str
        The verb and its flags.
    progress : callable, optional
        Called with each line of progress.
    stdin : str, optional
        Text for standard input.
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
    # A group of its own: Ctrl-C reaches Python alone, which then ends the training.
    process = subprocess.Popen(command, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, encoding="utf-8", start_new_session=True,
                               env={"TAXON_PROGRESS_EVERY": "1", **os.environ})
    assert process.stdout is not None and process.stderr is not None
    answer = process.stdout
    lines: list[str] = []
    out: list[str] = []
    failed: list[BaseException] = []  # what the callback raised
    readers = [threading.Thread(target=_read, args=(process.stderr, lines, progress, failed), daemon=True),
               threading.Thread(target=lambda: out.append(answer.read()), daemon=True)]
    for r in readers:
        r.start()
    try:
        if stdin is not None and process.stdin is not None:
            process.stdin.write(stdin)
            process.stdin.close()
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
    process.stderr.close()
    answer.close()
    problem = ""
    for line in lines:
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
