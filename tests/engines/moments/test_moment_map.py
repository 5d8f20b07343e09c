"""The moment map against direct averages over a finite law."""

from __future__ import annotations

import numpy as np
import pytest

from fltheory.engines.affine.random_affine_map import RandomAffineMap, mixture
from fltheory.engines.moments.moment_map import (
    MomentMap,
    MomentRounding,
    packed,
    parted,
    propagate,
)
from fltheory.participation.process import States

SIZE = 3


def finite_law(seed: int, probabilities: list[float]) -> tuple[RandomAffineMap, list]:
    """Return a law of a few random maps, and the list of (probability, A, b, noise)."""
    rng = np.random.default_rng(seed)
    maps = []
    for probability in probabilities:
        root = rng.standard_normal((SIZE, SIZE))
        maps.append(
            (
                probability,
                rng.standard_normal((SIZE, SIZE)),
                rng.standard_normal(SIZE),
                root @ root.T,
            )
        )
    law = RandomAffineMap(
        mean_slope=sum(p * a for p, a, _, _ in maps),
        mean_offset=sum(p * b for p, _, b, _ in maps),
        slopes=np.array([np.sqrt(p) * a for p, a, _, _ in maps]),
        offsets=np.array([np.sqrt(p) * b for p, _, b, _ in maps]),
        noise=sum(p * q for p, _, _, q in maps),
        slope_error=0.0,
        offset_error=0.0,
    )
    return law, maps


