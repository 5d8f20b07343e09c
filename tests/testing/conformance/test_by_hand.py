from __future__ import annotations

import pytest

from fltheory.testing import run_of
from fltheory.testing.conformance.laws import Worked, worked
from fltheory.testing.conformance.specifications import SPECIFICATIONS


@pytest.mark.parametrize(
    ("name", "example"),
    [(name, example) for name, one in SPECIFICATIONS.items() for example in worked(one)],
)
def test_the_package_computes_what_was_worked_out_by_hand(name: str, example: Worked) -> None:
    case = example.case
    models = run_of(name)(case.x0, case.clients, case.trace, **case.keywords)
    assert models[:, 0] == pytest.approx(example.expected[:, 0], rel=1e-14)
    assert len(example.words) == case.rounds


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_every_algorithm_has_an_example(name: str) -> None:
    assert list(worked(SPECIFICATIONS[name]))
