"""Every numbered statement of a text is registered, or a reader is told why not."""

from __future__ import annotations

import re

import pytest

from fltheory import theorems
from fltheory.report.paper_page import TEXTS, Text, paper_page

ROWS = [(text, label) for text in TEXTS for label in text.numbered]
KINDS = ("Theorem", "Corollary", "Lemma", "Remark")


@pytest.mark.parametrize(("text", "label"), ROWS, ids=lambda item: getattr(item, "name", item))
def test_each_is_checked_or_has_a_reason(text: Text, label: str) -> None:
    assert text.covering(label, theorems.registered()) or text.reasons.get(label)
    assert set(text.reasons) <= set(text.numbered)


def test_every_number_that_a_source_names_is_in_the_table() -> None:
    """A statement from a theorem that the table does not know would go uncounted."""
    pattern = re.compile(rf"(?:, | and )((?:{'|'.join(KINDS)}) [\w.]*\w)")
    for text in TEXTS:
        for statement in theorems.registered():
            if statement.source.startswith(text.name):
                named = pattern.findall(statement.source.removeprefix(text.name))
                assert set(named) <= set(text.numbered), statement.source


@pytest.mark.parametrize(
    ("name", "label", "expected"),
    [
        ("SA-FL (ICML 2024)", "Theorem 1", ("pac/1",)),
        ("SA-FL (ICML 2024)", "Lemma 2", ("pac/lemma-2",)),
        ("SA-FL (ICML 2024)", "Corollary 2", ("sa-fl/corollary-2",)),
        ("SA-FL (earlier anonymous version)", "Theorem 4", ("sa-fl-submission/4",)),
        ("FedAR (arXiv 2407.19103)", "Theorem 2", ("fedar/2",)),
        ("Wang et al. (NeurIPS 2020)", "Theorem 1", ("fednova/1",)),
        (
            "Xiang et al. (NeurIPS 2024)",
            "Lemma 2",
            ("fedawe/lemma-2", "fedawe/lemma-2-squares"),
        ),
    ],
)
def test_which_statements_cover_one(name: str, label: str, expected: tuple[str, ...]) -> None:
    (text,) = (one for one in TEXTS if one.name == name)
    assert text.covering(label, theorems.registered()) == expected


def test_a_papers_page_says_what_is_covered() -> None:
    page = paper_page(theorems.registered("sa-fl")).splitlines()
    assert "| Theorem 1 | `pac/1` |" in page
    assert any(line.startswith("| Remark 1 | not a statement of its own: on what") for line in page)
    other = paper_page(theorems.registered("scaffold"))
    assert "| in the text | checked as |" not in other