def averaged(maps: list, second: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Average ``A M A' + A m b' + b m' A' + b b' + noise`` and ``A m + b`` over the maps."""
    image_second, image_first = np.zeros((SIZE, SIZE)), np.zeros(SIZE)
    for p, a, b, noise in maps:
        cross = a @ np.outer(first, b)
        image_second += p * (a @ second @ a.T + cross + cross.T + np.outer(b, b) + noise)
        image_first += p * (a @ first + b)
    return image_second, image_first


def image(step: MomentMap, moments: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return E s s' and E s after a round."""
    second, first, weight = parted(step(packed(*moments, np.ones(()))), SIZE)
    assert weight == 1.0
    return second, first


@pytest.fixture
def moments(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    first = rng.standard_normal(SIZE)
    root = rng.standard_normal((SIZE, SIZE))
    return root @ root.T + np.outer(first, first), first


def test_one_round(moments: tuple[np.ndarray, np.ndarray]) -> None:
    law, maps = finite_law(0, [0.5, 0.3, 0.2])
    step = MomentMap(law)
    expected_second, expected_first = averaged(maps, *moments)
    second, first = image(step, moments)
    np.testing.assert_allclose(second, expected_second, rtol=1e-12)
    np.testing.assert_allclose(first, expected_first, rtol=1e-12)
    flat = step.matrix @ np.concatenate([moments[0].ravel(), moments[1], [1.0]])
    np.testing.assert_allclose(flat, [*expected_second.ravel(), *expected_first, 1.0], rtol=1e-12)


def test_mixture_of_branches(moments: tuple[np.ndarray, np.ndarray]) -> None:
    (left, left_maps), (right, right_maps) = finite_law(1, [0.6, 0.4]), finite_law(2, [1.0])
    mixed = MomentMap(mixture([(0.25, left), (0.75, right)]))
    expected = [
        0.25 * a + 0.75 * b
        for a, b in zip(averaged(left_maps, *moments), averaged(right_maps, *moments), strict=True)
    ]
    for answer, right_answer in zip(image(mixed, moments), expected, strict=True):
        np.testing.assert_allclose(answer, right_answer, rtol=1e-12)


def test_factors_without_a_slope_still_count_as_inflow() -> None:
    law, _ = finite_law(3, [0.5, 0.5])
    law.slopes[1] = 0.0
    zero = np.zeros((SIZE, SIZE)), np.zeros(SIZE)
    expected = sum(np.outer(b, b) for b in law.offsets) + law.noise
    np.testing.assert_allclose(image(MomentMap(law), zero)[0], expected, rtol=1e-13)


@pytest.mark.parametrize("off", [(1e-3, 0.0), (0.0, 1e-3), (1e-3, 1e-3)])
def test_error_propagation_dominates_a_perturbed_recursion(off: tuple[float, float]) -> None:
    """Start off in either or both moments: the bound covers the difference in every round.

    The map is affine in (M, m), so the difference obeys the recursion without its constants;
    the error of M is measured in the nuclear norm.
    """
    law, maps = finite_law(4, [0.5, 0.5])
    step = MomentMap(law)
    first = np.ones(SIZE)
    second = np.outer(first, first)
    shift, tilt = off[0] * np.diag([1.0, -2.0, 1.0]), off[1] * np.array([1.0, 0.0, -1.0])
    other_second, other_first = second + shift, first + tilt
    traces, second_gaps, first_gaps = [], [], []
    for _ in range(6):
        traces.append(np.trace(second))
        second_gaps.append(np.linalg.norm(other_second - second, "nuc"))
        first_gaps.append(np.linalg.norm(other_first - first))
        second, first = averaged(maps, second, first)
        other_second, other_first = averaged(maps, other_second, other_first)
    rounds = [(step.rounding, step, len(traces) - 1)]
    one = np.ones(len(traces))
    bounds = propagate(rounds, np.array(traces), one, second_gaps[0], first_gaps[0])
    assert (np.array(second_gaps) <= bounds.second * (1 + 1e-9)).all()
    assert (np.array(first_gaps) <= bounds.first * (1 + 1e-9)).all()
    assert bounds.second[0] == second_gaps[0]


def test_what_one_round_adds_to_the_errors_by_hand() -> None:
    """With ||s|| = 2 the image has a size of 3 x 2 + 5 = 11, and maps are off by .1 x 2 + .2 = .4.

    To M: a hundredth of 11 x 4 + 13 x 2 + 17 and of the inflow, 17, once more; .3 for the noise;
    2 x 11 x .4 + .4^2 for the maps. To m: a hundredth of 7 x 2 + 5, and .4. If it is known that
    E||s||^2 is 4 after the round, the image has a size of 2, and maps add 2 x 2 x .4 + .4^2.
    """
    rounding = MomentRounding(
        second_gain=9.0,
        offset_size=5.0,
        first_gain=2.0,
        first_size=7.0,
        slope_work=11.0,
        cross_work=13.0,
        inflow_work=17.0,
        slope_error=0.1,
        offset_error=0.2,
        noise_error=0.3,
        unit=0.01,
    )
    second, first = rounding.of_one_round(4.0)
    assert float(second) == pytest.approx(0.87 + 0.17 + 0.3 + 8.8 + 0.16, rel=1e-14)
    assert float(first) == pytest.approx(0.19 + 0.4, rel=1e-14)
    second, first = rounding.of_one_round(4.0, after=4.0)
    assert float(second) == pytest.approx(0.87 + 0.17 + 0.3 + 1.6 + 0.16, rel=1e-14)
    assert float(first) == pytest.approx(0.19 + 0.4, rel=1e-14)
    assert float(rounding.coupling) == pytest.approx(2 * 3 * 5, rel=1e-14)


def test_constants_of_the_rounding_are_those_of_the_maps() -> None:
    """Spectral norms of E A'A and E A, sizes of factors, and n^2 + 2 n + factors + 8 operations."""
    law, maps = finite_law(5, [0.5, 0.3, 0.2])
    found = MomentMap(law).rounding
    gram = sum(p * a.T @ a for p, a, _, _ in maps)
    assert found.second_gain == pytest.approx(np.linalg.norm(gram, 2))
    assert found.first_gain == pytest.approx(np.linalg.norm(law.mean_slope, 2))
    assert found.first_size == pytest.approx(np.sqrt((law.mean_slope**2).sum()))
    square = sum(p * b @ b for p, _, b, _ in maps)
    assert found.offset_size == pytest.approx(np.sqrt(square))
    sizes = [(p, np.linalg.norm(a), np.linalg.norm(b)) for p, a, b, _ in maps]
    assert found.slope_work == pytest.approx(sum(p * a**2 for p, a, _ in sizes))
    assert found.cross_work == pytest.approx(sum(2 * p * a * b for p, a, b in sizes))
    assert found.inflow_work == pytest.approx(square + np.trace(law.noise))
    assert found.unit == pytest.approx(2.0**-53 * (9 + 6 + 3 + 8) * np.sqrt(3))


def test_errors_after_a_round_along_a_chain_by_hand() -> None:
    """Two states, with moments of sizes 4 and 2 and weights 1/4 and 1, that are off by 1/2 and 1/4.

    The image's sizes are 2 x 4 + 1/2 and 3 x 2 + 2. To M the round adds 10/2 and 20/4 for the
    weights, and for moving 2 hundredths of 8.5^2 + 1/4 and 8^2 + 2; to m 1/2 twice, and a hundredth
    of 8.5/2 and 8. With what the errors before it grow to, M's are 4 + 4 x 3 and 9 x 2 + 12 x 4
    more, m's 2 x 3 and 3 x 4. Then the chain moves them.
    """
    transition = np.array([[0.5, 0.5], [0.25, 0.75]])
    masks, law = np.eye(2, dtype=bool), np.array([0.25, 1.0])
    zero = np.zeros(2)
    rounding = MomentRounding(
        second_gain=np.array([4.0, 9.0]),
        offset_size=np.array([1.0, 2.0]),
        first_gain=np.array([2.0, 3.0]),
        first_size=zero,
        slope_work=zero,
        cross_work=zero,
        inflow_work=np.array([10.0, 20.0]),
        slope_error=0.0,
        offset_error=0.0,
        noise_error=0.0,
        unit=0.0,
        moved=0.01,
        noise=np.array([1.0, 2.0]),
        size=4,
        states=States(masks, law, law, (transition,)),
    )
    errors = np.zeros((3, 2, 2))
    errors[:, 0] = [1.0, 2.0], [3.0, 4.0], [0.5, 0.25]
    fresh = rounding.of_states(np.array([[16.0, 4.0]]), law[None], errors)
    np.testing.assert_allclose(fresh[0], [[5 + 1.45, 5 + 1.32]], rtol=1e-13)
    np.testing.assert_allclose(fresh[1], [[0.5 + 0.0425, 0.5 + 0.08]], rtol=1e-13)
    second, first = np.array([16 + 6.45, 66 + 6.32]), np.array([6 + 0.5425, 12 + 0.58])
    weights = np.array([0.5 + 0.0025, 0.25 + 0.01])
    for found, before in zip(errors[:, 1], (second, first, weights), strict=True):
        np.testing.assert_allclose(found, before @ transition, rtol=1e-13)
