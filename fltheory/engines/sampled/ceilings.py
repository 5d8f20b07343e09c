"""Upper bounds on the quantities of a run, which give the range of sampled values.

A quantity V is at most ``(slope ||x - x*|| + level)^2``, or the smaller of two such bounds. `reach`
bounds ``||x - x*||`` for all paths of participants, and `rare_weights` does so for all but rare
paths. Noise is unbounded, and the bound for rare paths is useless, so V may exceed its ceiling. The
expectation above the ceiling, ``beyond``, is therefore added to the upper end of the interval. Any
ceiling fixed before sampling is valid; we take the one that gives the narrowest interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fltheory.engines.observables import Envelope, HasEnvelope, Observable
from fltheory.engines.sampled.rare_weights import rare_weights
from fltheory.engines.sampled.reach import Reach, reach
from fltheory.engines.setting import Setting
from fltheory.problems.base import HasGradientSplit
from fltheory.validation import FloatArray

# Probability that noise exceeds a ceiling, as a fraction of ``left_open``, so that ``beyond`` is
# about this fraction of the interval's width.
_OF_THE_CEILING = 0.01


@dataclass(frozen=True, eq=False)
class Range:
    """Lower and upper bounds on a sampled quantity in every round.

    Attributes
    ----------
    floor, ceiling : array, (rounds + 1,)
        Lower and upper bounds, infinite where none is known.
    beyond : array, (rounds + 1,)
        A bound on ``E max(V - ceiling, 0)``, which is zero unless gradients are noisy or rare paths
        are left out.
    """

    floor: FloatArray
    ceiling: FloatArray
    beyond: FloatArray

    @classmethod
    def unknown(cls, rounds: int) -> Range:
        """Return an infinite range, for a quantity without known bounds."""
        top = np.full(rounds + 1, math.inf)
        return cls(-top, top, np.zeros(rounds + 1))

    def cut(self, rounds: int) -> Range:
        """Return the range for the first ``rounds`` rounds."""
        first = slice(rounds + 1)
        return Range(self.floor[first], self.ceiling[first], self.beyond[first])


def ranges(
    setting: Setting, observe: Sequence[Observable], *, left_open: float, given_path: bool
) -> Mapping[str, Range]:
    """Return the range of every quantity of a trajectory, by name.

    Parameters
    ----------
    setting : Setting
    observe : sequence of Observable
    left_open : float
        Width of an interval if all draws agree, as a fraction of the ceiling.
    given_path : bool
        Whether the sampled values are expectations over noise given who takes part, which are
        bounded.
    """
    shapes = _standard(setting)
    for item in observe:
        envelope = item.envelope(setting.problem) if isinstance(item, HasEnvelope) else None
        shapes[item.name] = [] if envelope is None else [envelope]
    far, rare, dim = reach(setting), rare_weights(setting), setting.problem.dim

    def under(shape: Envelope) -> Iterator[Range]:
        yield _under(far, shape, dim, left_open, given_path)
        if rare is not None:
            others = rare.added(shape.slope, shape.level + shape.noise + shape.spread)
            made = _under(rare.typical, shape, dim, left_open, given_path)
            yield replace(made, beyond=made.beyond + others)

    return {
        name: _least_open([made for shape in envelopes for made in under(shape)], left_open)
        if envelopes
        else Range.unknown(setting.rounds)
        for name, envelopes in shapes.items()
    }


def _standard(setting: Setting) -> dict[str, list[Envelope]]:
    problem = setting.problem
    gradient = [Envelope(problem.L, 0.0)]
    if isinstance(problem, HasGradientSplit):
        split = problem.gradient_split
        steepest = float(np.linalg.norm(split.mean_hessian, ord=2))
        gradient.append(Envelope(steepest, split.rest))
    return {
        "squared_distance": [Envelope(1.0, 0.0)],
        "squared_gradient": gradient,
        "excess_loss": [Envelope(math.sqrt(problem.L / 2), 0.0)],
    }


def _least_open(made: Sequence[Range], left_open: float) -> Range:
    """Return, for every round, the range with the smallest ``left_open * ceiling + beyond``."""
    ceilings, beyond = (
        np.nan_to_num([getattr(one, name) for one in made], nan=np.inf, posinf=np.inf)
        for name in ("ceiling", "beyond")
    )
    which = (left_open * ceilings + beyond).argmin(axis=0), np.arange(ceilings.shape[1])
    return Range(made[0].floor, ceilings[which], beyond[which])


# Values beyond the range of floats become infinite in `_least_open`.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _under(far: Reach, shape: Envelope, dim: int, left_open: float, given_path: bool) -> Range:
    """Bound V, given that ``||x - x*||`` is at most a number plus noise.

    Let ``V <= T^2``, where T exceeds q + s with probability at most ``e = exp(-s^2/(2 l^2))``. Then
    ``E T^2 1{T > q + s} <= (q + s)^2 e + 2 int_s^oo (q + z) exp(-z^2/(2 l^2)) dz``. The integral of
    the term with z is ``l^2 e``, and that of the term with q is at most ``q e l^2/s`` (Mills).
    """
    zero = np.zeros_like(far.distance)
    if given_path:
        # Given the path, the mean is within the distance, and the variance of the noise is added to
        # the square of the distance.
        sure = np.sqrt(far.distance**2 + dim * far.spread**2)
        return Range(zero, (shape.slope * sure + shape.level) ** 2, zero)
    if shape.slope == 0:
        return Range(zero, zero + shape.level**2, zero)
    mean = shape.slope * (far.distance + far.noise) + shape.level + shape.noise
    spread = shape.slope * far.spread + shape.spread
    exceeded = left_open * _OF_THE_CEILING
    reserve = math.sqrt(2 * math.log(1 / exceeded)) * spread
    top = mean + reserve
    tail = exceeded * (top**2 + 2 * spread**2 + 2 * mean * spread**2 / reserve)
    return Range(zero, top**2, np.where(spread > 0, tail, 0.0))
