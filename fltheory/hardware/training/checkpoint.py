"""Checkpoints of a run, for resuming it, written atomically."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import fltheory
from fltheory.files.whole_file import whole_file

_FORMAT = 1


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a run between two rounds.

    Attributes
    ----------
    settings : str
        The run's identity; a run never resumes from the checkpoint of another.
    done : int
        Number of rounds run.
    state : mapping of str to Tensor
        The algorithm's state, on the CPU.
    randomness : Tensor
        The state of the generator of batches.
    curve : Tensor, (n, 3), float64
        Rows of (round, accuracy, loss) so far.
    about : mapping of str to str
        Data and versions, for information.
    """

    settings: str
    done: int
    state: Mapping[str, Tensor]
    randomness: Tensor
    curve: Tensor
    about: Mapping[str, str]


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically, so that the previous one survives if the process is killed.

    Raises
    ------
    ValueError
        If the checkpoint cannot be written; the previous one then survives as well.
    """
    fields = {name: getattr(checkpoint, name) for name in Checkpoint.__dataclass_fields__}
    state = {name: array.cpu() for name, array in checkpoint.state.items()}
    try:
        # torch would write part of the file name into the file, and the temporary name differs
        # every time.
        with whole_file(path) as unfinished, unfinished.open("wb") as file:
            torch.save({"format": _FORMAT, **fields, "state": state}, file)
    except (OSError, RuntimeError) as error:  # torch raises this for a file that it cannot write
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"{path} must be a file that can be written, with room for it, got {reason}"
        ) from error


def read_checkpoint(path: Path, settings: str) -> Checkpoint | None:
    """Return a run's checkpoint, read by `torch.load` of weights only, or None if there is none.

    Raises
    ------
    ValueError
        If the file is damaged, or belongs to another run or to other code.
    """
    if not path.exists():
        return None
    try:
        fields: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
        if fields.pop("format") != _FORMAT:
            raise KeyError("format")
        checkpoint = Checkpoint(**fields)
    except Exception as error:  # unpickling a damaged file may raise anything
        raise ValueError(
            f"{path} must be a checkpoint that train wrote, got a damaged or foreign file: "
            "remove it to start that run anew"
        ) from error
    if checkpoint.settings != settings:
        raise ValueError(
            f"{path} must belong to the run {settings}, got one of {checkpoint.settings}: its "
            "settings, code, torch or NumPy version, or images differ. Move it aside to start over"
        )
    return checkpoint


_ROOT = Path(fltheory.__file__).parent
_COMPUTING = (
    "algorithms",
    "argument_kinds.py",
    "decimals.py",
    "engines/simulation.py",
    "files/tables.py",
    "hardware",
    "logs/availability_log.py",
    "logs/played_log.py",
    "logs/transitions.py",
    "participation",
    "problems/base.py",
    "read_only.py",
    "validation.py",
)


def computing_files(root: Path = _ROOT) -> tuple[Path, ...]:
    """Return the source files that a run uses, in a fixed order."""
    found: list[Path] = []
    for name in _COMPUTING:
        path = root / name
        found += path.rglob("*.py") if path.is_dir() else [path]
    return tuple(sorted(found, key=lambda path: path.relative_to(root).as_posix()))


def fingerprint_of(root: Path, files: Iterable[Path], versions: Mapping[str, str]) -> str:
    """Return a short name that changes with any code in ``files``, or any of ``versions``.

    Comments, layout and docstrings do not matter.

    Parameters
    ----------
    root : path
        The folder to which file names are relative.
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
    """Return a source in a normal form, without comments, layout and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(ast.Constant(str())) as docstring, *_]:
                    docstring.value = ast.Constant("")
    return ast.dump(tree)
