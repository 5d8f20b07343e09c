"""Check statements over their regimes: the cells of the table of verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fltheory.progress import Progress
from fltheory.theorems.statement import Statement
from fltheory.verify.bound_curve import BoundCurve
from fltheory.verify.curve import check_with_curve
from fltheory.verify.truth import Sampling
from fltheory.verify.verdict import Verdict

FAMILY_ERROR_PROBABILITY = 1e-7


@dataclass(frozen=True)
class Cell:
    """The verdict on one statement, in one reading, in one regime.

    Attributes
    ----------
    regime : str
    verdict : Verdict
    curve : BoundCurve or None
        Truth and bound over the rounds, where the statement is about a run.
    """

    regime: str
    verdict: Verdict
    curve: BoundCurve | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """(theorem, reading, regime)."""
        return self.verdict.theorem, self.verdict.reading, self.regime

    @property
    def name(self) -> str:
        """The key in a line."""
        return " / ".join(self.key)


def check_regimes(
    statements: Sequence[Statement],
    *,
    replicas: int = 2000,
    seed: int = 0,
    family_error_probability: float = FAMILY_ERROR_PROBABILITY,
    progress: Progress | None = None,
) -> list[Cell]:
    """Check every statement in every one of its regimes.

    Parameters
    ----------
    statements : sequence of Statement
    replicas, seed : int
        For sampling, where it is needed.
    family_error_probability : float
        Allowed for all sampled intervals of the whole table together; each cell gets an
        equal share.
    progress : callable, optional
        Called with (cells done, cells, name of the next cell).
    """
    pairs = [(statement, name) for statement in statements for name in statement.regimes]
    sampling = Sampling(replicas, seed, family_error_probability / max(1, len(pairs)))
    cells: dict[tuple[str, str, str], Cell] = {}
    for statement, name in shared_settings_together(pairs):
        if progress is not None:
            progress(len(cells), len(pairs), f"{statement.id} {statement.reading}: {name}")
        verdict, curve = check_with_curve(statement, statement.regimes[name].setting, sampling)
        cells[statement.id, statement.reading, name] = Cell(name, verdict, curve)
    if progress is not None:
        progress(len(cells), len(pairs), "done")
    return [cells[statement.id, statement.reading, name] for statement, name in pairs]


def shared_settings_together(
    pairs: Sequence[tuple[Statement, str]],
) -> list[tuple[Statement, str]]:
    """Order pairs so that those on one setting follow each other and share its truth."""
    first_seen: dict[int, int] = {}
    for position, (statement, name) in enumerate(pairs):
        first_seen.setdefault(id(statement.regimes[name]), position)
    return sorted(pairs, key=lambda pair: first_seen[id(pair[0].regimes[pair[1]])])
