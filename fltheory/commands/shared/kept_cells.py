"""Long work whose results are kept one by one in a file or a store, and its workers.

Repeating the command resumes the work.
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
    """Make an interrupt report what is kept, and that repeating the command resumes.

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
    """The JSON file in which a command keeps its plan and the results so far.

    Parameters
    ----------
    name, what : str
        The key of the results in the file, and a word for them. Each result has a ``key`` that says
        which piece of the work it belongs to.
    command : str
    plan_of, result_of : callable
        Make a plan, and a result, from its entry in the file.
    """

    name: str
    what: str
    command: str
    plan_of: Callable[[Entry], Plan]
    result_of: Callable[[Entry], Result]

    def write(self, path: Path, results: Sequence[Result], plan: Plan) -> None:
        """Write a plan and its results, completely or not at all."""
        made: Any = (plan, *results)
        begun, *entries = map(asdict, made)
        write_whole(path, json.dumps({"plan": begun, self.name: entries}, indent=1) + "\n")

    def read(self, path: Path, plan: Plan) -> list[Result]:
        """Read the results written before; empty if there is no such file.

        Raises
        ------
        ValueError
            If the command did not write the file, or wrote it with another plan.
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
        """Do the work that is not in the file yet, keep each result at once, return chosen ones.

        Parameters
        ----------
        work : callable
            Called with a key and the plan, in several processes; must be importable by name.
        chosen : sequence of keys
        plan : Plan
            The plan; only results of the same plan are reused.
        out : Path
            The file; it may also contain results that are not requested now.
        begins : str
            The text of progress before the first result.
        about : callable
            Returns the text of progress about a result.

        Raises
        ------
        Interrupted
            On an interrupt; finished results are in the file.
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
                # Another command may have written its own results there meanwhile.
                kept |= self._by_key(out, plan) | {_key(result): result}
                self.write(out, list(kept.values()), plan)
        # The final file does not depend on the order of results or the number of runs.
        results = [kept[key] for key in chosen if key in kept]
        ordered = [*(result for key, result in kept.items() if key not in chosen), *results]
        if ordered != list(kept.values()):
            self.write(out, ordered, plan)
        return results

    def _by_key(self, path: Path, plan: Plan) -> dict[object, Result]:
        return {_key(result): result for result in self.read(path, plan)}


def _key(result: Any) -> object:
    return result.key


# Enough for a worker to have its next task ready, but few to lose.
_IN_FLIGHT_A_THREAD = 4


@contextmanager
def workers(dask: str | None) -> Iterator[tuple[Executor | None, int | None]]:
    """Yield a cluster's executor and its number of parallel tasks, or None without an address.

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
    """Yield the keeper of work in a store, or None; an interrupt reports what is kept.

    Raises
    ------
    ValueError
        If the store or the cluster cannot be used, or there is a cluster without a store.
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
    """Print where the cells of a command are, and which were made by other versions."""
    if kept is not None:
        tell_other_versions(kept.store, kept.keys)
        tell_written(kept.store.path)


def tell_other_versions(store: Store, keys: set[str]) -> None:
    """Print how many of some cells were made with other versions."""
    from fltheory.sweep.cell import versions

    for made_by, count in store.versions(keys).items():
        if made_by != versions():
            print(f"  {count} of them were made with {made_by}; they are kept as they are")
