"""Long work that is kept result by result, in a file or a store, and who does it.

The same command resumes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fltheory.commands.shared.exit_status import Interrupted
from fltheory.commands.shared.written_files import tell_written
from fltheory.files.read_file import json_of
from fltheory.files.whole_file import write_whole
from fltheory.long_work.progress import shown_progress

if TYPE_CHECKING:
    from fltheory.sweep import Store
    from fltheory.sweep.kept import KeptWork


Plan = TypeVar("Plan")
Result = TypeVar("Result")
Entry = dict[str, Any]


@contextmanager
def resumable(kept: Callable[[], str]) -> Iterator[None]:
    """Let an interrupt say what is kept until then, and that the command can be given again.

    Raises
    ------
    Interrupted
        By an interrupt.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise Interrupted(f"{kept()}; rerun the same command to resume") from interrupt


@dataclass(frozen=True)
class ResultFile(Generic[Plan, Result]):
    """The results that a command keeps as it goes: JSON, a plan and its results so far.

    Parameters
    ----------
    name, what : str
        Of the results in the file, and what they are; each knows by its ``key`` which piece of the
        work it is.
    command : str
    plan_of, result_of : callable
        Make a plan, and a result, of its entry in the file.
    """

    name: str
    what: str
    command: str
    plan_of: Callable[[Entry], Plan]
    result_of: Callable[[Entry], Result]

    def write(self, path: Path, results: Sequence[Result], plan: Plan) -> None:
        """Write a plan and its results, whole or not at all."""
        made: Any = (plan, *results)
        begun, *entries = map(asdict, made)
        write_whole(path, json.dumps({"plan": begun, self.name: entries}, indent=1) + "\n")

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
            raise ValueError(
                f"out must hold results of the plan {plan}, got {begun} in {str(path)!r}"
            )
        return results

    def resumed(
        self,
        work: Callable[..., Result],
        chosen: Sequence[object],
        plan: Plan,
        out: Path,
        *,
        begins: str,
        about: Callable[[Any], str],
    ) -> list[Result]:
        """Do what is not in the file yet, keep each result in it at once, return the chosen ones.

        Parameters
        ----------
        work : callable
            Called with a key and the plan, in several processes; importable by its name.
        chosen : sequence of keys
        plan : Plan
            Only results of the same plan are resumed from.
        out : Path
            The file; it may also hold results that are not asked for now.
        begins : str
            What progress says before the first result.
        about : callable
            What it says about a result.

        Raises
        ------
        Interrupted
            By an interrupt; what was done is in the file.
        """
        from fltheory.long_work.parallel import as_they_come

        kept = self._by_key(out, plan)
        waiting = [key for key in chosen if key not in kept]
        ready = len(chosen) - len(waiting)
        told = f"{self.name} {self.what} are in {out}"
        with resumable(lambda: f"{len(kept)} {told}"), shown_progress() as progress:
            progress(ready, len(chosen), begins)
            for result in as_they_come(partial(work, plan=plan), waiting):
                ready += 1
                progress(ready, len(chosen), about(result))
                # Another command may have kept its own there meanwhile.
                kept |= self._by_key(out, plan) | {_key(result): result}
                self.write(out, list(kept.values()), plan)
        # In the end the file does not tell in which order, or in how many runs, they came.
        results = [kept[key] for key in chosen if key in kept]
        ordered = [*(result for key, result in kept.items() if key not in chosen), *results]
        if ordered != list(kept.values()):
            self.write(out, ordered, plan)
        return results

    def _by_key(self, path: Path, plan: Plan) -> dict[object, Result]:
        return {_key(result): result for result in self.read(path, plan)}


def _key(result: Any) -> object:
    return result.key


# Enough for a worker to have the next task at hand, few enough to lose.
_IN_FLIGHT_A_THREAD = 4


@contextmanager
def workers(dask: str | None) -> Iterator[tuple[Executor | None, int | None]]:
    """Give a cluster's executor and how many tasks it takes at a time; neither without an address.

    Raises
    ------
    ValueError
        If there is no such cluster, or its workers cannot do the work.
    """
    if dask is None:
        yield None, None
        return
    from fltheory.sweep.running import dask_workers

    with dask_workers(dask) as (executor, threads):
        yield executor, _IN_FLIGHT_A_THREAD * threads


@contextmanager
def kept_in(path: Path | None, dask: str | None = None) -> Iterator[KeptWork | None]:
    """Give what keeps work in a store, None without one; an interrupt says what is kept.

    Raises
    ------
    ValueError
        If there can be no such store, or no such cluster to do the work, or there is a cluster but
        no store.
    """
    if path is None:
        if dask is not None:
            raise ValueError("store must be given with --dask, to keep the workers' results")
        yield None
        return
    from fltheory.sweep import Store
    from fltheory.sweep.kept import KeptWork

    with (
        workers(dask) as (executor, in_flight),
        Store(path, create=True) as store,
        resumable(lambda: f"{len(store)} cells are in {path}"),
    ):
        yield KeptWork(store, executor=executor, in_flight=in_flight)


def tell_kept(kept: KeptWork | None) -> None:
    """Say where the cells of a command are, and which of them other versions made."""
    if kept is not None:
        tell_other_versions(kept.store, kept.keys)
        tell_written(kept.store.path)


def tell_other_versions(store: Store, keys: set[str]) -> None:
    """Say which of some cells were made with other versions than are here."""
    from fltheory.sweep.cell import versions

    for made_by, count in store.versions(keys).items():
        if made_by != versions():
            print(f"  {count} of them were made with {made_by}; they are kept as they are")
