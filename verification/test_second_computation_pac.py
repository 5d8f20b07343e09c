"""Every refutation on PAC learnability, computed again without the package's code."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from fltheory.verify.baseline import Baseline


def test_equivalence_of_samples_and_clients() -> None:
    """M = 10, n = 20, m = 5: at most 100 of 200 samples at x_2, against five clients without it."""
    p = Fraction(1, 4)
    by_samples = sum(math.comb(200, s) * p**s * (1 - p) ** (200 - s) for s in range(101))
    free = (1 - p) ** 20
    by_clients = sum(math.comb(10, c) * free**c * (1 - free) ** (10 - c) for c in range(5, 11))
    assert by_samples > 1 - Fraction(1, 10**13)
    assert by_clients < Fraction(1, 10**9)


def test_equivalence_by_all_samples() -> None:
    """M = n = 2, m = 1: 16 samples; either the two best of four, or the two of one client."""
    p = Fraction(1, 4)
    by_samples = by_clients = Fraction(0)
    for sample in itertools.product((0, 1), repeat=4):
        chance = math.prod(p if point else 1 - p for point in sample)
        by_samples += chance * (sum(sample) <= 2)
        by_clients += chance * (sample[:2] == (0, 0) or sample[2:] == (0, 0))
    assert (by_samples, by_clients) == (Fraction(243, 256), Fraction(207, 256))


@pytest.mark.parametrize(("M", "m"), [(2, 1), (10, 5), (10, 1), (400, 399), (100, 50)])
def test_guessing(M: int, m: int) -> None:
    """Right at x_1 and +1 at x_2 is wrong with mass (1 - omega)/2 at most, whatever is hidden."""
    assert (1 - Fraction(m, M)) / 2 < Fraction(1, 2)


@pytest.mark.parametrize(("M", "m"), [(2, 1), (10, 5), (10, 1), (400, 399), (100, 50)])
def test_equation_3(M: int, m: int) -> None:
    """A learner that is right at x_1, f_1 = +1 there and f_2(x_2) = -1: 0 P(x_2) + 1 P(x_1)."""
    four_epsilon = Fraction(1 - Fraction(m, M)) / 2
    returned, f_1, f_2 = 1, 1, -1
    as_printed = (returned != f_1) * four_epsilon + (returned != f_2) * (1 - four_epsilon)
    assert as_printed == 1 - four_epsilon > four_epsilon


def test_example() -> None:
    """P on [0, 1], Q on [0, 1/2]: t = 1 is 5/8 and 1/4 away from t* = 3/8, 1/2 and 0 from 1/2."""
    alpha = 1 - Fraction(1, 2)
    on_p, on_q = 1 - Fraction(3, 8), (Fraction(1, 2) - Fraction(3, 8)) / Fraction(1, 2)
    assert abs(on_p - on_q) == Fraction(3, 8) > alpha * on_q == Fraction(1, 8)
    on_p, on_q = 1 - Fraction(1, 2), Fraction(0)
    assert abs(on_p - on_q) > on_q


@pytest.mark.parametrize(
    ("m", "delta", "above_A"),
    [
        (100, Fraction(1, 10**6), Fraction(1, 20)),
        (100, Fraction(1, 10**40), Fraction(1, 20)),
        (2000, Fraction(1, 2**1000), Fraction(1, 250)),
    ],
)
def test_lemma_1(m: int, delta: Fraction, above_A: Fraction) -> None:
    """A = log(m + log(1/delta)/m)/m is below a fraction u, and P[max gap > u] above delta.

    A gap of u on one side is left empty by m uniform points with probability (1 - u)^m.
    """
    assert math.log(m + math.log(1 / delta) / m) / m < above_A
    assert 2 * (1 - above_A) ** m - (1 - 2 * above_A) ** m > delta


@pytest.mark.parametrize("m", [100, 10_000, 1_000_000])
def test_lemma_1_with_any_constant(m: int) -> None:
    """No one of m points is in [1/2, 1/2 + u) with probability (1 - u)^m, above delta = e^(-m/2).

    So the quantile is at least u = 1 - e^(-1/2), rounded down here, and A as printed falls.
    """
    u = Fraction(39, 100)
    assert m * math.log1p(-u) > -m / 2
    assert math.log(m + 1 / 2) / m < 4 * m**-0.9


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 10), Fraction(1, 1000)])
def test_lemma_1_on_errors_and_disagreements_with_any_constant(rate: Fraction) -> None:
    """No one of m points is in an interval of mass u with probability (1 - u)^m, above e^(-rate m).

    A threshold at the other end of the interval then differs from the target in error by u, and
    agrees with it on the sample; disagreements of mass u, halved, are u/2, and none is seen.
    """
    u = rate / (1 + rate)
    assert math.log1p(-u) > -rate
    shares = [u / 2 / (math.log(m + rate) / m) for m in (10**5, 10**7, 10**9)]
    assert shares[0] > rate * 10**3
    assert shares[2] > 50 * shares[1] > 2500 * shares[0]


def test_lemma_2() -> None:
    """19/20-quantiles of binomial numbers less their means: 8 of 100, 82 of 10,000, not 8 again."""
    deviations = []
    for n in (100, 10_000):
        count, term, total, enough = 0, 1, 1, 19 * 2**n
        while total * 20 < enough:
            term = term * (n - count) // (count + 1)
            count, total = count + 1, total + term
        deviations.append(count - n // 2)
    assert deviations == [8, 82]


def test_theorem_2_with_ten_server_samples() -> None:
    """Clients say nothing on the middle half: ten points of the server's decide.

    The integral of 2 (1 - e)^10 - (1 - 2e)^10 over e from 0 to 1/4.
    """
    limit = 2 * (1 - Fraction(3, 4) ** 11) / 11 - (1 - Fraction(1, 2) ** 11) / 22
    assert float(limit) == pytest.approx(0.1287, abs=1e-4)


def test_these_are_all_refutations(recorded_verdicts: Baseline) -> None:
    refuted = {
        (theorem, regime)
        for (theorem, _, regime), record in recorded_verdicts.items()
        if theorem.startswith("pac/") and record.outcome == "REFUTED"
    }
    systems = ("half take part", "one takes part", "ten thousand samples")
    every = (*systems, "two clients with one sample", "all but one")
    assert refuted == {
        *(("pac/1-equivalence", name) for name in systems),
        *(("pac/1-sum", name) for name in every),
        *(("pac/1-guessing", name) for name in every),
        ("pac/2", "ten server samples"),
        ("pac/example", "target off the middle"),
        ("pac/example", "target at Q's end"),
        ("pac/lemma-1", "unlikely"),
        ("pac/lemma-1", "most unlikely"),
        ("pac/lemma-1", "exponentially unlikely"),
        ("pac/lemma-1", "delta = exp(-m/2)"),
        *(
            (f"pac/lemma-1-{part}", f"delta = exp(-m/{rate})")
            for part in ("errors", "disagreements")
            for rate in (2, 10, 1000)
        ),
        ("pac/lemma-2", "apart"),
    }
