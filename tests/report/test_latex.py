"""Formulas in sentences: found, typeset as one would by hand, and told from words and numbers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fltheory.report.latex import escaped, plain_text, sentence_latex

TYPESET = {
    "eta_c <= 1/(2 sqrt(30) LK)": r"\eta_{c} \leq 1/(2 \sqrt{30} LK)",
    "4 q sigma_G^2/mu^2": r"4 q \sigma_{G}^{2}/\mu^{2}",
    "||w_0 - w*||": r"\|w_{0} - w^{*}\|",
    "E||noise||^2 >= sigma^2": r"E\|\text{noise}\|^{2} \geq \sigma^{2}",
    "(lambda* - theta*/pi_k)/2": r"(\lambda^{*} - \theta^{*}/\pi_{k})/2",
    "q'Sigma q": r"q^{\prime}\Sigma q",
    "f_k'' = 2 alpha_k^2/p_k^3": r"f_{k}^{\prime\prime} = 2 \alpha_{k}^{2}/p_{k}^{3}",
    "max(floor(t/K), 1)": r"\max(\lfloor t/K \rfloor, 1)",
    "max_k F_k(w*) - F_k*": r"\max_{k} F_{k}(w^{*}) - F_{k}^{*}",
    "r = 0 .. R-1": r"r = 0 \dots R - 1",
    "eta_{t-J_t}^2": r"\eta_{t - J_{t}}^{2}",
    "lambda(P)^J_t": r"\lambda(P)^{J_{t}}",
    "A^((1 + beta)/2)": r"A^{(1 + \beta)/2}",
    "h_Q^": r"\hat{h}_{Q}",
    "q_min": r"q_{\min}",
    "1{x != y} P(x)": r"1\{x \neq y\} P(x)",
    "f_k o g_k": r"f_{k} \circ g_{k}",
    "etabar": r"\bar{\eta}",
    "[a', b']": r"[a^{\prime}, b^{\prime}]",
    "n_opt": r"n_{\mathrm{opt}}",
    "J_t ln(1/lambda)": r"J_{t} \ln(1/\lambda)",
    "2t": "2t",
    "-x": "-x",
    "sqrt(P(x) A)": r"\sqrt{P(x) A}",
}


@pytest.mark.parametrize("formula", TYPESET)
def test_typeset_as_by_hand(formula: str) -> None:
    wanted = f"${TYPESET[formula]}$"
    assert sentence_latex(formula) == wanted
    assert sentence_latex(f"Below (12), {formula}, as in Lemma 2.") == (
        f"Below (12), {wanted}, as in Lemma 2."
    )


@pytest.mark.parametrize(
    "words",
    [
        "A constant a: the clients' loss, a term of (20), and one of Theorem 3's.",
        "After (27) it is 1 at most; option I of Section 6.1, Appendix E, (III-C).",
        "PAC learning on-off by SGD (see the max over all, the sum of two, or a log).",
        "In Assumption A, 4 clients of 10.",
    ],
)
def test_words_and_numbers_stay(words: str) -> None:
    assert sentence_latex(words) == words


def test_what_is_of_neither_kind_is_shown_as_it_is() -> None:
    assert sentence_latex("with my_file (x and 50% of #1") == r"with my\_file ($x$ and 50\% of \#1"
    assert sentence_latex("client_lr of Q's law") == r"client\_lr of $Q$'s law"
    assert sentence_latex("x_2 <= ") == r"$x_{2}$ $\leq$ "


@given(st.text("aAqxLK 12_^*'/|<=>()[]{}.,;-+~\\$&%#"))
def test_any_text_is_shown_whole(text: str) -> None:
    """No letter and no digit is lost, and brackets and dollars are balanced."""
    latex = sentence_latex(text)
    assert latex.count("$") - latex.count(r"\$") == 2 * len(re.findall(r"(?<!\\)\$[^$]+\$", latex))
    for sign in "aAqxLK12":
        shown = re.sub(r"\\(text[a-z]+|[a-z]+)", "", latex)
        assert shown.count(sign) == text.count(sign)


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_escapes_are_taken_back(text: str) -> None:
    assert plain_text(escaped(text)) == text
