"""Quantities that are not what constants are: told before a verdict, a search or a certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fltheory import theorems
from fltheory.claims.along_run import Theorem
from fltheory.grammar.symbols import symbol
from fltheory.verify import certificate, check_regimes, falsify
from fltheory.verify.certificates.certificate import read_certificate, write_certificate
from tests.worst_case.audits.own_theorem import MINE, PARTS

SIGMA, D_0 = PARTS["sigma"], PARTS["D_0"]
FALSE = replace(MINE, bound=MINE.bound / 100)


def constants_apart(setting: Any) -> Any:
    """Constants that are a function of their own, which its symbols may contradict."""
    return MINE.constants(setting)


OTHER = symbol("sigma", SIGMA.meaning, number="sigma_G/2", nonnegative=True)
SLIP = replace(FALSE, constants=constants_apart, read_as={SIGMA: OTHER})
TOLD = r"quantities of my/1 must be what its constants are, got sigma = sigma_G/2, which is .* and"


@pytest.mark.parametrize(
    "asked",
    [
        lambda slip: check_regimes([slip]),
        lambda slip: check_regimes([slip], processes=2),
        lambda slip: falsify(slip, 10),
        lambda slip: certificate(slip, slip.family.setting()),
    ],
)
def test_a_slip_is_told_before_any_work(asked: Callable[[Theorem], Any]) -> None:
    with pytest.raises(ValueError, match=TOLD):
        asked(SLIP)


@pytest.mark.usefixtures("own_theorems_forgotten")
def test_a_certificate_of_another_bound_is_refused(tmp_path) -> None:
    path = tmp_path / "found.json"
    assert FALSE.family is not None
    write_certificate(path, certificate(FALSE, FALSE.family.setting()))
    theorems.load([FALSE])
    assert read_certificate(path).truth > read_certificate(path).bound
    theorems.load([SLIP])
    with pytest.raises(ValueError, match=TOLD):
        read_certificate(path)


@pytest.mark.parametrize("value", ["3", None, [1.0], 1j])
def test_a_constant_that_is_no_number_is_named_with_its_regime_and_file(value: Any) -> None:
    def constants(setting):
        return {**MINE.constants(setting), D_0: value}

    wrong = replace(MINE, constants=constants)
    with pytest.raises(
        ValueError, match="constants of 'my/1' must be real numbers, got D_0 = "
    ) as e:
        check_regimes([wrong])
    assert f"{value!r} in the regime 'usual' ({__file__}, line " in str(e.value)


def test_registered_statements_speak_of_one_thing() -> None:
    """Quantities that nothing reads in a test would be free to be wrong."""
    for statement in theorems.registered("sa-fl/5", "scaffold/convex", "fedau/3"):
        statement.check_quantities()


def test_statements_of_a_generator_are_looked_at_twice() -> None:
    """Once for what they say of their constants, and once to be checked."""
    with pytest.raises(ValueError, match=TOLD):
        check_regimes(one for one in (SLIP,))  # type: ignore[arg-type]
