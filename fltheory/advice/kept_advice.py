"""Running algorithms along a log one by one, storing each result in a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from fltheory import __version__
from fltheory.advice.algorithm_advice import (
    AlgorithmAdvice,
    Bias,
    FollowedAlgorithm,
    Needs,
    advice_on,
)
from fltheory.advice.population import ClientPopulation
from fltheory.content import attributes_of
from fltheory.files.read_file import text_of
from fltheory.files.whole_file import write_whole
from fltheory.long_work.parallel import as_they_come
from fltheory.long_work.progress import Progress

_WORTH_PROCESSES = 2**15
_ALGORITHMS = 12
_ARRAYS = ("weights", "errors")


class Kept:
    """The results for one log and its assumptions, in a file or only in memory.

    Parameters
    ----------
    path : path or None
        A JSON file. If it contains results for other logs or assumptions, they are replaced.
    population : ClientPopulation
    within : float
    seed : int

    Raises
    ------
    ValueError
        If the file does not contain such results.
    """

    def __init__(
        self, path: Path | None, population: ClientPopulation, within: float, seed: int
    ) -> None:
        self._path, self._found = path, dict[str, AlgorithmAdvice]()
        told = json.dumps([__version__, population, within, seed], default=_parts)
        self._of = hashlib.sha256(told.encode()).hexdigest()
        if path is not None and path.exists():
            try:
                said = json.loads(text_of("store must be an existing file", path))
                if said["of"] == self._of:
                    self._found = {name: _read(one) for name, one in said["found"].items()}
            except (ValueError, TypeError, KeyError) as error:
                raise ValueError(
                    f"store must be a file of `fltheory advise`, got {path}"
                ) from error

    def followed(
        self, tasks: Sequence[FollowedAlgorithm], progress: Progress | None = None
    ) -> dict[str, AlgorithmAdvice]:
        """Return the errors to expect of each algorithm, by name, reusing stored results."""
        keys = {task.name: f"{task.name}, {task.population.training.condition:g}" for task in tasks}
        left = [task for task in tasks if keys[task.name] not in self._found]
        worth = bool(left) and left[0].population.recorded.size >= _WORTH_PROCESSES
        for one in as_they_come(advice_on, left, None if worth and len(left) > 1 else 1):
            self._found[keys[one.name]] = one
            if self._path is not None:
                kept = {name: _written(found) for name, found in self._found.items()}
                write_whole(self._path, json.dumps({"of": self._of, "found": kept}) + "\n")
            if progress is not None:
                progress(len(self._found), 2 * _ALGORITHMS, f"{one.title}: error {one.error:.2g}")
        return {name: self._found[key] for name, key in keys.items()}


def _parts(thing: Any) -> Any:
    """Return a digest of an array, or the attributes of an object, in a form for JSON."""
    if isinstance(thing, np.ndarray):
        return hashlib.sha256(thing.tobytes()).hexdigest()
    return attributes_of(thing)


def _written(found: AlgorithmAdvice) -> dict[str, Any]:
    return asdict(found) | {name: getattr(found, name).tolist() for name in _ARRAYS}


def _read(said: dict[str, Any]) -> AlgorithmAdvice:
    given = {field.name: said[field.name] for field in fields(AlgorithmAdvice)}
    # JSON has only lists.
    options = {n: tuple(v) if isinstance(v, list) else v for n, v in said["options"].items()}
    needs = said["needs"] | {"facts": tuple(said["needs"]["facts"])}
    return AlgorithmAdvice(
        **given
        | {
            "options": options,
            "needs": Needs(**needs),
            "process": None if said["process"] is None else Bias(**said["process"]),
            "log": Bias(**said["log"]),
            **{name: np.array(said[name]) for name in _ARRAYS},
        }
    )
