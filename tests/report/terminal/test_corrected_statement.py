"""Corrected statements in text and LaTeX: complete, marked, and typeset without an error."""

from __future__ import annotations

import re

import pytest

from fltheory import theorems
from fltheory.grammar.printed_form import form_text, printed_latex, printed_text
from fltheory.report.latex import _typeset_summands, corrected_latex, sentence_latex
from fltheory.report.terminal.corrected_statement import corrected_text, written_summands
from fltheory.theorems.correction import correction

CORRECTED = [
    s.id
    for s in theorems.registered()
    if s.reading == "printed" and any(fault.reading for fault in s.refutations)
]


@pytest.mark.parametrize("identifier", CORRECTED)
def test_text_and_latex_hold_every_part_and_every_change(identifier: str) -> None:
    found = correction(identifier)
    text, latex = corrected_text(found), corrected_latex(found)
    for hypothesis in found.corrected.conditions:
        if hypothesis.stated:
            assert hypothesis.stated in text
            assert sentence_latex(hypothesis.stated) in latex
        else:
            assert hypothesis.name in text
            assert printed_latex(hypothesis.condition) in latex
    for assertion in found.corrected.assertions:
        assert assertion.left in text
        for term, written in written_summands(assertion):
            size = printed_text(term) if written is None else form_text(written)
            assert size.removeprefix("-") in text  # a negative one has its sign before it
    for number, change in enumerate(found.changes, 1):
        # A number that marks no part would send the reader looking for it.
        marks_a_part = re.search(rf"\[(\d+,)*{number}(,\d+)*\]", text.split("What changes")[0])
        label = number if marks_a_part else "*"
        fault = f"{change.kind.capitalize()}, fixed by: "
        assert f"  [{label}] {fault}{change.about}" in text
        assert rf"\item[{{[{label}]}}] {fault}" in latex


@pytest.mark.parametrize("identifier", CORRECTED)
def test_summands_in_the_order_of_the_paper_are_those_of_the_statement(identifier: str) -> None:
    for assertion in correction(identifier).corrected.assertions:
        found = list(_typeset_summands(assertion))
        assert sum(term for term, _ in found) == assertion.right
        assert [latex for _, latex in found if not latex] == []


@pytest.mark.parametrize("identifier", CORRECTED)
def test_every_formula_is_typeset(identifier: str) -> None:
    converter = pytest.importorskip("latex2mathml.converter")
    latex = corrected_latex(correction(identifier))
    claims = re.findall(r"\\begin\{multline\*\}(.*?)\\end\{multline\*\}", latex, re.DOTALL)
    for formula in [*re.findall(r"\$([^$]*)\$", latex), *claims]:
        plain = re.sub(r"\\changed\{[^{}]*\}", "", formula)
        assert "<math" in converter.convert(plain)


@pytest.mark.parametrize("identifier", CORRECTED)
def test_latex_is_balanced_and_has_no_character_that_text_cannot_show(identifier: str) -> None:
    latex = corrected_latex(correction(identifier))
    body = latex.split("\n", 1)[1]
    assert body.count("{") == body.count("}")
    for name in ("corrected", "itemize", "multline*", "enumerate"):
        assert body.count(rf"\begin{{{name}}}") == body.count(rf"\end{{{name}}}")
    assert body.count("$") % 2 == 0
    outside = re.sub(
        r"\$[^$]*\$|\\[_^&#%]|\\begin\{multline\*\}.*?\\end\{multline\*\}",
        "",
        body,
        flags=re.S,
    )
    # What is left is words: no character that LaTeX reads as a command of a formula.
    assert not re.search(r"[_^&#%]", outside.split("\n", 1)[1]), outside


@pytest.mark.parametrize("identifier", CORRECTED)
def test_text_and_latex_have_the_same_order(identifier: str) -> None:
    found = correction(identifier)
    text, latex = corrected_text(found), corrected_latex(found)
    for assertion in found.corrected.assertions:
        places_in_text, places_in_latex = [], []
        for (term, written), (_, typeset) in zip(
            written_summands(assertion), _typeset_summands(assertion), strict=True
        ):
            size = printed_text(term) if written is None else form_text(written)
            places_in_text.append(text.index(size.removeprefix("-")))
            places_in_latex.append(latex.index(typeset.removeprefix("- ")))
        assert places_in_text == sorted(places_in_text)
        assert places_in_latex == sorted(places_in_latex)


def test_latex_has_the_order_of_the_paper() -> None:
    latex = corrected_latex(correction("sa-fl/5"))
    assert r"\leq \left(1 - \bar{\eta}\right)^{R} D_{0}^{2} \\" in latex
    assert r"+ \frac{8 q \eta_{c} K \sigma_{G}^{2}}{\mu} \\" in latex
    assert r"\changed{1}{\eta_{c} \leq \frac{1}{16 L K}}" in latex
    assert r"1 \\" + "\n" + r"  - \frac{d - c}{b - a}" in corrected_latex(correction("pac/example"))


def test_marks_stand_where_the_changes_are() -> None:
    text = corrected_text(correction("sa-fl/5"))
    assert "small client step: eta_c <= 1/(16*L*K)   [1]" in text
    assert "+ 4*q*eta_c*sigma**2/(mu*m)   [2]" in text
    assert "+ 4*q*sigma_G**2/mu**2   [3]" in text
    assert "Hypothesis left out: few client rounds, q <= 1/(1 + " in text
    assert "coupled step sizes: eta_c*K*mu/2 = 2*eta_s*L*mu/(L + mu)\n" in text
    latex = corrected_latex(correction("sa-fl/5"))
    assert r"\changed{3}{\frac{4 q \sigma_{G}^{2}}{\mu^{2}}}" in latex


def test_a_negative_summand_has_its_sign_before_it() -> None:
    found = correction("pac/example")
    assert "\n    - (d - c)/(b - a)\n" in corrected_text(found)
    assert "+ -" not in corrected_latex(found)


def test_formulas_in_sentences_are_typeset_and_code_is_not() -> None:
    latex = corrected_latex(correction("ca-fed/2"))
    assert "detokenize" not in latex
    assert r"$w_{B}^{*}$ in place of $w^{*}$ in $\upsilon$" in latex
    assert r"In $\upsilon$ of (12), $\|w_{0} - w^{*}\|$ has $w^{*}$" in latex
    assert r": server\_lr" in latex


@pytest.mark.parametrize("identifier", CORRECTED)
def test_no_formula_is_left_as_characters(identifier: str) -> None:
    body = corrected_latex(correction(identifier)).split("\n", 2)[2]
    claims = r"\\begin\{multline\*\}.*?\\end\{multline\*\}"
    words = re.sub(rf"\$[^$]*\$|{claims}", "", body, flags=re.DOTALL)
    words = re.sub(r"\b(client|server|assist|local)\\_(lr|steps)\b", "", words)
    assert not re.search(r"\\_|\\text(bar|asciicircum)| [=+] |\w\(|\d ?/ ?\w", words), words
