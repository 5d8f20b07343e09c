"""Repairs in general: all mends, all but one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fltheory import theorems
from fltheory.grammar.refutation import Mend, Repair

PRINTED = theorems.get("sa-fl/5")
TITLE = Mend("a better title", "(1)", {"title": "better"})
SOURCE = Mend("a better source", "(2)", {"source": "elsewhere"})
REPAIR = Repair((TITLE, SOURCE), lambda **changes: replace(PRINTED, **changes))


def test_all_mends_together() -> None:
    repaired = REPAIR.theorem()
    assert (repaired.title, repaired.source) == ("better", "elsewhere")
    assert repaired.reading == "repaired"
    assert repaired.repair is REPAIR
    assert "a better title [(1)]; a better source [(2)]" in repaired.note


def test_all_but_one() -> None:
    partly = REPAIR.without(TITLE)
    assert (partly.title, partly.source) == (PRINTED.title, "elsewhere")
    assert partly.reading == "repaired, but not: a better title"
    assert partly.repair is None


def test_a_mend_of_another_repair_is_refused() -> None:
    with pytest.raises(ValueError, match="mend must be a change of this repair, got 'other'"):
        REPAIR.without(Mend("other", "(3)", {}))
