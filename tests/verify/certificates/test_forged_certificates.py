"""A hundred forged certificates; ``benchmarks/forged_certificates.py`` does many more."""

from __future__ import annotations

from benchmarks.forged_certificates import is_judged_soon, judged
from tests.verify.certificate_cases import setting


def test_what_is_forged_is_refused_and_what_is_right_accepted() -> None:
    found = judged(count=120, seed=1)
    assert found[False, True] == 0
    assert found[True, False] == 0
    assert found[True, True] >= 10
    assert found[False, False] >= 60


def test_what_has_too_many_branches_is_drawn_again_unless_it_is_illegal() -> None:
    """A spoilt certificate of 99 rounds would keep the second computation busy for ever."""
    long = setting("Safari", rounds=99)
    assert is_judged_soon({"setting": setting("Safari")})
    assert not is_judged_soon({"setting": long})
    assert is_judged_soon({"setting": {**long, "x0": []}})
    assert is_judged_soon({"setting": None})
    assert is_judged_soon({})
