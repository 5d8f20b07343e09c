"""Every refutation among CA-Fed's regimes, computed a second time in another way.

The settings of the regimes are typed again as numbers; truths are enumerated or multiplied out, and
the statements typed from the paper in plain arithmetic. The engines and the theorems' expressions
and evaluation are used only in the last comparison.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from fltheory import theorems
from fltheory.testing.pytest_plugin import Recorder
from fltheory.verify import Outcome, check
from fltheory.verify.certificates.certificate import setting_from_text

_FAR = 2_000_000


def bound_12(
    *, steps, T, q_sigma_q=0.0, start2, M, Q, pi_q, L, E, gamma, D, G, H, C_P, lam
) -> float:
    """Return the right side of (12) for eta_t = c/(t+b), with its infinite sums truncated late."""
    c, b = steps
    t = np.arange(1, _FAR + 1)
    squares = float(((c / (t + b)) ** 2).sum()) + c**2 / (_FAR + b)
    logs = np.log(2 * C_P * H * t)
    J = np.minimum(np.maximum(np.ceil(logs / math.log(1 / lam)), 0), t)
    phi = 2 * E * D * G * Q * float((logs * (c / (t - J + b)) ** 2).sum())
    phi += 2 * E * D * G * Q * c**2 * (logs[-1] + 1) / _FAR
    upsilon = 2 / E * start2 + M * Q / 4 * (squares + math.pi**2 / 6)
    psi = 4 * L * (E * Q + 2) * gamma * squares
    psi += 2 / 3 * (E - 1) * (2 * E - 1) * G**2 * squares
    above = (q_sigma_q / 2 + upsilon) / pi_q + psi + phi / math.log(1 / lam)
    return above / sum(c / (s + b) for s in range(1, T + 1))


def cited(*availability: float) -> float:
    """Return C_P of [14] from the explicit eigenbasis of a chain of 2^n states.

    Columns (1, 1) and (1 - pi, -pi) for each client, Kronecker products of them for all; each is
    scaled to be as long as its row of the inverse.
    """
    basis = np.ones((1, 1))
    for pi in availability:
        basis = np.kron(basis, np.array([[1.0, 1 - pi], [1.0, -pi]]))
    dual = np.linalg.inv(basis)
    scale = np.sqrt(np.linalg.norm(dual, axis=1) / np.linalg.norm(basis, axis=0))
    norms = np.linalg.norm(basis * scale), np.linalg.norm(dual / scale[:, None])
    return float(math.sqrt(len(basis) - 1) * norms[0] * norms[1])


def compared(
    as_recorded: Recorder, regime: str, truth: float, bound: float, reading: str = "printed"
) -> None:
    assert truth > bound
    statement = theorems.get("ca-fed/2", reading)
    verdict = as_recorded(statement, regime)
    assert verdict.outcome is Outcome.REFUTED
    assert verdict.truth == pytest.approx(truth, rel=1e-9)
    assert verdict.bound == pytest.approx(bound, rel=1e-5)


def test_started_at_the_target_minimiser(as_recorded: Recorder) -> None:
    """F_k = (w - c_k)^2/2, c = +-1000, pi = (0.9, 0.1), q = 1/2 each: w_B* = 800, w* = 0.

    Rounds are independent: E[w_s w_t] for s < t from E[w_s^2] and E[w_s], by the mean maps of
    the rounds between.
    """
    T, (c, b) = 100, (0.02, 99.0)
    eta = [c / (t + b) for t in range(1, T + 1)]
    chances, shares, pulls = [], [], []
    for first, second in product((0, 1), repeat=2):
        chances.append((0.9 if first else 0.1) * (0.1 if second else 0.9))
        shares.append(0.5 * first + 0.5 * second)
        pulls.append(500.0 * first - 500.0 * second)

    def mean(values) -> float:
        return sum(p * v for p, v in zip(chances, values, strict=True))

    first_moment, second_moment = [0.0], [0.0]
    for step in eta[:-1]:
        keep = [1 - step * s for s in shares]
        both = [k * step * z for k, z in zip(keep, pulls, strict=True)]
        m, v = first_moment[-1], second_moment[-1]
        first_moment.append(mean(keep) * m + step * mean(pulls))
        second_moment.append(
            mean([k * k for k in keep]) * v
            + 2 * mean(both) * m
            + step**2 * mean([z * z for z in pulls])
        )
    square = 0.0
    for s in range(T):
        slope, offset = 1.0, 0.0
        for t in range(s, T):
            if t > s:
                slope *= 1 - eta[t - 1] * mean(shares)
                offset = (1 - eta[t - 1] * mean(shares)) * offset + eta[t - 1] * mean(pulls)
            crossed = slope * second_moment[s] + offset * first_moment[s]
            square += (1 if t == s else 2) * eta[s] * eta[t] * crossed
    total = sum(eta)
    average = sum(e * m for e, m in zip(eta, first_moment, strict=True)) / total
    truth = 0.5 * (square / total**2 - 2 * 800 * average + 800**2)
    bound = bound_12(
        steps=(c, b),
        T=T,
        start2=0.0,
        M=4,
        Q=1.0,
        pi_q=0.5,
        L=1.0,
        E=1,
        gamma=1000**2 / 2,
        D=2250.0,
        G=2250.0,
        H=0.5 * 2250**2 - 0.5 * 200**2,
        C_P=cited(0.9, 0.1),
        lam=0.5,
    )
    compared(as_recorded, "started at the optimum", truth, bound)


def test_other_units(as_recorded: Recorder) -> None:
    """One client, there or not; every path of ten rounds is run. The bound is negative."""
    L, start, c, b, T = 1.0, 0.1, 2.5, 9.0, 10
    stay = 0.99 + 0.01 * 0.5
    truth = 0.0
    for path in product((0, 1), repeat=T - 1):
        chance, w, above = 0.5, start, 0.0
        for t, present in enumerate(path, start=1):
            if t > 1:
                chance *= stay if present == path[t - 2] else 1 - stay
            above += c / (t + b) * w
            w *= 1 - c / (t + b) * L if present else 1.0
        above += c / (T + b) * w
        average = above / sum(c / (t + b) for t in range(1, T + 1))
        truth += chance * 0.5 * L * average**2
    bound = bound_12(
        steps=(c, b),
        T=T,
        start2=start**2,
        M=2,
        Q=1.0,
        pi_q=0.5,
        L=L,
        E=1,
        gamma=0.0,
        D=L * 0.125,
        G=L * 0.125,
        H=0.5 * L * 0.125**2,
        C_P=0.5,
        lam=0.995,
    )
    assert bound < 0
    compared(as_recorded, "other units", truth, bound, "any C_P")


def test_two_clients_who_come_as_one_make_the_printed_bound_negative() -> None:
    """The certificate's setting: H is small, and C_P is that of [14] for a chain of two states.

    Both are there or none, each with q = 1/2 and optima that cancel: w is multiplied by 1 - eta_t
    where they are. The second moments of w and of the sum of eta_t w are kept by state.
    """
    c, b, T, start = 2.0, 1.0, 100, 0.01
    moves = np.array([[0.999, 0.001], [0.009, 0.991]])
    law = np.array([0.9, 0.1])
    assert law @ moves == pytest.approx(law)
    squares, products, sums = law * start**2, law * 0.0, law * 0.0
    for t in range(1, T + 1):
        eta = c / (t + b)
        sums = sums + 2 * eta * products + eta**2 * squares
        products = products + eta * squares
        keep = np.array([1 - eta, 1.0])
        squares, products, sums = (
            (keep**2 * squares) @ moves,
            (keep * products) @ moves,
            sums @ moves,
        )
    truth = 0.5 * sums.sum() / sum(c / (t + b) for t in range(1, T + 1)) ** 2
    far, off = 0.038, 0.018
    bound = bound_12(
        steps=(c, b),
        T=T,
        start2=start**2,
        M=2,
        Q=1.0,
        pi_q=0.9,
        L=1.0,
        E=1,
        gamma=0.5 * off**2,
        D=far,
        G=far,
        H=0.5 * (far**2 - off**2),
        C_P=cited(0.9),
        lam=0.995,
    )
    assert truth > 0 > bound
    kept = Path(__file__).parent / "certificates" / "ca-fed-2-units.json"
    document = json.loads(kept.read_text())
    assert truth > float(Fraction(document["truth"])) > float(Fraction(document["bound"])) > bound
    found = check(theorems.get("ca-fed/2"), setting_from_text(document["setting"]))
    assert (found.truth, found.bound) == pytest.approx((truth, bound), rel=1e-5)


def test_the_same_run_in_larger_units_is_within_its_bound() -> None:
    """Losses times 100, lengths times 10: nothing else has changed."""
    statement = theorems.get("ca-fed/2", "any C_P")
    small = check(statement, statement.regimes["other units"].setting)
    large = check(statement, statement.regimes["one slow client"].setting)
    assert large.truth == pytest.approx(100 * small.truth, rel=1e-12)
    assert large.outcome is Outcome.HOLDS


@pytest.mark.soundness
def test_small_server_step(as_recorded: Recorder) -> None:
    """One client that is always there: the run is a product of 2400 numbers."""
    (c, b), T = (9.6, 600.0), 2400
    w, above = 1.0, 0.0
    for t in range(1, T + 1):
        above += c / (t + b) * w
        w *= 1 - 1e-5 * c / (t + b)
    truth = 0.5 * (above / sum(c / (t + b) for t in range(1, T + 1))) ** 2
    bound = bound_12(
        steps=(c, b),
        T=T,
        start2=1.0,
        M=1,
        Q=1.0,
        pi_q=1.0,
        L=1.0,
        E=1,
        gamma=0.0,
        D=1.01,
        G=1.01,
        H=0.5 * 1.01**2,
        C_P=1.0,
        lam=0.5,
    )
    compared(as_recorded, "small server step", truth, bound)


def test_rarer_clients_can_get_the_larger_weights() -> None:
    """(12) as a function of q alone, handed to a general optimiser."""
    pi, sigma, Q = np.array([0.9, 0.7, 0.5, 0.3]), 40.0, sum(0.25 / p for p in (0.9, 0.7, 0.5, 0.3))
    t = np.arange(1, _FAR + 1)
    squares = float(((2.0 / (t + 24)) ** 2).sum()) + 4.0 / (_FAR + 24)
    upsilon = 16 * Q / 4 * (squares + math.pi**2 / 6)

    def error(q: np.ndarray) -> float:
        return float((0.5 * sigma**2 * squares * (pi @ q**2) + upsilon) / (pi @ q))

    found = minimize(
        error,
        np.full(4, Q / 4),
        bounds=[(0, None)] * 4,
        constraints={"type": "eq", "fun": lambda q: q.sum() - Q},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert (np.diff(found.x) > 0).all()
    statement = theorems.get("ca-fed/appendix-d")
    verdict = check(statement, statement.regimes["noisy gradients"].setting)
    assert verdict.outcome is Outcome.REFUTED
    assert verdict.truth == pytest.approx(found.x[3] / found.x[0], rel=1e-4)


def test_chi_square_is_not_convex_in_fractions() -> None:
    """Between two weights that sum to one, at the regime's own in the middle."""
    pi = [Fraction(1), Fraction(1, 100), Fraction(1, 100)]
    alpha = [Fraction(1, 1000), Fraction(998, 1000), Fraction(1, 1000)]

    def chi2(tenths: tuple[int, int, int]) -> Fraction:
        q = [Fraction(part, 10) for part in tenths]
        total = sum(a * b for a, b in zip(pi, q, strict=True))
        p = [a * b / total for a, b in zip(pi, q, strict=True)]
        return sum((a - b) ** 2 / b for a, b in zip(alpha, p, strict=True))

    assert chi2((3, 3, 4)) > (chi2((1, 2, 7)) + chi2((5, 4, 1))) / 2
    statement = theorems.get("ca-fed/appendix-e")
    setting = statement.regimes["rare majority"].setting
    assert check(statement, setting).outcome is Outcome.REFUTED


