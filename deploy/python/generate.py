"""Writes src/taxon/_params.py: the estimators' parameters, from what the methods of the binary declare.

    python generate.py [--check]

`--check` fails if the file is not what would be written. The binary is found as the package finds it.
"""

from __future__ import annotations

import keyword
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "src"))

from taxon._binary import run  # noqa: E402

TARGET = HERE / "src" / "taxon" / "_params.py"

# What Python names otherwise, or does by itself: seed is random_state, and evaluation is scikit-learn's.
SKIP = {"seed", "eval-every", "checkpoint-every", "checkpoint-seconds"}

HEAD = '''"""Parameters of the estimators. Written by generate.py from `taxon methods --json`: do not edit."""

from __future__ import annotations

from typing import Any, Callable

from sklearn.base import BaseEstimator

# Option of the binary -> (its parameter, the default that is not passed on).
OPTIONS: dict[str, tuple[str, Any]] = {
'''

INIT = '''

class {name}(BaseEstimator):
    """{about}

    Parameters
    ----------
{doc}
    """

    def __init__(
        self,
        method: str = "{method}",
        *,
{args}
    ) -> None:
{body}
'''

# Parameters beside the methods' options: name, type, default, doc, for which classes.
OWN = [
    ("hierarchy", "Any", "None", "Pairs of parent and child (a list, an array, a table of two columns; a missing parent is none), a dict from a parent to its children (nested or not), a networkx graph, "
     "or `learned`: from the rows. None: no hierarchy, or the one that label paths in y tell.", "H"),
    ("graph", "Any", "None", "Undirected class graph: pairs, or a networkx graph.", "H"),
    ("dag", "str", '"graph"', "If a class has several parents: `graph`, `first-parent` or `refuse`.", "H"),
    ("path_separator", "str", '" > "', "What joins the levels of a label path to a class name.", "H"),
    ("targets", "str", '"auto"', "How a list of lists in y is read: `sets` of labels, or `paths` from the top down. `auto`: as paths if no hierarchy or graph is given and "
     "each name has one parent in them, as in a tree; else as sets. Lists that are the rows of a matrix of 0 and 1 are an indicator; `paths` reads that as levels.", "HF"),
    ("random_state", "int | None", "None", "Seed of the order in which instances are visited.", "HF"),
    ("n_jobs", "int | None", "None", "Threads; None or -1: all cores. They change no result.", "HF"),
    ("memory", "str | None", "None", "What the training may take, as `4GiB`; None: what is free.", "HF"),
    ("cutoff", "str", '"auto"', "Cut-offs for label sets: `auto` (of multi-label data), `fit` or `none`.", "HF"),
    ("verbose", "bool | int", "False", "Print progress.", "HF"),
    ("ngrams", "int", "1", "Up to so many words that stand side by side make a feature, too.", "T"),
    ("stop_words", "str | list[str] | None", "None", "Words that make no feature: `english`, or a list.", "T"),
    ("min_df", "int | float", "2", "Features stand in so many texts at least, or in such a share of them.", "T"),
    ("max_df", "int | float", "1.0", "Features stand in so many texts at most, or in such a share of them.", "T"),
    ("callback", "Callable[[str], None] | None", "None", "Called with each line of progress.", "HF"),
]

CLASSES = [
    ("HierarchicalParameters", "Parameters of taxon.HierarchicalClassifier.", "rr-svm", "H"),
    ("TextParameters", "Parameters of taxon.TaxonTextClassifier.", "rr-svm", "HT"),
    ("FlatParameters", "Parameters of taxon.TaxonClassifier.", "bsvm", "F"),
]


def parameter(option: str) -> str:
    name = option.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def literal(option: dict) -> tuple[str, str]:
    """Type and default of an option."""
    kind = {"float": "float", "int": "int", "choice": "str", "bool": "bool"}[option["kind"]]
    if kind in ("float", "int") and option.get("choices"):
        kind += " | str"
    text = option["default"]
    if text == "":
        return f"{kind} | None", "None"
    if option["kind"] in ("float", "int") and text not in option.get("choices", []):
        number = float(text) if option["kind"] == "float" else int(text)
        return kind, repr(number)
    if option["kind"] == "bool":
        return kind, text.capitalize()
    return kind, f'"{text}"'


def merged(methods: list[dict]) -> dict[str, dict]:
    """Options by name; a default that methods differ in is none."""
    out: dict[str, dict] = {}
    for m in methods:
        for o in m["options"]:
            if o["name"] in SKIP:
                continue
            if o["name"] not in out:
                out[o["name"]] = dict(o, choices=list(o.get("choices") or []))
                continue
            have = out[o["name"]]
            if have["default"] != o["default"]:
                have["default"] = ""
            have["choices"] += [c for c in o.get("choices") or [] if c not in have["choices"]]
    return out


def wrapped(text: str, indent: str, width: int = 116) -> str:
    lines, line = [], indent
    for word in text.replace("`", "``").split():
        if len(line) + len(word) + 1 > width and line.strip():
            lines.append(line.rstrip())
            line = indent
        line += word + " "
    return "\n".join([*lines, line.rstrip()])


def text() -> str:
    methods = run(["methods"])
    options = merged(methods)
    out = HEAD
    for name, o in options.items():
        out += f'    "{name}": ("{parameter(name)}", {literal(o)[1]}),\n'
    out += "}\n\nMETHODS: tuple[str, ...] = (\n" + "".join(f'    "{m["name"]}",\n' for m in methods) + ")\n"
    out += "\n# The methods whose scores are probabilities.\nPROBABLE: tuple[str, ...] = (\n"
    out += "".join(f'    "{m["name"]}",\n' for m in methods if m["probabilities"]) + ")\n"
    about = "; ".join(f"`{m['name']}`: {m['about']}" for m in methods)
    for name, words, method, letters in CLASSES:
        rows = [(parameter(n), *literal(o), o["help"]) for n, o in options.items()]
        rows += [(n, t, d, doc) for n, t, d, doc, which in OWN if set(letters) & set(which)]
        doc = "    method : str\n" + wrapped(about + ".", " " * 8) + "\n"
        doc += "\n".join(f"    {n} : {t}, default {d}\n" + wrapped(h[0].upper() + h[1:].rstrip(".") + ".", " " * 8) for n, t, d, h in rows)
        args = "\n".join(f"        {n}: {t} = {d}," for n, t, d, _ in rows)
        body = "\n".join(f"        self.{n} = {n}" for n in ["method"] + [r[0] for r in rows])
        out += INIT.format(name=name, about=words, doc=doc.replace("\\", "\\\\"), method=method, args=args, body=body)
    return out


def main() -> int:
    new = text()
    if "--check" in sys.argv[1:]:
        if TARGET.read_text(encoding="utf-8") != new:
            print(f"{TARGET.name} is not what the methods declare: run generate.py", file=sys.stderr)
            return 1
        return 0
    TARGET.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
