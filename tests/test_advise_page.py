"""The how-to page shows what the advice for its made log is."""

from __future__ import annotations

import re

import pytest

from benchmarks.advice_page import PAGE, made_advice, parts_in, parts_of, with_parts
from fltheory.advice import Advice

NUMBER = re.compile(r"(?<![\w-])\d+(?:\.\d+)?(?:e-\d+)?")


@pytest.fixture(scope="module")
def advice() -> Advice:
    return made_advice()


@pytest.mark.parametrize("part", ["sentences", "table"])
def test_the_page_is_what_the_command_gives(advice: Advice, part: str) -> None:
    shown, made = parts_in(PAGE.read_text(encoding="utf-8"))[part], parts_of(advice)[part]
    assert NUMBER.sub("#", shown) == NUMBER.sub("#", made)
    # Other processors round otherwise, which a drawn round may turn into another.
    numbers = [[float(text) for text in NUMBER.findall(text)] for text in (shown, made)]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.03, abs=1e-4)
    assert len(numbers[0]) > 10


def test_parts_are_put_where_they_belong() -> None:
    page = PAGE.read_text(encoding="utf-8")
    parts = {"sentences": "> One.", "table": "| two |"}
    assert parts_in(with_parts(page, parts)) == parts
    assert with_parts(page, parts_in(page)) == page
