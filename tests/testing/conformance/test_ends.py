from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fltheory.testing import check_algorithm, run_of
from fltheory.testing.conformance.laws import ends_of
from fltheory.testing.conformance.specifications import SPECIFICATIONS
from tests.testing.gallery import GALLERY

LAW = "options-at-their-ends"


def _with(name: str, **changed: Any) -> Any:
    """Return the package's algorithm with options of its own making."""

    def run(*given: Any, **named: Any) -> Any:
        for option, change in changed.items():
            if named.get(option) is not None:
                named[option] = change(named[option])
        return run_of(name)(*given, **named)

    return run


def _at_least(least: float) -> Any:
    return lambda values: tuple(np.maximum(values, least).tolist())


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("name", ["fedavg-is", "adafed", "f3ast", "ca-fed"])
def test_a_rare_client_s_availability_is_not_rounded_up(name: str) -> None:
    wrong = _with(name, availability=_at_least(0.2))
    report = check_algorithm(wrong, name, laws=[LAW], raises=False)
    assert [finding.law for finding in report.failures] == [LAW]


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("fedau", {"cutoff": lambda value: max(value, 2)}),
        ("fedprox", {"proximal": lambda value: value or 0.1}),
        ("fedar", {"growth": lambda value: value or 0.05}),
        ("fedar", {"largest": lambda value: min(value, 10.0)}),
        ("f3ast", {"smoothing": lambda value: max(value, 0.01)}),
        ("f3ast", {"size": lambda value: max(value, 2)}),
        ("adafed", {"target_weights": lambda values: (1 / len(values),) * len(values)}),
        ("ca-fed", {"kappa_bar": lambda value: value or 1.0}),
        ("ca-fed", {"loss_smoothing": lambda value: value or 0.2}),
        ("ca-fed", {"threshold": lambda value: min(value, 0.2)}),
        ("ca-fed", {"known_minima": lambda values: (0.0,) * len(values)}),
        ("ca-fed", {"correlation": _at_least(0.0)}),
        ("ca-fed", {"prior": lambda pair: tuple(max(one, 0.5) for one in pair)}),
    ],
)
def test_an_option_with_bounds_of_its_own_is_told(name: str, changed: dict[str, Any]) -> None:
    report = check_algorithm(_with(name, **changed), name, laws=[LAW], raises=False)
    assert [finding.law for finding in report.failures] == [LAW]


@pytest.mark.parametrize("seeds", [1, pytest.param(3, marks=pytest.mark.soundness)])
@pytest.mark.parametrize("name", ["fedau", "f3ast", "ca-fed"])
def test_the_package_s_own_pass_with_many_seeds(name: str, seeds: int) -> None:
    for seed in range(seeds):
        assert check_algorithm(run_of(name), name, seed=seed, laws=[LAW]).conforms


@pytest.mark.parametrize("seed", [15, 18])
def test_rounding_decides_no_tie(seed: int) -> None:
    """Without threshold and bias, a client at its minimum changes epsilon by exactly nothing."""
    check_algorithm(GALLERY["ca-fed"].run, "ca-fed", seed=seed, laws=[LAW])


def test_ends_are_within_what_an_algorithm_takes() -> None:
    for name, one in SPECIFICATIONS.items():
        for options in ends_of(one.options, 3):
            assert one.checked(options), name


def test_an_option_that_is_fixed_stays() -> None:
    seen = set()

    def run(*given: Any, **named: Any) -> Any:
        seen.add(named["cutoff"])
        return run_of("fedar")(*given, **named)

    check_algorithm(run, "fedar", cutoff=3, laws=[LAW])
    assert seen == {3}
