"""Read a random affine map from a function that runs an algorithm's own code.

A round of an affine algorithm maps the state ``s`` to ``A_S s + b_S + noise``, where S is the
participant set. The maps are found by running the round itself on probe states (`Probe`). If there
are many clients or participant sets, a round that is one weighted sum over participants needs one
pass over clients (`law_of_sums`). For other rounds, the dependence of the map on S is read from a
single run on symbols for who takes part (`Reading`), or from a run for every set if there are few
sets. Drawn sets are used to check that the round treats a mask of symbols like any other mask.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fltheory.engines.affine.probe import (
    CHECK_TOLERANCE,
    DependentRoundsError,
    Probe,
    SetMaps,
    StateFunction,
)
from fltheory.engines.affine.random_affine_map import RandomAffineMap
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.moments.client_sums import law_of_sums
from fltheory.participation.base import Masks, Participation, counted
from fltheory.participation.process import process_of
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_ENUMERATION_LIMIT = 64
_MOST_ENUMERATED_CLIENTS = 32
_MOST_READ_CLIENTS = 10_000
MOST_SETS = 4096
_CHECKED_SETS = 8


def random_affine_map(
    function: StateFunction,
    problem: QuadraticProblem,
    participation: Participation,
    origin: FloatArray,
    image_origin: FloatArray,
    *,
    outcomes: Outcomes | None = None,
) -> RandomAffineMap:
    """Find the law of ``function`` around ``origin`` up to second moments.

    Parameters
    ----------
    function : callable
        Takes states (replicas, n), clients and masks (replicas, N); returns (replicas, k).
    problem, participation
        The problem on which it runs, and who takes part.
    origin, image_origin : arrays, (n,) and (k,)
        States are measured from ``origin``, images from ``image_origin``.
    outcomes : Outcomes, optional
        The outcomes of the participation, if several rounds share them.

    Raises
    ------
    NotAffineError
        If ``function`` is not affine in the state, or if there are too many participant sets to
        enumerate and ``function`` is not a sum over the participants with factors that depend only
        on the number of participants.
    DependentRoundsError
        If participation in different rounds is not independent.
    RoundOverflowError
        If images of ``function`` are too large for float64.
    """
    if not participation.independent:
        raise DependentRoundsError(
            "participation must be independent across rounds, or follow a finite chain, for exact "
            f"moments, got {type(participation).__name__}: use engines.monte_carlo, or "
            "engines.paths with drawn paths"
        )
    outcomes = outcomes or Outcomes(participation)
    # Counting the outcomes for thousands of clients requires numbers with thousands of digits.
    probe = Probe(function, problem, origin, image_origin)
    crowd = participation.n_clients > _MOST_ENUMERATED_CLIENTS
    if crowd or outcomes.count > _ENUMERATION_LIMIT:
        law = law_of_sums(probe, participation)
        if law is not None:
            return law
        _check_clients_one_by_one(participation)
    if outcomes.count > _ENUMERATION_LIMIT:
        try:
            return _by_symbols(probe, participation)
        except NotAffineError:
            if outcomes.count > MOST_SETS:
                raise
    return _by_enumeration(probe, outcomes)


class Outcomes:
    """Every participant set of positive probability, listed on first use.

    Parameters
    ----------
    participation : Participation
    """

    def __init__(self, participation: Participation) -> None:
        self._participation = participation

    @cached_property
    def count(self) -> int:
        """The number of sets."""
        return self._participation.n_outcomes

    @cached_property
    def listed(self) -> tuple[FloatArray, Masks]:
        """The sets' probabilities, (s,), and masks, (s, N)."""
        outcomes = list(self._participation.outcomes())
        probabilities = np.array([probability for probability, _ in outcomes])
        return probabilities, np.array([mask for _, mask in outcomes])


def _by_symbols(probe: Probe, participation: Participation) -> RandomAffineMap:
    """Read the law from one run on symbols, for a round that sums participants' contributions.

    The symbols represent whether a client is present, not how often it was drawn.
    """
    if process_of(participation).repeats:
        raise NotAffineError(
            f"participation must have at most {MOST_SETS} outcomes for exact moments where clients "
            f"may be drawn twice, got {counted(participation.n_outcomes)}: use engines.monte_carlo"
        )
    size = participation.fixed_size
    numbers = np.arange(participation.n_clients + 1) if size is None else np.array([size])
    reading = probe.reading(numbers)
    masks = next(participation.masks(np.random.default_rng(0), _CHECKED_SETS))
    maps = probe.maps(masks)
    _check(probe, maps, *map(np.stack, zip(*map(reading.of, masks), strict=True)))
    several = float(participation.marginals.sum())
    return reading.law(participation, probe.rounding(maps, participants=several))


def _check(
    probe: Probe, maps: SetMaps, slopes: FloatArray, offsets: FloatArray, noises: FloatArray
) -> None:
    """Raise NotAffineError unless real rounds of drawn sets match the maps read for them."""
    found = maps.slopes, maps.offsets + probe.step, maps.noises
    for real, read in zip(found, (slopes, offsets + probe.step, noises), strict=True):
        if not np.abs(real - read).max() <= CHECK_TOLERANCE * np.abs(real).max():
            raise NotAffineError(
                "the algorithm's round must treat a symbolic mask like any other, for exact "
                "moments with this many participant sets: use engines.monte_carlo"
            )


def _check_clients_one_by_one(participation: Participation) -> None:
    """Raise an error if there are too many clients for a table of pairs."""
    if participation.n_clients > _MOST_READ_CLIENTS:
        raise NotAffineError(
            f"participation must be over at most {_MOST_READ_CLIENTS} clients for exact moments of "
            "rounds that are not a weighted sum over independent participants, got "
            f"{participation.n_clients}: use engines.monte_carlo"
        )


def _by_enumeration(probe: Probe, outcomes: Outcomes) -> RandomAffineMap:
    probabilities, masks = outcomes.listed
    roots, maps = np.sqrt(probabilities), probe.bounded_maps(masks)
    return RandomAffineMap(
        mean_slope=np.einsum("s,skn->kn", probabilities, maps.slopes),
        mean_offset=probabilities @ maps.offsets,
        slopes=roots[:, None, None] * maps.slopes,
        offsets=roots[:, None] * maps.offsets,
        noise=np.einsum("s,skl->kl", probabilities, maps.noises),
        slope_error=maps.slope_error,
        offset_error=maps.offset_error,
        noise_error=maps.noise_error,
    )