@pytest.mark.parametrize("regime", ["two clients, one rare", "equal weights", "rare majority"])
def test_a_summand_is_not_convex_in_fractions(regime: str) -> None:
    """Of (alpha_k - p_k)^2 / p_k, p_k = pi_k q_k / pi'q, at the middle of two weights."""
    statement = theorems.get("ca-fed/appendix-e-summands")
    setting = statement.regimes[regime].setting
    pi = [Fraction(str(p)) for p in setting.participation.marginals]
    alpha = [Fraction(float(a)).limit_denominator(10_000) for a in setting.problem.alpha]

    def summands(parts: tuple[int, ...]) -> list[Fraction]:
        shown = [a * b for a, b in zip(pi, parts, strict=True)]
        p = [one / sum(shown) for one in shown]
        return [(a - b) ** 2 / b for a, b in zip(alpha, p, strict=True)]

    def bends_down(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        between = tuple((a + b) // 2 for a, b in zip(one, other, strict=True))
        sides = zip(summands(between), summands(one), summands(other), strict=True)
        return any(middle > (first + second) / 2 for middle, first, second in sides)

    even = [w for w in product(range(2, 40, 2), repeat=len(pi)) if sum(w) == 40]
    assert any(bends_down(one, other) for one, other in combinations(even, 2))
    assert check(statement, setting).outcome is Outcome.REFUTED


def test_every_refuted_cell_is_among_these(recorded_verdicts) -> None:
    refuted = {key for key, record in recorded_verdicts.items() if record.outcome == "REFUTED"}
    assert {key for key in refuted if key[0].startswith("ca-fed")} == {
        ("ca-fed/2", "printed", "started at the optimum"),
        ("ca-fed/2", "printed", "small server step"),
        ("ca-fed/2", "any C_P", "started at the optimum"),
        ("ca-fed/2", "any C_P", "other units"),
        ("ca-fed/2", "any C_P", "small server step"),
        ("ca-fed/appendix-d", "printed", "noisy gradients"),
        # test_own_truths.py computes these from typed numbers alone.
        ("ca-fed/appendix-d", "printed", "unequal noise"),
        ("ca-fed/lemma-2", "printed", "a rare client first"),
        ("ca-fed/lemma-3", "printed", "a rare client stays"),
        ("ca-fed/local-gradients", "printed", "noise outweighs gradients"),
        ("ca-fed/falling-steps", "printed", "warm-up"),
        ("ca-fed/vi-a", "printed", "five clients"),
        ("ca-fed/appendix-e", "printed", "rare majority"),
        ("ca-fed/appendix-e-summands", "printed", "two clients, one rare"),
        ("ca-fed/appendix-e-summands", "printed", "equal weights"),
        ("ca-fed/appendix-e-summands", "printed", "rare majority"),
    }
