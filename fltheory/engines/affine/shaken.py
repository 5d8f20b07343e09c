"""A round's own loss to rounding, beyond the bound stated for any round.

Bounds on what is lost in reading a map suppose that numbers met on the way are about as large as
those of the map, and of the state. In a round of somebody's own, they need not be: with beta just
below one, ``1 - beta`` has few right digits, and ``g x - (g - 1) x`` is off by units of g. So a
round is run again with its hyper-parameters, and what every operation makes, a little off. What
that does to its maps, in proportion, is what rounding does. Chances of branches are computed again
like this, too.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    """How many times as much as is stated a round loses, at least one each.

    And what the chance of a branch is off by, absolutely, beyond some units of its size.
    """

    slope: float = 1.0
    offset: float = 1.0
    noise: float = 1.0
    chance: float = 0.0


NO_MORE = Losses()

# Several, as the ways in which two numbers are off may cancel.
_SEEDS = (0x3C6EF372FE94F, 0x9B05688C2B3E6, 0x1F83D9ABFB41B, 0x5BE0CD19137E2)
# A chance is a single number: more of them are needed, and cost next to nothing.
_SEEDS_OF_CHANCES = np.random.default_rng(0).integers(2**52, size=16).tolist()
# Numbers are off by a quarter of the largest shake on average, and maps by a root of how many
# there are.
_ROOM = 16.0


def losses(
    setting: Setting,
    index: int,
    branch: str,
    who: Masks,
    known: State,
    random: Mapping[str, tuple[int, ...]],
) -> Losses:
    """Return what a round loses, beside what `reading_errors` states.

    Parameters
    ----------
    setting : Setting
        In floats, on a `QuadraticProblem`.
    index : int
        The round's; of a schedule the numbers are off before it says what runs.
    branch : str
    who : array of bool, (rows, N)
    known, random
        As those of `read_round`.
    """
    algorithm, problem = setting.algorithm, setting.problem
    assert isinstance(problem, QuadraticProblem)
    width = sum(prod(shape) for shape in random.values())
    origin = np.concatenate([problem.x_star, np.zeros(width - problem.dim)])

    def read(arithmetic: Shaken) -> tuple[ReadRound, ClientNumbers]:
        own, numbers = _own(algorithm, index, arithmetic), ClientNumbers(problem, arithmetic)
        return read_round(own, branch, numbers, who, known, random, origin), numbers

    as_it_is, *shaken = Shaken(share=0.0), *(Shaken(seed=seed) for seed in _SEEDS)
    with np.errstate(all="ignore"):
        try:
            plain, numbers = read(as_it_is)
            read_again = [(one, read(one)[0]) for one in shaken]
        except Exception:
            # Somebody's own code, with participants or numbers that it may not be written for.
            return NO_MORE
        # What decides a tie the other way is another round.
        others = [made for one, made in read_again if one.decisions == as_it_is.decisions]
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
        stated = reading_errors(slopes, offsets, origin / units, numbers, several).T
        stated[2] *= (plain.noises.diagonal(axis1=1, axis2=2) / units**2).sum(axis=1)
        lost = _ROOM * UNIT_ROUNDOFF / Shaken.largest * np.sqrt(np.mean(np.square(moved), axis=0))
        told = np.divide(lost, stated, out=np.ones_like(lost), where=stated > 0)
        return Losses(*np.fmax(told, 1.0).max(axis=1).tolist())


def chance_error(algorithm: Algorithm | Schedule, index: int) -> float:
    """Return what a chance of a round's branches is off by, beyond some units of its size."""

    def chances(own: Algorithm) -> FloatArray:
        return np.array([chance for _, chance in own.branches], dtype=np.float64)

    plain = chances(in_round(algorithm, index))
    if len(plain) == 1:
        return 0.0
    try:
        shaken = [chances(_own(algorithm, index, Shaken(seed=seed))) for seed in _SEEDS_OF_CHANCES]
        moved = np.sqrt(np.mean(np.square(np.array(shaken) - plain), axis=0)) / Shaken.largest
    except Exception:
        # Somebody's own code, with numbers that it may not be written for.
        return 0.0
    return float(_ROOM * UNIT_ROUNDOFF * np.fmax(moved - plain, 0.0).max())


def _own(algorithm: Algorithm | Schedule, index: int, arithmetic: Shaken) -> Algorithm:
    """Return what runs, off before a schedule says it, and after."""
    if not isinstance(algorithm, Schedule):
        return with_parameters(algorithm, arithmetic)
    return with_parameters(in_round(with_parameters(algorithm, arithmetic), index), arithmetic)


def _trace_norms(matrices: FloatArray) -> FloatArray:
    """Return the sums of the sizes of symmetric matrices' eigenvalues."""
    finite = np.where(np.isfinite(matrices), matrices, 0.0)
    return np.asarray(np.abs(np.linalg.eigvalsh(finite)).sum(axis=-1))
