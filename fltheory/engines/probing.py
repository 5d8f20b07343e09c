"""Read a random affine map off a function that runs an algorithm's own code.

A round of an affine algorithm maps the state ``s`` to ``A_S s + b_S + noise``, where S is the
participant set. The maps are found by running the round itself on probe states (`Probe`).
Where the participant sets are too many to run through, the map's dependence on S is read off a
few of them: from swaps of one participant where their number is fixed, from small sets where it
varies. That the function is affine, and of this form, is checked on further sets and states.
"""

from __future__ import annotations

import numpy as np

from fltheory.engines.probe import (
    DependentRoundsError,
    NotAffineError,
    Probe,
    SetMaps,
    StateFunction,
)
from fltheory.engines.random_affine_map import RandomAffineMap
from fltheory.engines.sums_by_size import by_size
from fltheory.engines.swaps import by_swaps
from fltheory.participation.base import Masks, Participation, SizedInclusions
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_ENUMERATION_LIMIT = 64
MOST_SETS = 4096


def random_affine_map(
    function: StateFunction,
    problem: QuadraticProblem,
    participation: Participation,
    origin: FloatArray,
    image_origin: FloatArray,
) -> RandomAffineMap:
    """Find the law of ``function`` around ``origin`` up to second moments.

    Parameters
    ----------
    function : callable
        Takes states (replicas, n), clients and masks (replicas, N); returns (replicas, k).
    problem, participation
        Where it runs, and who takes part.
    origin, image_origin : arrays, (n,) and (k,)
        States are measured from ``origin``, images from ``image_origin``.

    Raises
    ------
    NotAffineError
        If ``function`` is not affine in the state, or depends on the participants in a way
        that neither enumeration nor one-participant swaps capture, nor a sum over those present
        of what depends on their number.
    DependentRoundsError
        If rounds are not independent.
    RoundOverflowError
        If its images are too large for float64.
    """
    if not participation.independent:
        raise DependentRoundsError(
            "participation must be independent over rounds, or follow a finite chain, for exact "
            f"moments, got {type(participation).__name__}: use engines.conditional with drawn "
            "paths, or engines.monte_carlo"
        )
    probe = Probe(function, problem, origin, image_origin)
    many = participation.n_outcomes > _ENUMERATION_LIMIT
    if participation.fixed_size is not None and many:
        return by_swaps(probe, participation, participation.fixed_size)
    few = participation.n_outcomes <= MOST_SETS
    if many and isinstance(participation, SizedInclusions):
        try:
            return by_size(probe, participation)
        except NotAffineError:
            if not few:
                raise
    if few:
        return _by_enumeration(probe, participation)
    raise NotAffineError(
        f"participation must have at most {MOST_SETS} outcomes, a fixed number of participants "
        f"or known chances of pairs by their number, for exact moments, got "
        f"{participation.n_outcomes} outcomes of varying size: use engines.conditional with drawn "
        "paths, or engines.monte_carlo"
    )


def maps_of_sets(
    function: StateFunction,
    problem: QuadraticProblem,
    masks: Masks,
    origin: FloatArray,
    image_origin: FloatArray,
) -> SetMaps:
    """Find the affine map that ``function`` is on each of some participant sets (s, N).

    Arguments and errors are those of `random_affine_map`.
    """
    probe = Probe(function, problem, origin, image_origin)
    maps = probe.maps(masks)
    probe.check(masks, maps, np.random.default_rng(0))
    return SetMaps(maps.slopes, maps.offsets, maps.noises, **probe.rounding(maps, participants=1.0))


def _by_enumeration(probe: Probe, participation: Participation) -> RandomAffineMap:
    outcomes = list(participation.outcomes())
    probabilities = np.array([probability for probability, _ in outcomes])
    masks = np.array([mask for _, mask in outcomes])
    maps = probe.maps(masks)
    probe.check(masks, maps, np.random.default_rng(0))
    roots = np.sqrt(probabilities)
    return RandomAffineMap(
        mean_slope=np.einsum("s,skn->kn", probabilities, maps.slopes),
        mean_offset=probabilities @ maps.offsets,
        slopes=roots[:, None, None] * maps.slopes,
        offsets=roots[:, None] * maps.offsets,
        noise=np.einsum("s,skl->kl", probabilities, maps.noises),
        **probe.rounding(maps, participants=1.0),
    )
