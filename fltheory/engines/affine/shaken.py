"""Rounding errors peculiar to a round, beyond the bound stated for every round.

Bounds on the rounding errors of reading a map assume that intermediate numbers are about as large
as those of the map and of the state. In a user's own round, this need not be so. With beta just
below one, ``1 - beta`` has few correct digits, and ``g x - (g - 1) x`` has an error of a few
roundoff units of g. So the round is run again with slight perturbations of its hyper-parameters and
of the result of every operation. The resulting change in its maps, scaled down, estimates the
effect of rounding. Probabilities of branches are recomputed in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from fltheory.algorithms.contract import Algorithm, Schedule, State, in_round
from fltheory.engines.affine.numbers import Shaken, with_parameters
from fltheory.engines.affine.probe import CLIENTS_AS_ONE, UNIT_ROUNDOFF, reading_errors
from fltheory.engines.affine.state_layout import balanced_units
from fltheory.engines.affine.symbolic.clients import ClientNumbers, ReadRound, read_round
from fltheory.engines.setting import Setting
from fltheory.participation.base import Masks
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray


class Losses(NamedTuple):
    """Factors, at least 1, by which a round's rounding errors exceed the stated bounds.

    ``chance`` is the absolute error of a branch's probability, beyond a few roundoff units of it.
    """

    slope: float = 1.0
    offset: float = 1.0
    noise: float = 1.0
    chance: float = 0.0


NO_MORE = Losses()

# There are several seeds, because the perturbations of two numbers may cancel.
_SEEDS = (0x3C6EF372FE94F, 0x9B05688C2B3E6, 0x1F83D9ABFB41B, 0x5BE0CD19137E2)
# A probability is a single number, so more seeds are needed, but they cost next to nothing.
_SEEDS_OF_CHANCES = np.random.default_rng(0).integers(2**52, size=16).tolist()
# Numbers are perturbed by a quarter of ``Shaken.largest`` on average, and the change in a map grows
# as the square root of the count of numbers.
_ROOM = 16.0


def shaken_clients(problem: QuadraticProblem) -> list[ClientNumbers]:
    """Return the clients for rounds with perturbed numbers, one for each perturbation."""
    return [ClientNumbers(problem, Shaken(seed=seed)) for seed in _SEEDS]


def losses(
    setting: Setting,
    shaken: Sequence[ClientNumbers],
    index: int,
    branch: str,
    who: Masks,
    known: State,
    random: Mapping[str, tuple[int, ...]],
) -> Losses:
    """Return the factors by which a round's rounding errors exceed the bounds of `reading_errors`.

    Parameters
    ----------
    setting : Setting
        A setting in floats, on a `QuadraticProblem`.
    shaken : sequence of ClientNumbers
        From `shaken_clients`. The rounds of a setting share them, together with the clients' maps.
    index : int
        Number of the round. The numbers of a schedule are perturbed before it returns the round's
        algorithm.
    branch : str
    who : array of bool, (rows, N)
    known, random
        As in `read_round`.
    """
    algorithm, problem = setting.algorithm, setting.problem
    assert isinstance(problem, QuadraticProblem)
    width = sum(prod(shape) for shape in random.values())
    origin = np.concatenate([problem.x_star, np.zeros(width - problem.dim)])

    def read(numbers: ClientNumbers) -> tuple[ReadRound, list[bytes]]:
        arithmetic = numbers.arithmetic
        assert isinstance(arithmetic, Shaken)
        arithmetic.decisions.clear()
        own = _own(algorithm, index, arithmetic)
        made = read_round(own, branch, numbers, who, known, random, origin)
        return made, list(arithmetic.decisions)

    with np.errstate(all="ignore"):
        try:
            as_it_is = ClientNumbers(problem, Shaken(share=0.0))
            (plain, decided), *read_again = map(read, (as_it_is, *shaken))
        except Exception:
            # A user's own code may not be written for these participants or numbers.
            return NO_MORE
        # A perturbation that breaks a tie the other way gives a different round.
        others = [made for made, decisions in read_again if decisions == decided]
        if not others:
            return NO_MORE
        units = balanced_units(in_round(algorithm, index), lambda _: plain.slopes[:1], random)
        turned = units / units[:, None]
        moved = [
            (
                np.linalg.norm((one.slopes - plain.slopes) * turned, axis=(1, 2)),
                np.linalg.norm((one.offsets - plain.offsets) / units, axis=1),
                _trace_norms((one.noises - plain.noises) / (units * units[:, None])),
            )
            for one in others
        ]
        several = max(1.0, problem.n_clients / CLIENTS_AS_ONE)
        slopes, offsets = plain.slopes * turned, plain.offsets / units
        stated = reading_errors(slopes, offsets, origin / units, as_it_is, several).T
        stated[2] *= (plain.noises.diagonal(axis1=1, axis2=2) / units**2).sum(axis=1)
        lost = _ROOM * UNIT_ROUNDOFF / Shaken.largest * np.sqrt(np.mean(np.square(moved), axis=0))
        told = np.divide(lost, stated, out=np.ones_like(lost), where=stated > 0)
        return Losses(*np.fmax(told, 1.0).max(axis=1).tolist())


def chance_error(algorithm: Algorithm | Schedule, index: int) -> float:
    """Return the error of a round's branch probabilities, beyond a few roundoff units of each."""

    def chances(own: Algorithm) -> FloatArray:
        return np.array([chance for _, chance in own.branches], dtype=np.float64)

    plain = chances(in_round(algorithm, index))
    if len(plain) == 1:
        return 0.0
    try:
        shaken = [chances(_own(algorithm, index, Shaken(seed=seed))) for seed in _SEEDS_OF_CHANCES]
        moved = np.sqrt(np.mean(np.square(np.array(shaken) - plain), axis=0)) / Shaken.largest
    except Exception:
        # A user's own code may not be written for these numbers.
        return 0.0
    return float(_ROOM * UNIT_ROUNDOFF * np.fmax(moved - plain, 0.0).max())


def _own(algorithm: Algorithm | Schedule, index: int, arithmetic: Shaken) -> Algorithm:
    """Return the round's algorithm, perturbed before and after a schedule is asked for it."""
    if not isinstance(algorithm, Schedule):
        return with_parameters(algorithm, arithmetic)
    return with_parameters(in_round(with_parameters(algorithm, arithmetic), index), arithmetic)


def _trace_norms(matrices: FloatArray) -> FloatArray:
    """Return the trace norms of symmetric matrices: the sum of the eigenvalues' absolute values."""
    finite = np.where(np.isfinite(matrices), matrices, 0.0)
    return np.asarray(np.abs(np.linalg.eigvalsh(finite)).sum(axis=-1))
