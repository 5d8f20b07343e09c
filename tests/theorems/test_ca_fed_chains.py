"""What CA-Fed says of chains, against matrices written out in fractions and by LAPACK."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from fltheory import theorems
from fltheory.verify import Outcome, check

PI, NU = (Fraction(9, 10), Fraction(7, 10), Fraction(1, 2), Fraction(3, 10)), Fraction(9, 10)


def _client(pi: Fraction) -> np.ndarray:
    """Return P_k of an on-off chain with the eigenvalues 1 and 9/10, in fractions."""
    law = np.array([[pi, 1 - pi]] * 2)
    return law + NU * (np.array([[Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]]) - law)


def test_the_product_chain_forgets_as_slowly_as_its_slowest_client() -> None:
    whole = reduce(np.kron, [_client(pi) for pi in PI])
    moduli = np.sort(np.abs(np.linalg.eigvals(whole.astype(float))))
    assert moduli[-2] == pytest.approx(float(NU), rel=1e-9)
    claim = theorems.get("ca-fed/product-chain")
    verdict = check(claim, claim.regimes["nu = 0.9"].setting)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.truth == 1


def test_the_largest_distance_from_the_law_in_fractions() -> None:
    """[P^t]_ij - pi_j over (19/20)^t is largest at t = 0 here, and its bound has all states."""
    whole = reduce(np.kron, [_client(pi) for pi in PI])
    law = reduce(np.kron, [np.array([pi, 1 - pi]) for pi in PI])
    power, most = np.array(np.eye(16, dtype=int), dtype=object) * Fraction(1), Fraction(0)
    rate = (1 + NU) / 2
    for t in range(6):
        most = max(most, np.abs(power - law).max() / rate**t)
        power = power @ whole
    claim = theorems.get("ca-fed/mixing")
    verdict = check(claim, claim.regimes["nu = 0.9"].setting)
    assert verdict.truth == pytest.approx(float(most), rel=1e-12)
    any_factor = check(theorems.get("ca-fed/mixing", "any C_P"), claim.regimes["nu = 0.9"].setting)
    assert any_factor.bound == pytest.approx(float(sum(max(pi, 1 - pi) for pi in PI)))
    assert verdict.bound > np.sqrt(15) * 16
