"""The how-to page shows what the advice for its made log is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks.advice_page import PAGE, made_advice, parts_in, parts_of, with_parts
from fltheory.advice import advice

NUMBER = re.compile(r"(?<![\w-])\d+(?:\.\d+)?(?:e-\d+)?")
QUICK = ("fedavg", "f3ast", "safari")


def check(shown: str, made: str) -> None:
    assert NUMBER.sub("#", shown) == NUMBER.sub("#", made)
    # Other processors round otherwise, which a drawn round may turn into another.
    numbers = [[float(text) for text in NUMBER.findall(text)] for text in (shown, made)]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.03, abs=1e-4)
    assert len(numbers[0]) > 10


def test_the_table_is_what_the_command_gives_on_algorithms_without_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = advice._options

    def few(*given: Any) -> Mapping[str, Any]:
        return {name: chosen for name, chosen in options(*given).items() if name in QUICK}

    monkeypatch.setattr(advice, "_options", few)
    shown, made = parts_in(PAGE.read_text(encoding="utf-8")), parts_of(made_advice())
    first = [line.split("|")[1] for line in made["table"].splitlines()]
    assert len(first) == 2 + len(QUICK)
    rows = [line for line in shown["table"].splitlines() if line.split("|")[1] in first]
    check("\n".join(rows), made["table"])


@pytest.mark.soundness
def test_the_page_is_what_the_command_gives() -> None:
    shown, made = parts_in(PAGE.read_text(encoding="utf-8")), parts_of(made_advice())
    for part in ("sentences", "table"):
        check(shown[part], made[part])


def test_parts_are_put_where_they_belong() -> None:
    page = PAGE.read_text(encoding="utf-8")
    parts = {"sentences": "> One.", "table": "| two |"}
    assert parts_in(with_parts(page, parts)) == parts
    assert with_parts(page, parts_in(page)) == page
