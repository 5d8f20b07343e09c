"""A second route to a round's affine map: real rounds, on numbers, against what was read off forms.

Forms refuse what is not affine; that they say what the round does is seen by running it, as a
simulation would, from the setting's own start and on from there, from states far away on both
sides, in rounds spread over the whole horizon, and with noise: a round that is affine in its noise
moves as far one way for some draws as it does the other way for their opposites.
"""

from __future__ import annotations

import numpy as np

from fltheory.algorithms.contract import Algorithm, in_round
from fltheory.engines.affine.numbers import FLOAT64
from fltheory.engines.affine.probe import CHECK_TOLERANCE, Probe, RoundOverflowError, SetMaps
from fltheory.engines.affine.state_layout import StateLayout
from fltheory.engines.affine.symbolic.clients import ClientNumbers
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.clients.noise import ReplicaIndices, Silence
from fltheory.engines.clients.quadratic_clients import QuadraticClients
from fltheory.engines.setting import Setting
from fltheory.participation.base import Masks
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_FACTORS = np.array([0.0, 1.0, -1.0, 2.0])
_FAR = 2.0**8
_LARGEST = 200_000


class SharedDraws:
    """Replicas four by four see the same normal numbers, times 0, 1, -1 and 2.

    Parameters
    ----------
    seed : int
    replicas : int
    """

    def __init__(self, seed: int, replicas: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._factors = np.tile(_FACTORS, replicas // _FACTORS.size)

    def normal(self, replica_of_row: ReplicaIndices, width: int) -> FloatArray:
        """Return the numbers of each row's replica."""
        group = replica_of_row // _FACTORS.size
        order = np.argsort(replica_of_row, kind="stable")
        firsts = np.searchsorted(replica_of_row[order], replica_of_row[order], side="left")
        rank = np.empty(replica_of_row.size, dtype=np.intp)
        rank[order] = np.arange(replica_of_row.size) - firsts
        shape = int(group.max(initial=0)) + 1, int(rank.max(initial=0)) + 1, width
        numbers = self._rng.standard_normal(shape)
        return np.asarray(self._factors[replica_of_row][:, None] * numbers[group, rank])


def replay(setting: Setting, problem: QuadraticProblem, layout: StateLayout) -> None:
    """Compare real rounds with the maps that were read off forms.

    Very large problems are spared: there a single round costs as much as the whole recursion.

    Raises
    ------
    NotAffineError
        If they differ, saying in which round.
    """
    if problem.n_clients * layout.origin.size > _LARGEST:
        return
    rng = np.random.default_rng(0)
    masks = next(setting.participation.masks(rng, 3)).copy()
    start = layout.start(in_round(setting.algorithm, 1), problem, setting.x0)
    scale = max(float(np.abs(start).max()), float(np.abs(layout.origin).max()), 1.0)
    direction = rng.standard_normal(start.size)
    far = _FAR * scale * direction / np.abs(direction).max()
    states = np.stack([start, far, -far])
    maps = _Maps(problem, layout, masks)
    clients = QuadraticClients(problem, Silence())
    for index in sorted({1, min(2, setting.rounds), (setting.rounds + 1) // 2, setting.rounds}):
        try:
            states = _replayed(setting, layout, index, states, maps, clients)
        except RoundOverflowError:
            # Beyond the range of floats there is nothing to compare; the engine dates it.
            return


class _Maps:
    """The maps of some participant sets, read off each algorithm once.

    Parameters
    ----------
    problem : QuadraticProblem
    layout : StateLayout
    masks : array of bool, (s, N)
    """

    def __init__(self, problem: QuadraticProblem, layout: StateLayout, masks: Masks) -> None:
        self.masks = masks
        self._layout = layout
        self._problem = problem
        self._numbers = ClientNumbers(problem, FLOAT64)
        self._of: Algorithm | None = None
        self._known: dict[str, SetMaps] = {}

    def of(self, algorithm: Algorithm, branch: str) -> SetMaps:
        """Return the maps of a branch of an algorithm."""
        if self._of is not algorithm:
            self._of, self._known = algorithm, {}
        if branch not in self._known:
            function, origin = self._layout.function(algorithm, branch), self._layout.origin
            probe = Probe(function, self._problem, origin, origin, numbers=self._numbers)
            self._known[branch] = probe.maps(self.masks)
        return self._known[branch]


def _replayed(
    setting: Setting,
    layout: StateLayout,
    index: int,
    states: FloatArray,
    known: _Maps,
    silent: QuadraticClients,
) -> FloatArray:
    """Check one round from some states (s, n) and return where noisy ones lead."""
    algorithm = in_round(setting.algorithm, index)
    after = states
    for branch, chance in algorithm.branches:
        if chance <= 0:
            continue
        function = layout.function(algorithm, branch)
        maps, masks = known.of(algorithm, branch), known.masks
        count = len(states) * _FACTORS.size
        clients = silent.with_noise(SharedDraws(index, count))
        every = np.repeat(layout.origin + states, _FACTORS.size, axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            real = function(every, clients, np.repeat(masks, _FACTORS.size, axis=0))
        if not np.isfinite(real).all():
            raise RoundOverflowError("a real round exceeds the range of float64")
        images = (real - layout.origin).reshape(len(states), _FACTORS.size, -1)
        expected = np.einsum("skn,sn->sk", maps.slopes, states) + maps.offsets
        noise = images - images[:, :1]
        size = np.abs(real).max(initial=0.0) + np.abs(every).max(initial=0.0)
        misses = [
            images[:, 0] - expected,
            noise[:, 1] + noise[:, 2],
            noise[:, 3] - 2 * noise[:, 1],
        ]
        worst = max(float(np.abs(miss).max(initial=0.0)) for miss in misses)
        # Without dividing: a state that is zero, and stays so, has no size.
        if not worst <= CHECK_TOLERANCE * size:
            raise NotAffineError(
                f"the algorithm's round must be affine in its state; run from real states, round "
                f"{index} misses what was read off it by {worst:.1e}, with numbers of up to "
                f"{size:.1e}: use engines.monte_carlo"
            )
        after = images[:, 1]
    return after
