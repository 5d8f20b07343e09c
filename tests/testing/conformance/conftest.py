"""What makes the suite quick where only which laws fail is asked for."""

from __future__ import annotations

import pytest

from fltheory.testing.conformance import laws as table
from fltheory.testing.conformance import suite


@pytest.fixture
def undiagnosed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for no smaller case that fails, nor for causes or hints: a finding alone is asked."""
    monkeypatch.setattr(suite, "smallest", lambda bench, failure, **_: failure)
    monkeypatch.setattr(suite, "causes_of", lambda *_: ())
    monkeypatch.setattr(suite, "hints_of", lambda *_: ())


@pytest.fixture
def few_telling_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw ten cases for the usual slips: what is fixed hides some in all of 160."""
    monkeypatch.setattr(table, "_MOST_TELLING", 10)
