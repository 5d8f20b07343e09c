"""Advice beside what the digits show under the log."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from fltheory.advice import Advice, advise
from fltheory.advice.on_digits import to_compare, train_on_digits
from fltheory.logs import AvailabilityLog


def advice_on(chances: list[float]) -> Advice:
    # In 40 rounds a client of 5% comes twice: too rarely for what remembers clients.
    there = np.random.default_rng(0).random((100, len(chances))) < chances
    return advise(AvailabilityLog.from_masks(there))


@pytest.fixture(scope="module")
def of_three() -> Advice:
    return advice_on([0.9, 0.5, 0.2])


@pytest.fixture(scope="module")
def with_one_never_there() -> Advice:
    return advice_on([0.9] * 6 + [0.05] * 3 + [0.0])


def test_the_two_best_and_fedavg_are_compared(of_three: Advice) -> None:
    compared = to_compare(of_three)
    assert len(set(compared)) == 3
    assert compared[-1].name == "fedavg"
    assert {of_three.best, of_three.fallback} <= set(compared)


def test_with_clients_never_there_nobody_divides_by_availability(
    with_one_never_there: Advice,
) -> None:
    compared = to_compare(with_one_never_there)
    assert {one.name for one in compared} <= {
        "fedavg",
        "fedau",
        "fedar",
        "mifa",
        "fedvarp",
        "scaffold",
    }


def test_digits_lose_what_rare_clients_have(with_one_never_there: Advice) -> None:
    pytest.importorskip("torch")
    found = with_one_never_there
    trained = train_on_digits(found)
    assert [one.advice for one in trained] == list(to_compare(found))
    for one in trained:
        assert one.accuracy.shape == (3,)
        # A class of ten is the absent client's alone.
        assert one.lost.min() > 5
    assert trained[-1].lost.mean() > trained[0].lost.mean()


def test_more_clients_than_images_are_refused(of_three: Advice) -> None:
    found = replace(of_three, population=copy(of_three.population))
    log = AvailabilityLog.from_masks(np.ones((2, 701)))
    object.__setattr__(found.population, "log", log)
    with pytest.raises(ValueError, match="at most 700 clients"):
        train_on_digits(found)
