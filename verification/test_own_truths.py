"""SA-FL's refutations from typed numbers alone: nothing of the package is imported.

The witnesses are those of docs/findings.md. Clients of one kind share a quadratic, so that two
moments of the model, from round to round, are all there is to know.
"""

from __future__ import annotations

import math


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
            assert eta_s >= math.log(r) / r / 10  # steps of at least that order
            shares.append(second / (math.log(r) / r))
    assert second > 0.9 * added / (1 - kept)
    assert shares[1] > 7 * shares[0]
    assert shares[2] > 7 * shares[1]
