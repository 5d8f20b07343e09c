"""CA-Fed's Lemmas 2 and 3 on two correlated clients, along every path of who is there."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import fltheory as fl
from fltheory.algorithms import Harmonic, Projected, Scheduled, WeightedFedAvg
from fltheory.evidence.truths import Sampling
from fltheory.participation import MarkovOnOff
from fltheory.problems import Ball, QuadraticProblem

H, OPTIMA, PI, NU, Q = (1.0, 0.5), (2.0, -1.0), (0.8, 0.4), (0.5, 0.7), (0.3, 0.6)
STEPS, ROUNDS, START, RADIUS = 2, 5, 1.5, 6.0
TOTAL, PI_Q = sum(Q), sum(p * q for p, q in zip(PI, Q, strict=True))
STAR_B = sum(p * q * h * c for p, q, h, c in zip(PI, Q, H, OPTIMA, strict=True)) / sum(
    p * q * h for p, q, h in zip(PI, Q, H, strict=True)
)


def eta(t: int) -> float:
    return 1 / (t + 9)


def setting() -> fl.Setting:
    problem = QuadraticProblem([[[h]] for h in H], [[c] for c in OPTIMA])
    scheduled = Scheduled(WeightedFedAvg(Q, eta(1), STEPS), Harmonic(1.0, offset=9.0))
    algorithm = Projected(scheduled, Ball([0.0], RADIUS))
    return fl.Setting(algorithm, problem, MarkovOnOff(PI, NU), ROUNDS, [START])


def loss(k: int, w: float) -> float:
    return H[k] * (w - OPTIMA[k]) ** 2 / 2


def worst(value) -> float:
    return max(value(k, w) for k in range(2) for w in (-RADIUS, RADIUS))


D = worst(lambda k, w: abs(H[k] * (w - OPTIMA[k])))
LARGEST_CHANGE = max(
    worst(lambda k, w: loss(k, w) - loss(k, STAR_B)), *(loss(k, STAR_B) for k in range(2))
)


def delay(t: int) -> int:
    rate, factor = (max(NU) + 1) / 2, sum(max(p, 1 - p) for p in PI)
    wanted = math.ceil(math.log(2 * factor * LARGEST_CHANGE * t) / math.log(1 / rate))
    return min(max(wanted, 0), t - 1)


def sums(weight) -> tuple[float, float]:
    """Return ``sum_t weight_t E[..]`` of Lemma 2, and Lemma 3's left side."""
    second = third = 0.0
    for path in product(product((0, 1), repeat=2), repeat=ROUNDS):
        chance, w, models = 1.0, START, []
        for t, there in enumerate(path, start=1):
            for k in range(2):
                before = PI[k] if t == 1 else PI[k] + NU[k] * (path[t - 2][k] - PI[k])
                chance *= before if there[k] else 1 - before
            models.append(w)
            w += sum(
                Q[k] * ((1 - eta(t) * H[k]) ** STEPS - 1) * (w - OPTIMA[k])
                for k in range(2)
                if there[k]
            )
        for t, there in enumerate(path, start=1):
            now, then = models[t - 1], models[t - 1 - delay(t)]
            for k in range(2):
                if there[k]:
                    excess = loss(k, now) - loss(k, STAR_B)
                    second += chance * weight(t) * Q[k] * excess
                    third += chance * eta(t) * Q[k] * (loss(k, then) - loss(k, now))
    return second, third


def proved(t: int) -> float:
    return eta(t) * (1 - eta(t) * (STEPS * TOTAL + 1)) * (1 - eta(t))


def test_lemma_2() -> None:
    rounds = range(1, ROUNDS + 1)
    star = sum(h * c for h, c in zip(H, OPTIMA, strict=True)) / sum(H)
    gamma, squares = max(loss(k, star) for k in range(2)), sum(eta(t) ** 2 for t in rounds)
    away, drift = (START - STAR_B) ** 2, (STEPS - 1) * (2 * STEPS - 1) * D**2
    whole = math.pi**2 / 6 - sum(1 / t**2 for t in range(1, 10))
    for reading, weight, bound in (
        (
            "printed",
            eta,
            away * 2 / STEPS + (2 / 3 * drift + 2 * (STEPS * TOTAL + 2) * gamma) * PI_Q * whole,
        ),
        (
            "derived",
            proved,
            away / (2 * STEPS) + (drift / 6 + (STEPS * TOTAL + 2) * gamma) * PI_Q * squares,
        ),
    ):
        verdict = fl.theorem("ca-fed/lemma-2", reading).verdict(setting(), Sampling())
        total = sum(weight(t) for t in rounds)
        assert verdict.truth == pytest.approx(sums(weight)[0] / total, rel=1e-12)
        assert verdict.bound == pytest.approx(bound / total, rel=1e-12)


def test_lemma_3() -> None:
    verdict = fl.theorem("ca-fed/lemma-3").verdict(setting(), Sampling())
    delayed = sum(delay(t) * eta(t - delay(t)) ** 2 for t in range(1, ROUNDS + 1))
    assert verdict.truth == pytest.approx(sums(eta)[1], rel=1e-11)
    assert verdict.bound == pytest.approx(STEPS * D**2 * TOTAL * delayed * PI_Q, rel=1e-12)


def test_averages_are_no_iterates() -> None:
    averaged = fl.theorem("ca-fed/2").regimes["nu = 0.5"].setting
    with pytest.raises(ValueError, match="algorithm must be the Projected"):
        fl.theorem("ca-fed/lemma-2").verdict(averaged, Sampling())
    with pytest.raises(ValueError, match="algorithm must be AveragedIterate"):
        fl.theorem("ca-fed/2").verdict(setting(), Sampling())


def test_second_moments_on_the_ball() -> None:
    """(7) is attained where the farthest client is as noisy as any."""
    one = fl.theorem("ca-fed/lemma-1").regimes["unequal noise"].setting
    sigmas, radius = np.array([10.0, 0.5]), 25.0
    found = fl.theorem("ca-fed/lemma-1").verdict(one, Sampling())
    assert found.truth == pytest.approx(max((radius + 10) ** 2 + sigmas**2), rel=1e-15)
