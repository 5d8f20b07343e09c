"""A hundred forged certificates; ``benchmarks/forged_certificates.py`` does many more."""

from __future__ import annotations

from benchmarks.forged_certificates import judged


def test_what_is_forged_is_refused_and_what_is_right_accepted() -> None:
    found = judged(count=120, seed=1)
    assert found[False, True] == 0
    assert found[True, False] == 0
    assert found[True, True] >= 10
    assert found[False, False] >= 60
