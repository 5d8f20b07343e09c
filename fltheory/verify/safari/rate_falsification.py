"""Search for the setting on which a claimed order fares worst.

An order is a limit, and a truth far below its bound may well be flat for long. So a setting
speaks against a claimed order only if every hypothesis holds along the way, the bound has
settled into the claimed order, and the truth at the end is above it, while decaying slower.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

import numpy as np

from fltheory import validation
from fltheory.algorithms import Safari
from fltheory.claims.order import RateAxis, RateClaim, slope_of_last_decade
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.evidence.evaluation import evaluate
from fltheory.evidence.verdict import SLOPE_IS_MET, SLOPE_IS_MISSED
from fltheory.long_work.progress import Progress
from fltheory.problems import QuadraticProblem
from fltheory.validation import FloatArray
from fltheory.verify.safari.extremal_instances import about_safari, coupling_of, decoded, drawn
from fltheory.verify.safari.instance_batch import InstanceBatch, assess
from fltheory.verify.safari.witness import Witness

DEFAULT_BUDGET = 1000
HORIZON = 10_000
_GENERATION = 250


@dataclass(frozen=True)
class RateFalsification:
    """What a search for a claimed order's worst setting found.

    Attributes
    ----------
    theorem, reading : str
    settings_tried, settings_applicable : int
        How many settings were evaluated, and on how many every hypothesis held at every
        value of the variable while the bound decayed in the claimed order.
    best_ratio : float
        The largest truth/bound at the variable's last value among them; -inf if there is none.
    excess : float
        Of the truth's slope over the claimed one there, over the last decade.
    variable : str
        The claim's variable there.
    worst : Witness or None
        Where that was.
    """

    theorem: str
    reading: str
    settings_tried: int
    settings_applicable: int
    best_ratio: float = -math.inf
    excess: float = math.nan
    variable: str = ""
    worst: Witness | None = None

    @property
    def speaks_against(self) -> bool:
        """Whether the truth breaks the bound and decays slower than claimed."""
        return self.best_ratio > 1 and self.excess >= SLOPE_IS_MISSED


def falsify_rate(
    claim: Statement,
    budget: int = DEFAULT_BUDGET,
    seed: int = 0,
    *,
    progress: Progress | None = None,
) -> RateFalsification:
    """Look for the setting on which a claimed order fares worst, over random instances.

    Parameters
    ----------
    claim : RateClaim
    budget : int
        Settings to try; each is followed over three decades of every variable, rounds up
        to 10,000.
    seed : int
    progress : callable, optional
        Called with (settings tried, budget, largest ratio so far).

    Raises
    ------
    ValueError
        For a claim that is not about SAFARI, a budget below 1 or a negative seed.
    """
    theorem, order = about_safari(claim), _of_order(claim)
    budget = validation.whole_number("budget", budget, at_least=1)
    rng = np.random.default_rng(validation.seed_number("seed", seed))
    coupling = coupling_of(theorem)
    found = RateFalsification(claim.id, claim.reading, 0, 0)
    while found.settings_tried < budget:
        size = min(_GENERATION, budget - found.settings_tried)
        candidates = (decoded(coupling, drawn(rng)) for _ in range(size))
        instances = [replace(w, rounds=HORIZON) for w in candidates if w is not None]
        found = _searched(order, found, size, instances)
        if progress is not None:
            progress(found.settings_tried, budget, f"largest truth/bound {found.best_ratio:.3g}")
    return found


def _of_order(claim: Statement) -> RateClaim:
    if not claim.axes:
        raise ValueError(f"claim must be about an order, got {claim.id}: see falsify")
    return cast("RateClaim", claim)


def _searched(
    claim: RateClaim, found: RateFalsification, size: int, instances: Sequence[Witness]
) -> RateFalsification:
    """Return what was found so far with ``size`` more settings taken into account."""
    applies = np.zeros(len(instances), dtype=np.bool_)
    for axis in claim.axes:
        ratios, excesses = _last_ratios(claim, axis, instances)
        applies |= ratios > -math.inf
        leading = int(np.argmax(ratios))
        if ratios[leading] > found.best_ratio:
            found = replace(
                found,
                best_ratio=float(ratios[leading]),
                excess=float(excesses[leading]),
                variable=str(axis.variable),
                worst=instances[leading],
            )
    return replace(
        found,
        settings_tried=found.settings_tried + size,
        settings_applicable=found.settings_applicable + int(applies.sum()),
    )


def _last_ratios(
    claim: RateClaim, axis: RateAxis, instances: Sequence[Witness]
) -> tuple[FloatArray, FloatArray]:
    """Return truth/bound at the last value, -inf where the claim does not apply; the excess."""
    theorem = about_safari(claim)
    conditioned = replace(theorem, hypotheses=(*theorem.hypotheses, *axis.hypotheses))
    settings = [instance.setting() for instance in instances]
    grid = claim.values(axis, settings[0])
    applies = np.ones(len(instances), dtype=np.bool_)
    truths, bounds, orders = [], [], []
    for value in grid:
        batch = InstanceBatch(list(_scheduled(axis, value, instances, settings)))
        assessed = assess(conditioned, batch)
        applies &= assessed.violation == 0
        truths.append(assessed.truth)
        bounds.append(assessed.bound)
        orders.append(np.broadcast_to(evaluate(axis.order, batch.constants), applies.shape))
    claimed = slope_of_last_decade(grid, orders)
    applies &= slope_of_last_decade(grid, bounds) <= claimed + SLOPE_IS_MET
    excesses = slope_of_last_decade(grid, truths) - claimed
    return np.where(applies, assessed.ratio, -np.inf), excesses


def _scheduled(
    axis: RateAxis, value: int, instances: Sequence[Witness], settings: Sequence[Setting]
) -> Iterator[Witness]:
    for instance, setting in zip(instances, settings, strict=True):
        scheduled = axis.schedule(setting, value)
        algorithm, problem = scheduled.algorithm, scheduled.problem
        if not isinstance(algorithm, Safari) or not isinstance(problem, QuadraticProblem):
            raise ValueError(f"axes must keep to SAFARI on quadratics, got {scheduled!r}")
        yield replace(
            instance,
            rounds=scheduled.rounds,
            local_steps=algorithm.local_steps,
            client_lr=Fraction(algorithm.client_lr),
            assist_lr=Fraction(algorithm.assist_lr),
            server_sigma=Fraction(problem.server_sigma),
        )
