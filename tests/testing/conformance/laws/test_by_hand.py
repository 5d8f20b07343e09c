from __future__ import annotations

import pytest

from fltheory.testing import run_of
from fltheory.testing.conformance.laws.by_hand import WORKED, Worked
from fltheory.testing.conformance.specifications import SPECIFICATIONS


@pytest.mark.parametrize(
    ("name", "worked"), [(name, one) for name in SPECIFICATIONS for one in WORKED[name]]
)
def test_the_package_computes_what_was_worked_out_by_hand(name: str, worked: Worked) -> None:
    case = worked.case
    models = run_of(name)(case.x0, case.clients, case.trace, **case.keywords)
    assert models[:, 0] == pytest.approx(worked.models, rel=1e-14)


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_every_algorithm_has_an_example_with_words_for_each_round(name: str) -> None:
    assert WORKED[name]
    for worked in WORKED[name]:
        assert len(worked.words) == len(worked.present) == len(worked.models) - 1
