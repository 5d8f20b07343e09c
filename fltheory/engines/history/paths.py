"""Exact moments along paths of participants: all possible paths, or a random sample."""

from __future__ import annotations

from itertools import islice

import numpy as np

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.guard import guard_affine, guard_certain
from fltheory.engines.history.histories import (
    Histories,
    PathWays,
    Rounds,
    TooManyHistoriesError,
    Ways,
    follow,
    until_read,
)
from fltheory.engines.history.history_rounds import AffineRounds, KnownRounds
from fltheory.engines.history.steps import HistoryErrors
from fltheory.engines.observables import standard_forms, standard_samples
from fltheory.engines.setting import Setting, in_float64, without_idle_projection
from fltheory.engines.trajectory import FIELDS, Trajectory, exact_trajectory, sampled_trajectory
from fltheory.participation.base import Masks, Participation
from fltheory.participation.process import process_of
from fltheory.problems.quadratic_problem import QuadraticProblem
from fltheory.validation import FloatArray

_MOST_NUMBERS = 1 << 26


@checks_kinds
def paths(setting: Setting, *, draws: int | None = None, seed: int = 0) -> Trajectory:
    """Compute moments exactly given who takes part in every round, and average them over paths.

    If a round is affine given who has taken part so far, the moments are exact with noisy
    gradients, too. Algorithms that count rounds or absences are of this kind. For other algorithms,
    and on clients that are not quadratic, each path is one run, which requires exact gradients.

    Parameters
    ----------
    setting : Setting
    draws : int, optional
        How many paths of participants to draw, at least 2. By default, all possible paths are
        followed, and paths with the same future are merged.
    seed : int
        Seed of the generator that draws the paths.

    Returns
    -------
    Trajectory
        It has ``rounding_error``, a first-order bound, if all paths are followed and rounds are
        affine, and ``standard_error`` if paths are drawn. If every path is a separate run, there is
        no ``rounding_error``, because a round may be any function.

    Raises
    ------
    NotAffineError
        If a round is not affine given its participants and gradients are noisy, if a projection may
        move a model, or if there are too many histories to follow.
    ValueError
        If there are fewer than 2 draws, or the seed is negative.

    Examples
    --------
    >>> from fltheory.algorithms import FedAU
    >>> from fltheory.participation import Bernoulli
    >>> problem = QuadraticProblem([[1.0]], [[0.0]])
    >>> run = paths(Setting(FedAU(0.5, 1), problem, Bernoulli([0.5]), 3, [1.0]))
    >>> run.squared_distance.tolist()
    [1.0, 0.625, 0.390625, 0.236328125]
    """
    setting = in_float64(setting)
    guard_certain(setting)
    ways = _ways(setting, draws, seed)
    problem = setting.problem
    quiet = problem.sigma == 0 and problem.server_sigma == 0
    if isinstance(problem, QuadraticProblem):
        try:
            plain = without_idle_projection(setting, problem)
            guard_affine(plain)
            rounds = AffineRounds(plain, problem, ways)
            return until_read(lambda random: _moments(rounds, random, problem, draws))
        except NotAffineError:
            if not quiet:
                raise
    elif not quiet:
        raise NotAffineError(
            "problem must be a QuadraticProblem, or have exact gradients, to follow paths (a "
            f"round on {type(problem).__name__} is not affine in the model): "
            "use engines.monte_carlo"
        )
    return _runs(KnownRounds(setting, ways), draws)


def _ways(setting: Setting, draws: int | None, seed: int) -> Ways:
    if draws is not None:
        return PathWays(drawn_paths(setting.participation, setting.rounds, draws, seed))
    known = process_of(setting.participation).known_path(setting.rounds)
    return Ways.of(setting.participation) if known is None else PathWays(known[None])


def drawn_paths(participation: Participation, rounds: int, draws: int, seed: int) -> Masks:
    """Draw sequences of participant sets, (draws, rounds, N).

    Raises
    ------
    ValueError
        If there are fewer than 2 draws, or the seed is negative.
    """
    draws = validation.whole_number("draws", draws, at_least=2)
    rng = np.random.default_rng(validation.seed_number("seed", seed))
    drawn = islice(participation.masks(rng, draws), rounds)
    return np.stack([mask.copy() for mask in drawn], axis=1)


def _moments(
    rounds: AffineRounds, random: tuple[str, ...], problem: QuadraticProblem, draws: int | None
) -> Trajectory:
    forms = standard_forms(problem)
    matrices = np.stack([form.matrix for form in forms.values()])
    values, errors, wrong = [], list[FloatArray](), None
    taken, left = 0, rounds.setting.rounds
    with np.errstate(over="ignore", invalid="ignore"):
        for histories, step in follow(rounds, random):
            blocks = histories.moments[:, : problem.dim, : problem.dim]
            shares = np.einsum("pab,fab->pf", blocks, matrices)
            values.append(_by_path(shares, rounds, histories, draws))
            if draws is not None:
                continue
            if wrong is None or step is None:
                wrong = HistoryErrors.at_start(histories.moments, rounds.far(histories.random))
            else:
                wrong = wrong.after(step, histories.moments)
                taken, left = taken + step.cost, left - 1
                # The number of histories seldom falls again after it has grown.
                growing = len(histories.place) > len(step.before)
                if taken + growing * left * step.cost > _MOST_NUMBERS:
                    raise TooManyHistoriesError(
                        f"rounds and histories must be fewer, got {rounds.setting.rounds} rounds: "
                        "give the number of paths to draw, or use engines.monte_carlo"
                    )
            errors.append(wrong.of_forms(matrices, values[-1][0]))
        each = np.stack(values, axis=1)
        if draws is not None:
            return _sampled(each, list(forms))
        found = dict(zip(forms, each[0].T, strict=True))
        trace, nothing = np.maximum(found["squared_distance"], 0.0), np.zeros(len(each[0]))
        return exact_trajectory(
            found,
            {
                name: error + form.error(trace, nothing, nothing, problem.x_star_error)
                for (name, form), error in zip(forms.items(), np.transpose(errors), strict=True)
            },
        )


def _runs(rounds: Rounds, draws: int | None) -> Trajectory:
    values = []
    with np.errstate(over="ignore", invalid="ignore"):
        for histories, _ in follow(rounds, ()):
            samples = standard_samples(rounds.setting.problem, histories.known["x"])
            shares = histories.weights[:, None] * np.stack(samples, axis=1)
            values.append(_by_path(shares, rounds, histories, draws))
    each = np.stack(values, axis=1)
    if draws is not None:
        return _sampled(each, list(FIELDS))
    return exact_trajectory(dict(zip(FIELDS, each[0].T, strict=True)), None)


def _by_path(
    shares: FloatArray, rounds: Rounds, histories: Histories, draws: int | None
) -> FloatArray:
    """Sum shares (P, F) over the histories of each drawn path, or over all histories."""
    if draws is None:
        # Summation is pairwise, because adding thousands of histories one by one would exceed the
        # stated rounding error.
        return np.asarray(np.ascontiguousarray(shares.T).sum(axis=1)[None])
    total = np.zeros((draws, shares.shape[1]))
    np.add.at(total, histories.place // (rounds.setting.rounds + 1), shares)
    return total


def _sampled(each: FloatArray, names: list[str]) -> Trajectory:
    """Return means over drawn paths of values (P, rounds + 1, F), with standard errors."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, error = each.mean(axis=0), each.std(axis=0, ddof=1) / np.sqrt(len(each))
        return sampled_trajectory(names, mean.T, error.T, len(each))
