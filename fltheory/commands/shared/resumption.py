"""Long work whose results are kept one by one, so that the same command resumes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from fltheory.commands.shared.exit_status import Interrupted
from fltheory.long_work.progress import shown_progress


class Keyed(Protocol):
    """A result that knows which piece of the work it is."""

    @property
    def key(self) -> object:
        """Which piece of the work this is."""


Plan = TypeVar("Plan")
Result = TypeVar("Result", bound=Keyed)


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
        raise Interrupted(f"{kept()}, the same command resumes") from interrupt


def resumed(
    work: Callable[..., Iterable[Result]],
    chosen: Collection[object],
    plan: Plan,
    out: Path,
    *,
    read: Callable[[Path, Plan], list[Result]],
    write: Callable[[Path, Sequence[Result], Plan], None],
    what: str,
) -> list[Result]:
    """Do what is not in the file yet, keep each result in it at once, return the chosen ones.

    Parameters
    ----------
    work : callable
        Called with the chosen keys and the plan, and with ``done``, the keys of results that are
        there already, and ``progress``; yields results as they come in.
    chosen : collection of keys
    plan : Plan
        Only results of the same plan are resumed from.
    out : Path
        The file; it may also hold results that are not asked for now.
    read, write : callable
        How the file is read, empty if there is none, and written.
    what : str
        What the results are, as an interrupt says it.

    Raises
    ------
    Interrupted
        By an interrupt; what was done is in the file.
    """
    kept = {result.key: result for result in read(out, plan)}
    done = list(kept)
    with resumable(lambda: f"{len(kept)} {what} are in {out}"), shown_progress() as advance:
        for result in work(chosen, plan, done=done, progress=advance):
            # Another command may have kept its own there meanwhile.
            kept |= {one.key: one for one in read(out, plan)} | {result.key: result}
            write(out, list(kept.values()), plan)
    # In the end the file does not tell in which order, or in how many runs, they came.
    results = [kept[key] for key in chosen if key in kept]
    ordered = [*(result for key, result in kept.items() if key not in chosen), *results]
    if ordered != list(kept.values()):
        write(out, ordered, plan)
    return results
