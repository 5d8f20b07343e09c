"""Files of results that a long command writes as it goes, and goes on from."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fltheory.files.read_file import json_of
from fltheory.files.whole_file import write_whole

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Plan = TypeVar("Plan")
Result = TypeVar("Result")
Entry = dict[str, Any]


def write_results(
    path: Path, name: str, results: Sequence[DataclassInstance], plan: DataclassInstance
) -> None:
    """Write a plan and what it has given so far, under a name, as JSON, whole or not at all."""
    document = {"plan": asdict(plan), name: [asdict(result) for result in results]}
    write_whole(path, json.dumps(document, indent=1) + "\n")


def read_results(
    path: Path,
    name: str,
    plan: Plan,
    *,
    command: str,
    plan_of: Callable[[Entry], Plan],
    result_of: Callable[[Entry], Result],
) -> list[Result]:
    """Read what was written before; nothing if there is no such file.

    Raises
    ------
    ValueError
        If it is not a whole file that the command wrote, or was made with another plan.
    """
    if not path.exists():
        return []
    try:
        document = json_of("out must be a file", path)
        results = [result_of(entry) for entry in document[name]]
        begun = plan_of(document["plan"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"out must be a file that {command} wrote, got {str(path)!r}") from error
    if begun != plan:
        raise ValueError(f"out must be of the same plan, {plan}, got {begun} in {str(path)!r}")
    return results
