"""Files of results that a long command writes as it goes, and goes on from."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fltheory.files.read_file import json_of
from fltheory.files.whole_file import write_whole

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Plan = TypeVar("Plan")
Result = TypeVar("Result")
Entry = dict[str, Any]


@dataclass(frozen=True)
class ResultFile(Generic[Plan, Result]):
    """What a command keeps as it goes: JSON, a plan and what it has given so far.

    Parameters
    ----------
    name : str
        Of the results in the file.
    command : str
    plan_of, result_of : callable
        Make a plan, and a result, of its entry in the file.
    """

    name: str
    command: str
    plan_of: Callable[[Entry], Plan]
    result_of: Callable[[Entry], Result]

    def write(
        self, path: Path, results: Sequence[DataclassInstance], plan: DataclassInstance
    ) -> None:
        """Write a plan and its results, whole or not at all."""
        document = {"plan": asdict(plan), self.name: [asdict(result) for result in results]}
        write_whole(path, json.dumps(document, indent=1) + "\n")

    def read(self, path: Path, plan: Plan) -> list[Result]:
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
            results = [self.result_of(entry) for entry in document[self.name]]
            begun = self.plan_of(document["plan"])
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            wrote = f"that {self.command} wrote, got {str(path)!r}"
            raise ValueError(f"out must be a file {wrote}") from error
        if begun != plan:
            raise ValueError(f"out must be of the same plan, {plan}, got {begun} in {str(path)!r}")
        return results
