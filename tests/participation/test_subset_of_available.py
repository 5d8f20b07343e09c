"""What both kinds of subsets take and say; their laws are in the kinds' own tests."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from fltheory.participation import AtMost, WaitingSubset
from fltheory.participation.subsets_of_available import SubsetOfAvailable


@pytest.mark.parametrize("kind", [AtMost, WaitingSubset])
def test_kinds_are_made_and_shown_alike(kind: type[SubsetOfAvailable]) -> None:
    process = kind([0.5, 0.25, 1.0], 2)
    assert repr(process) == f"{kind.__name__}(3 clients, size=2)"
    assert process.n_clients == 3
    assert [field.name for field in fields(process)] == ["availability", "size"]
    other = replace(process, size=1)
    assert type(other) is kind
    assert (other.size, other.availability.tolist()) == (1, [0.5, 0.25, 1.0])


@pytest.mark.parametrize("kind", [AtMost, WaitingSubset])
def test_fields_are_frozen_and_sizes_checked(kind: type[SubsetOfAvailable]) -> None:
    process = kind([0.5, 0.25], 2)
    with pytest.raises(AttributeError):
        process.size = 1
    with pytest.raises(ValueError, match="size must be at most the number of clients, 2, got 3"):
        replace(process, size=3)
