"""SA-FL's and CA-Fed's refutations from typed numbers alone, without importing the package.

The witnesses are those of docs/findings.md. Clients of one kind share a quadratic, so that two
moments of the model, followed from round to round, suffice.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise


def test_theorem_4_with_maxima_in_its_condition() -> None:
    """Curvature 1, optima 1/2 twice and -1/2 twice, the last two never there; K = 1, m = 2."""
    q, eta_c, eta_s, noise, R, apart = 1 / 2, 1 / 25, 1 / 50, 1 / 100, 1000, 1 / 2
    first, second = 5 / 4, (5 / 4) ** 2
    gradients, sums = [second], []
    for _ in range(R):
        sums.append(second - 2 * apart * first + apart**2)
        by_clients = (1 - eta_c) ** 2 * second + 2 * (1 - eta_c) * eta_c * apart * first
        by_clients += eta_c**2 * (apart**2 + noise / 2)
        by_server = (1 - eta_s) ** 2 * second + eta_s**2 * noise
        second = q * by_clients + (1 - q) * by_server
        first = q * ((1 - eta_c) * first + eta_c * apart) + (1 - q) * (1 - eta_s) * first
        gradients.append(second)
    G_1, G_2 = max(gradients[:-1]), max(sums)
    limit = 1 / ((4 * apart**2 - 4 * G_2 * (1 / 2 - 2 * eta_s**2)) / ((1 - eta_s) * G_1) + 1)
    assert 0 < q <= limit
    assert eta_c <= 1 / (4 * math.sqrt(30))
    assert eta_c == 2 * eta_s
    bound = 2 * (25 / 32) / (R * eta_s) + eta_s * (1 - q) * noise
    bound += 80 * q * eta_s**2 * (noise + 6 * apart**2) + 8 * q * eta_s / 2 * noise
    truth = sum(gradients[1:]) / R
    assert truth >= 13 / 100 > 3 / 25 >= bound


def test_theorem_5_with_another_unit_in_its_condition() -> None:
    """Curvature 50, optima (2, 0) and (-2, 0) twice each, the latter never there; K = 50, m = 2."""
    h, q, eta_c, eta_s, K, R, away = 50.0, 1 / 2, 1 / 625000, 1 / 25000, 50, 1000, 2.0
    noise, sigma_G = 1 / 100, h * away
    step = 1 - eta_c * h
    decay, local = step**K, eta_c**2 * noise / 2 * sum(step ** (2 * k) for k in range(K))
    bar = eta_c * K * h / 2
    first, second = 3.0, 9.0
    server = 1 - eta_s * h
    for _ in range(R):
        G_3, G_4 = h**2 * second, h / 2 * (second - 2 * away * first)
        drift = 1 + 30 * bar * (1 + 2 * bar)
        above = 4 * bar * drift / h**2 * G_3 - 4 / h * G_4
        below = (1 / (2 * h) - (2 * h) ** 2 * bar / (4 * h**4)) * G_3
        assert below > 0
        assert 0 < q <= 1 / (1 + above / below)
        by_clients = decay**2 * second + 2 * decay * (1 - decay) * away * first
        by_clients += (1 - decay) ** 2 * away**2 + local
        second = q * by_clients + (1 - q) * (server**2 * second + eta_s**2 * noise)
        first = q * (decay * first + (1 - decay) * away) + (1 - q) * server * first
    assert eta_s <= 2 / (2 * h)
    assert math.isclose(bar, 2 * eta_s * h**2 / (2 * h), rel_tol=1e-14)
    bound = (
        (1 - bar) ** R * 9 + 8 * q * eta_c * K / h * sigma_G**2 + 2 * q * eta_c / (h * 2) * noise
    )
    bound += 4 * q * (1 + K * eta_c * h) * 5 * K * eta_c**2 * (noise + 6 * K * sigma_G**2)
    bound += (1 - q) / h * eta_s * noise
    assert second >= 9 / 5 > 3 / 2 >= bound


def test_corollary_2_with_constant_steps() -> None:
    """One client, h = 20, K = 1, eta_s = 1/1280: all is met at every R, and an error stays.

    G_3 = 400 E x^2 and G_4 = 10 E x^2, so that the condition on q is the same in every round.
    """
    h, q, eta_s = 20.0, 1 / 2, 1 / 1280
    eta_c, bar = 2 * eta_s, 20 * eta_s
    above = 4 * bar * (1 + 30 * bar * (1 + 2 * bar)) / h**2 - 4 / h * 10 / 400
    below = 1 / (2 * h) - (2 * h) ** 2 * bar / (4 * h**4)
    assert below > 0
    assert 0 < q <= 1 / (1 + above / below)
    assert math.isclose(eta_c * h / 2, 2 * eta_s * h**2 / (2 * h))
    assert eta_c <= 1 / (8 * h)
    kept = q * (1 - eta_c * h) ** 2 + (1 - q) * (1 - eta_s * h) ** 2
    added = q * eta_c**2 + (1 - q) * eta_s**2
    second, shares = 1.0, []
    for r in range(1, 10**5 + 1):
        second = kept * second + added
        if r in (10**3, 10**4, 10**5):
            assert eta_s >= math.log(r) / r / 10  # steps of at least that order of magnitude
            shares.append(second / (math.log(r) / r))
    assert second > 0.9 * added / (1 - kept)
    assert shares[1] > 7 * shares[0]
    assert shares[2] > 7 * shares[1]


def _safari(
    R: int, eta_c: float, eta_s: float, q: float, first: float, second: float, **of: float
) -> tuple[list[float], list[float], float]:
    """Return E x^2 and E (x - away)^2 of rounds 0 .. R, and E x at the end, for F = h/2 x^2.

    The participants' optimum is ``away`` from that of all; noise is E noise^2.
    """
    h, away, K, m = of["h"], of["away"], int(of["K"]), of["m"]
    step = 1 - eta_c * h
    decay = step**K
    local = eta_c**2 * of["noise"] / m * sum(step ** (2 * k) for k in range(K))
    server = 1 - eta_s * h
    squares, apart = [second], [second - 2 * away * first + away**2]
    for _ in range(R):
        by_clients = decay**2 * second + 2 * decay * (1 - decay) * away * first
        by_clients += (1 - decay) ** 2 * away**2 + local
        by_server = server**2 * second + eta_s**2 * of["server_noise"]
        second = q * by_clients + (1 - q) * by_server
        first = q * (decay * first + (1 - decay) * away) + (1 - q) * server * first
        squares.append(second)
        apart.append(second - 2 * away * first + away**2)
    return squares, apart, first


def _limit_of_theorem_4(
    G_1: float, G_2: float, sigma_G: float, eta_s: float, h: float, *, power: int = 2
) -> tuple[float, float]:
    """Return N and D of the condition on q at K = 1; eta_s is not squared in Appendix A.1."""
    return 4 * sigma_G**2 - 4 * G_2 * (1 / 2 - 2 * h * eta_s**power), (1 - h * eta_s) * G_1


def test_corollary_1_with_maxima_in_its_condition() -> None:
    """Of h = 1/10, K = 1; one of four clients at -15 never there, three at 5, started at -18."""
    h, q, x_0, shares = 1 / 10, 1 / 2, -18.0, []
    for R in (10**3, 10**4, 10**5):
        eta_s = 1 / math.sqrt(R)
        squares, apart, _ = _safari(
            R,
            2 * eta_s,
            eta_s,
            q,
            x_0,
            x_0**2,
            h=h,
            away=5,
            K=1,
            m=3,
            noise=0.01,
            server_noise=0.01,
        )
        above, below = _limit_of_theorem_4(
            h**2 * max(squares[:-1]), h**2 * max(apart[:-1]), 15 * h, eta_s, h
        )
        assert 0 < q <= 1 / (above / below + 1)
        assert 2 * eta_s <= 1 / (4 * math.sqrt(30 * h))
        truth = h**2 * sum(squares[1:]) / R
        shares.append(truth * math.sqrt(R))
    bound = 2 * (h / 2 * x_0**2) / math.sqrt(R) + h * eta_s * (1 - q) * 0.01
    bound += 80 * q * h**2 * eta_s**2 * (0.01 + 6 * (15 * h) ** 2) + 8 * h * q * eta_s / 3 * 0.01
    assert truth > 0.11 > bound
    assert shares[2] > 2 * shares[1] > 2 * shares[0]


def test_corollary_2_with_another_unit_in_its_condition() -> None:
    """Of h = 20, K = 1, q = 1/2; one of four clients at -3 never there, three at 1, start at 2."""
    h, q, shares = 20.0, 1 / 2, []
    for R in (10**3, 10**4, 10**5):
        bar = 1.05 * math.log(R) / R
        eta_c, eta_s = 2 * bar / h, bar / h
        squares, apart, first = _safari(
            R, eta_c, eta_s, q, 2.0, 4.0, h=h, away=1, K=1, m=2, noise=1.0, server_noise=1.0
        )
        for square, other in zip(squares[:-1], apart[:-1], strict=True):
            G_3, G_4 = h**2 * square, h / 2 * (other - 1)
            above = 4 * bar * (1 + 30 * bar * (1 + 2 * bar)) / h**2 * G_3 - 4 / h * G_4
            below = (1 / (2 * h) - bar / h**2) * G_3
            assert below > 0
            assert 0 < q <= 1 / (1 + above / below)
        shares.append(squares[-1] / (math.log(R) / R))
    assert eta_s <= 2 / (2 * h)
    assert first > 0.6
    assert squares[-1] > 0.4
    assert shares[2] > 7 * shares[1] > 49 * shares[0]


def _at_the_level_of_the_noise(R: int, eta_s: float, q: float, h: float, m: int) -> list[float]:
    """Return E x^2 of every round for m clients of curvature h, starting near its limit."""
    squares, _, _ = _safari(
        R,
        2 * eta_s,
        eta_s,
        q,
        1.825,
        1.825**2,
        h=h,
        away=0,
        K=1,
        m=m,
        noise=0.01,
        server_noise=1,
    )
    return squares


def test_corollary_1_of_the_earlier_version_at_half_of_the_rounds() -> None:
    """Of h = 1/100, K = 1, all of m clients there, at 1.15 and -1.15; eta_s = 1/5, R = 25 m.

    All are equal on average: the start is where E x^2 stays, so that the condition on q is the same
    in all rounds, with minima as with maxima.
    """
    h, q, eta_s, shares = 1 / 100, 1 / 2, 1 / 5, []
    for m in (2, 20, 200, 2000):
        R = 25 * m
        squares = _at_the_level_of_the_noise(R, eta_s, q, h, m)
        assert math.isclose(eta_s, math.sqrt(m / R))
        for reduced in (min, max):
            G = h**2 * reduced(squares[:-1])
            above, below = _limit_of_theorem_4(G, G, 1.15 * h, eta_s, h)
            assert 0 < q <= 1 / (above / below + 1)
        assert 2 * eta_s <= 1 / (4 * math.sqrt(30 * h))
        shares.append(h**2 * sum(squares[1:]) / R * math.sqrt(m * R))
    assert all(9 * low < high for low, high in pairwise(shares))


def test_that_speed_up_fails_where_rounds_are_many_as_well() -> None:
    """R = m^3, q = 1/2: shares grow; they tend to h (x_0^2 + 4 q s^2 + (1-q) m s_s^2)/(2 (1+q))."""
    h, q, shares = 1 / 10, 1 / 2, []
    for m in (10, 30, 60):
        R = m**3
        eta_s = math.sqrt(m / R)
        squares, _, _ = _safari(
            R, 2 * eta_s, eta_s, q, 3.0, 9.0, h=h, away=0, K=1, m=m, noise=0.25, server_noise=1
        )
        shares.append(h**2 * sum(squares[1:]) / R * math.sqrt(m * R))
    assert shares[2] > 1.5 * shares[1] > 2 * shares[0]
    limit = h * (9 + 4 * q * 0.25 + (1 - q) * 60) / (2 * (1 + q))
    assert math.isclose(shares[2], limit, rel_tol=0.02)


def test_corollary_1_of_icml_without_mK_in_its_step() -> None:
    """The same clients, eta_s = 1/sqrt(R), R = 10^4, q = 1 - 1/(2m): m changes hardly anything."""
    h, R, truths = 1 / 100, 10**4, []
    for m in (2, 20, 200, 2000):
        q, eta_s = 1 - 1 / (2 * m), 1 / 100
        squares = _at_the_level_of_the_noise(R, eta_s, q, h, m)
        G = h**2 * max(squares[:-1])
        above, below = _limit_of_theorem_4(G, G, 1.15 * h, eta_s, h)
        assert 0 < q <= 1 / (above / below + 1)
        truths.append(h**2 * sum(squares[1:]) / R)
    assert truths[3] > 0.98 * truths[2] > 0.98 * 0.85 * truths[1]


def test_appendix_a1_with_maxima_in_its_ratio() -> None:
    """Of h = 1/10, K = 1, m = 3; one of four clients at -15 never there, three at 5; x_0 = -20."""
    h, m, x_0, shares = 1 / 10, 3, -20.0, []
    q = 1 - 1 / (2 * m)
    for R in (10**3, 10**4, 10**5):
        eta_s = math.sqrt(m / R)
        squares, apart, _ = _safari(
            R, 2 * eta_s, eta_s, q, x_0, x_0**2, h=h, away=5, K=1, m=m, noise=1.0, server_noise=1.0
        )
        above, below = _limit_of_theorem_4(
            h**2 * max(squares[:-1]), h**2 * max(apart[:-1]), 15 * h, eta_s, h, power=1
        )
        assert above / below <= (1 - q) / q <= 1 / (m * (1 - 1 / m))
        assert 2 * eta_s <= 1 / (4 * math.sqrt(30 * h))
        shares.append(h**2 * sum(squares[1:]) / R * math.sqrt(m * R))
    assert squares[-1] * h**2 > 0.2
    assert shares[2] > 2.5 * shares[1] > 2.5 * shares[0]


def test_lemma_2_of_ca_fed_with_a_rare_client_first() -> None:
    """Two clients at 10 and -10, q = 1/2 each, there once in 500 rounds; the first alone at first.

    w* = w_B* = 0, and later rounds add ``pi/2 E x^2``, which is never negative: more of them do not
    mend it.
    """
    pi, q, far, rounds, start = 1 / 500, 1 / 2, 10.0, 300, -0.3125
    first, second, lost = start, start**2, 0.0
    for t in range(1, rounds + 1):
        eta = 0.5 / (t + 1)
        outcomes = [(1.0, (far,))]
        if t > 1:
            one = pi * (1 - pi)
            outcomes = [((1 - pi) ** 2, ()), (one, (far,)), (one, (-far,)), (pi**2, (far, -far))]
        new_first = new_second = 0.0
        for chance, there in outcomes:
            slope, push = 1 - eta * q * len(there), eta * q * sum(there)
            lost += chance * eta * sum(q * (second / 2 - c * first) for c in there)
            new_first += chance * (slope * first + push)
            new_second += chance * (slope**2 * second + 2 * slope * push * first + push**2)
        first, second = new_first, new_second
    assert 0.5 / 2 <= 1 / (2 * (1 + 1))
    squares = (math.pi**2 / 6 - 1) / 4
    gamma, mean_weight = far**2 / 2, 2 * pi * q
    assert lost > 1.36 * (2 * start**2 + 2 * (1 + 2) * mean_weight * gamma * squares)


def test_lemma_3_of_ca_fed_with_a_rare_client_that_stays() -> None:
    """One client, x^2/2 on [-1, 1], from 1: D = G = 1, H = 1/2. Refuted with all t on the right.

    There in the first round, with eigenvalue 0.9 and pi = 1/1000. Its loss never grows, so that
    later rounds only add to the left side. A C_P of 5 delays for longer, and changes nothing.
    """
    pi, nu, rate, rounds = 1 / 1000, 0.9, 0.95, 100

    def delay(t: int, factor: float) -> int:
        return min(t - 1, max(0, math.ceil(math.log(factor * t) / math.log(1 / rate))))

    def eta(t: int) -> float:
        return 0.9 / (t + 9)

    away, there, moments, lost = 0.0, 1.0, [], 0.0
    for t in range(1, rounds + 1):
        moments.append((away, there))
        back = delay(t, 2 * (1 - pi) * 0.5)
        before_away, before_there = moments[t - 1 - back]
        comes = pi - nu**back * pi
        stays = pi + nu**back * (1 - pi)
        lost += eta(t) * (before_away * comes + before_there * stays - there) / 2
        moved = there * (1 - eta(t)) ** 2
        away, there = (
            away * (1 - pi + nu * pi) + moved * (1 - nu) * (1 - pi),
            away * (1 - nu) * pi + moved * (pi + nu * (1 - pi)),
        )
    for factor in (2 * (1 - pi) * 0.5, 2 * 5 * 0.5):
        last = 10**5
        every = sum(delay(t, factor) * eta(t - delay(t, factor)) ** 2 for t in range(1, last))
        # Beyond, t - J_t > t/2 and J_t < 40 ln t, whose sum over t^-2 is at most 40 (1 + ln)/last.
        every += 4 * 0.9**2 * 40 * (1 + math.log(last)) / last
        assert lost > 1.5 * pi * every
    within = sum(delay(t, 1 - pi) * eta(t - delay(t, 1 - pi)) ** 2 for t in range(1, rounds + 1))
    assert math.isclose(lost / (pi * within), 3.51272453, rel_tol=1e-8)


def test_steps_of_ca_fed_that_rise_at_first() -> None:
    """eta_t = t/1000 for 100 rounds; a chain of eigenvalue 0.9, for which J_t is t - 1 throughout.

    H is at least 400, C_P at least 1/2: ``ln(400 t)/ln(20/19) > t``. Integers in thousandths.
    """
    assert all(math.log(400 * t) / math.log(20 / 19) > t for t in range(1, 101))
    squares = [t**2 for t in range(101)]
    early = sum(t - 1 for t in range(1, 101))
    late = sum(squares[t] + squares[d] for t in range(1, 101) for d in range(1, t)) / 2
    assert late / early == 3383.5


def test_a_gradient_of_ca_fed_after_a_noisy_local_step() -> None:
    """H = diag(1, 1/2), optima a tenth from 0, W of radius 1/5: D = 3/10; noise 10, eta = 2/25."""
    eta, noise, D = 2 / 25, 10.0, 3 / 10
    after = (D * (1 - eta)) ** 2 + (eta * noise) ** 2 / 2 * (1 + 1 / 4) + noise**2
    assert after > D**2 + noise**2 + 0.38


def test_weights_of_ca_fed_with_unequal_noise() -> None:
    """(12) over q_1 + q_2 = 1, pi = (0.9, 0.3), sigma = (10, 1/2), from w*: by golden section."""
    squares = sum(4 / (t + 24) ** 2 for t in range(1, 10**5)) + 4 / (10**5 + 24)
    upsilon = squares + math.pi**2 / 6

    def speed(rare: float) -> float:
        often = 1 - rare
        noise = (100 * 0.9 * often**2 + 0.25 * 0.3 * rare**2) * squares
        return (noise / 2 + upsilon) / (0.9 * often + 0.3 * rare)

    low, high = 0.0, 1.0
    share = (math.sqrt(5) - 1) / 2
    for _ in range(80):
        one, other = high - share * (high - low), low + share * (high - low)
        if speed(one) < speed(other):
            high = other
        else:
            low = one
    assert math.isclose(low / (1 - low), 3.86824237, rel_tol=1e-4)


def test_a_larger_weight_of_the_bias_may_exclude_one_more() -> None:
    """CA-Fed's greedy choice of five clients: by eigenvalue, and then by availability."""
    alpha = [Fraction(part, 24) for part in (1, 7, 1, 6, 9)]
    gaps, tried = (15, 9, 15, 17, 1), (3, 4, 0, 1, 2, 1, 4, 0, 2, 3)

    def kept(squared_kappa: int) -> set[int]:
        def cost(those: set[int]) -> Fraction:
            share = sum(alpha[k] for k in those)
            loss = sum(alpha[k] * gaps[k] for k in those) / share
            return loss + squared_kappa * (1 - share) ** 2 * max(gaps)

        those = {0, 1, 2, 3, 4}
        for k in tried:
            if k in those and len(those) > 1 and cost(those) >= cost(those - {k}):
                those = those - {k}
        return those

    assert kept(2) == {0, 1, 2, 4}
    assert kept(3) == {1, 3, 4}
