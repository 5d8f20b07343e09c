"""The largest value that a quantity of a run can have: the range of what is sampled.

A quantity V is at most ``(slope ||x - x*|| + level)^2``, or two such, and ``||x - x*||`` is bounded
for all paths of participants by `reach`. Gaussian noise has no bound: a sample of V is then one
of ``min(V, ceiling)`` but for a chance ``exceeded``, which belongs to the error probability, and
what the ceiling cuts off of the expectation, ``beyond``, is added to the interval's upper end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fltheory.engines.observables import Envelope, HasEnvelope, Observable
from fltheory.engines.sampled.reach import Reach, reach
from fltheory.engines.setting import Setting
from fltheory.problems.gradient_split import HasGradientSplit
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class Range:
    """Between what a sampled quantity lies, round by round.

    Attributes
    ----------
    floor, ceiling : array, (rounds + 1,)
        Infinite where nothing is known.
    beyond : array, (rounds + 1,)
        At most ``E max(V - ceiling, 0)``; zero unless gradients are noisy.
    """

    floor: FloatArray
    ceiling: FloatArray
    beyond: FloatArray

    @classmethod
    def unknown(cls, rounds: int) -> Range:
        """Return the range of a quantity of which nothing is known."""
        top = np.full(rounds + 1, math.inf)
        return cls(-top, top, np.zeros(rounds + 1))

    def cut(self, rounds: int) -> Range:
        """Return the range in the first rounds."""
        first = slice(rounds + 1)
        return Range(self.floor[first], self.ceiling[first], self.beyond[first])


def ranges(
    setting: Setting, observe: Sequence[Observable], *, exceeded: float, given_path: bool
) -> Mapping[str, Range]:
    """Return the range of every quantity of a trajectory, by name.

    Parameters
    ----------
    setting : Setting
    observe : sequence of Observable
    exceeded : float
        The chance, in one run and one round, that noise takes a quantity beyond its ceiling.
    given_path : bool
        Whether what is sampled is the expectation over noise given who takes part, and so bounded.
    """
    far = reach(setting)
    found = {
        name: _range(far, envelopes, setting.problem.dim, exceeded, given_path)
        for name, envelopes in _standard(setting).items()
    }
    for item in observe:
        envelope = item.envelope(setting.problem) if isinstance(item, HasEnvelope) else None
        found[item.name] = (
            Range.unknown(setting.rounds)
            if envelope is None
            else _range(far, [envelope], setting.problem.dim, exceeded, given_path)
        )
    return found


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


def _range(
    far: Reach, envelopes: Sequence[Envelope], dim: int, exceeded: float, given_path: bool
) -> Range:
    """Return the lowest of several ceilings in every round."""
    made = [_under(far, one, dim, exceeded, given_path) for one in envelopes]
    ceilings = np.array([each.ceiling for each in made])
    which = ceilings.argmin(axis=0)[None]
    beyond = np.take_along_axis(np.array([each.beyond for each in made]), which, axis=0)[0]
    return Range(np.zeros_like(beyond), ceilings.min(axis=0), beyond)


def _under(far: Reach, shape: Envelope, dim: int, exceeded: float, given_path: bool) -> Range:
    """Bound V where ``||x - x*||`` is at most a number plus noise.

    With ``V <= T^2`` and a tail of T below ``exp(-s^2/(2 l^2))`` beyond q + s, which is e at s,
    ``E T^2 1{T > q + s} <= (q + s)^2 e + 2 int_s^oo (q + z) exp(-z^2/(2 l^2)) dz``: the integral
    is ``l^2 e`` for z, and at most ``q e l^2/s`` for q (Mills).
    """
    zero = np.zeros_like(far.distance)
    if given_path:
        # Given the path the mean is within the distance, and the noise's variance adds to it.
        sure = np.sqrt(far.distance**2 + dim * far.spread**2)
        return Range(zero, (shape.slope * sure + shape.level) ** 2, zero)
    if shape.slope == 0:
        return Range(zero, zero + shape.level**2, zero)
    mean = shape.slope * (far.distance + far.noise) + shape.level + shape.noise
    spread = shape.slope * far.spread + shape.spread
    reserve = math.sqrt(2 * math.log(1 / exceeded)) * spread
    top = mean + reserve
    with np.errstate(invalid="ignore", divide="ignore"):
        tail = exceeded * (top**2 + 2 * spread**2 + 2 * mean * spread**2 / reserve)
    return Range(zero, top**2, np.where(spread > 0, tail, 0.0))
