"""What computes a run, besides its settings: the code, and the libraries that do the numbers."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import torch

import fltheory

_ROOT = Path(fltheory.__file__).parent
_COMPUTING = (
    "algorithms",
    "argument_kinds.py",
    "engines/simulation.py",
    "files/tables.py",
    "hardware",
    "logs/availability_log.py",
    "logs/played_log.py",
    "logs/transitions.py",
    "participation",
    "problems/weights.py",
    "read_only.py",
    "validation.py",
)


def computing_files(root: Path = _ROOT) -> tuple[Path, ...]:
    """Return the source files that a run goes through, in an order that is always the same."""
    found: list[Path] = []
    for name in _COMPUTING:
        path = root / name
        found += path.rglob("*.py") if path.is_dir() else [path]
    return tuple(sorted(found, key=lambda path: path.relative_to(root).as_posix()))


def fingerprint_of(root: Path, files: Iterable[Path], versions: Mapping[str, str]) -> str:
    """Return a short name that changes with any code in ``files``, or any of ``versions``.

    Comments, layout and docstrings do not count.

    Parameters
    ----------
    root : path
        What the files are named from.
    files : iterable of path
        Python sources.
    versions : mapping of str to str
    """
    code = [
        [path.relative_to(root).as_posix(), _code(path.read_text(encoding="utf-8"))]
        for path in files
    ]
    text = json.dumps([code, dict(versions)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def fingerprint() -> str:
    """Return the fingerprint of this package's code with this torch and this NumPy."""
    versions = {"torch": str(torch.__version__), "numpy": np.__version__}
    return fingerprint_of(_ROOT, computing_files(), versions)


def _code(source: str) -> str:
    """Return what a source means, without docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(ast.Constant(str())) as docstring, *_]:
                    docstring.value = ast.Constant("")
    return ast.dump(tree)
