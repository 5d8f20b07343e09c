"""Cells over all regimes: order, shared settings, shares of the error probability."""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from fltheory import theorems
from fltheory.evidence import enclosed_check, truths
from fltheory.verify import check_regimes
from fltheory.verify.runs import shared_settings_together
from tests.fewer_regimes import with_regimes


def pairs(*identifiers: str) -> list:
    statements = [s for s in theorems.registered() if s.id in identifiers]
    return [(s, name) for s in statements for name in s.regimes]


def test_readings_of_one_setting_follow_each_other() -> None:
    ordered = shared_settings_together(pairs("sa-fl/4", "sa-fl-submission/4", "sa-fl/5"))
    settings = [id(statement.regimes[name]) for statement, name in ordered]
    changes = sum(a != b for a, b in itertools.pairwise(settings))
    assert changes + 1 == len(set(settings))
    assert sorted(settings) == sorted(
        id(s.regimes[n]) for s, n in pairs("sa-fl/4", "sa-fl-submission/4", "sa-fl/5")
    )


def test_cells_come_in_the_order_of_the_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    short = [
        (s, {name: s.regimes[name] for name in ("i.i.d.", "q = 0")})
        for s in theorems.registered()
        if s.id == "sa-fl/5"
    ]
    statements = [with_regimes(s, regimes) for s, regimes in short]
    seen: list[tuple[int, int, str]] = []
    runs: list[int] = []
    honest = enclosed_check.enclosed_trajectory
    monkeypatch.setattr(
        enclosed_check, "enclosed_trajectory", lambda *of: runs.append(1) or honest(*of)
    )
    monkeypatch.setattr(truths, "_computed", lambda *of: runs.extend([1, 1, 1]))
    cells = check_regimes(statements, progress=lambda *step: seen.append(step), curves=True)
    assert all(cell.curve is not None for cell in cells)
    assert [cell.key for cell in cells] == [
        ("sa-fl/5", reading, name)
        for reading in ("printed", "derived", "repaired")
        for name in ("i.i.d.", "q = 0")
    ]
    assert [step[0] for step in seen] == [0, 1, 2, 3, 4, 5, 6]
    assert {step[1] for step in seen} == {6}
    # Six verdicts and six curves ask for two truths, which other tests may have asked for.
    assert len(runs) <= 2


def test_a_regime_may_ask_for_more_replicas() -> None:
    statement = theorems.get("sa-fl/4", "derived")
    of_one = replace(statement, regimes={"one": replace(statement.regimes["nonconvex"], effort=1)})
    of_two = replace(statement, regimes={"two": replace(of_one.regimes["one"], effort=2)})
    once, twice = (check_regimes([s], replicas=60)[0].verdict for s in (of_one, of_two))
    again = check_regimes([of_one], replicas=120)[0].verdict
    assert twice.evidence.error < once.evidence.error
    assert twice.evidence.error == again.evidence.error


def test_any_executor_gives_the_same_cells() -> None:
    statements = [theorems.get("ca-fed/appendix-e"), theorems.get("fedau/1", "derived")]
    with ThreadPoolExecutor(1) as executor:
        assert check_regimes(statements, executor=executor) == check_regimes(statements)


@pytest.mark.parametrize("make", [list, tuple, iter])
def test_names_are_no_statements(make: Callable[[Sequence[str]], Any]) -> None:
    with pytest.raises(ValueError, match=r"^statements must be a .*Statement.*, got "):
        check_regimes(make(["pac/1"]))
