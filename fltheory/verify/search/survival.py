"""What a repaired statement survives, and whether each of its mends is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fltheory.claims.statement import Statement
from fltheory.grammar.refutation import Mend
from fltheory.long_work.progress import Progress, within
from fltheory.verify.search.falsification import DEFAULT_BUDGET, Falsification, falsify


@dataclass(frozen=True)
class Survival:
    """Searches for a refutation of a repaired statement, whole and with a mend left out.

    Attributes
    ----------
    theorem : Statement
        The repaired statement.
    search : Falsification
        Of the statement itself. That it survives is evidence, not a proof.
    without : tuple of (Mend, Falsification)
        Of the statement with all mends but that one.
    """

    theorem: Statement
    search: Falsification
    without: tuple[tuple[Mend, Falsification], ...]

    @property
    def needed(self) -> tuple[Mend, ...]:
        """Mends without which the statement is refuted."""
        return tuple(mend for mend, found in self.without if found.witness is not None)


def survival(
    theorem: Statement,
    budget: int = DEFAULT_BUDGET,
    seed: int = 0,
    *,
    progress: Progress | None = None,
) -> Survival:
    """Search for a refutation of a repaired statement, then with each repair dropped in turn.

    Parameters
    ----------
    theorem : Statement
        In its ``repaired`` reading.
    budget, seed : int
        Of each search, see `falsify`.
    progress : callable, optional
        Called with (settings tried in all, settings to try, what is searched).

    Raises
    ------
    ValueError
        If the statement is not a repaired one.
    """
    if theorem.repair is None:
        raise ValueError(
            f"theorem must be a repaired reading, got {theorem.id} ({theorem.reading})"
        )
    mends = theorem.repair.mends
    searched = [theorem, *(theorem.repair.without(mend) for mend in mends)]
    results = list(_searches(searched, budget, seed, progress))
    return Survival(theorem, results[0], tuple(zip(mends, results[1:], strict=True)))


def _searches(
    theorems: Sequence[Statement], budget: int, seed: int, progress: Progress | None
) -> Iterator[Falsification]:
    for index, theorem in enumerate(theorems):
        part = within(progress, index * budget, budget * len(theorems), f"{theorem.reading}: ")
        yield falsify(theorem, budget, seed, progress=part)
