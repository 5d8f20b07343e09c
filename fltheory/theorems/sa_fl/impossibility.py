"""SA-FL's Theorem 1: federated learning without server data is not PAC-learnable.

Each constant of the proof is a separate statement. The constants 17/20 and 3/20 bound the
probability of the rare point. Eq. (3) and the constant 1/3 bound a learner's errors given a sample
without that point, and 1/20 is the constant at the end. The ``tight`` readings have the best
constants for all M, n and m. docs/pac.md proves them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from fltheory.claims.at_point import LearningClaim
from fltheory.grammar.assertion import Relation
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.refutation import Refutation, StatementKind, Weight
from fltheory.grammar.regime import Regime
from fltheory.grammar.symbols import symbol
from fltheory.learnability import FederatedSystem, impossibility
from fltheory.learnability.impossibility import alike_clients, split_clients
from fltheory.validation import FloatArray

PAPER = "SA-FL (ICML 2024)"


def about(kind: type) -> Callable[[Any], Any]:
    """Return a ``domain`` function for statements about one kind of learning problem."""

    def domain(setting: Any) -> Any:
        if not isinstance(setting, kind):
            raise ValueError(f"setting must be a {kind.__name__}, got {setting!r}")
        return setting

    return domain


M = symbol("M", "clients", number=lambda system: system.M, positive=True, integer=True)
n = symbol(
    "n",
    "number of samples of each client",
    number=lambda system: system.n,
    positive=True,
    integer=True,
)
m = symbol(
    "m",
    "number of clients that take part",
    number=lambda system: system.m,
    positive=True,
    integer=True,
)
omega = symbol(
    "omega",
    "m/M, system capacity",
    number=lambda system: Fraction(system.m, system.M),
    positive=True,
)
agree = symbol(
    "agree",
    "1 if two concepts agree at one point and differ at another, else 0",
    number=lambda system: int(system.agree_somewhere),
    nonnegative=True,
)
SYMBOLS = (
    *(M, n, m, omega, agree),
    symbol("x_1", "the point at which two concepts agree, of mass P(x_1) = (1 + omega)/2"),
    symbol("x_2", "the point at which two concepts differ, of mass P(x_2) = (1 - omega)/2"),
    symbol("f_1", "one of the two concepts"),
    symbol("f_2", "the other one"),
    symbol("h", "what a learner returns"),
    symbol("hidden", "the event that no selected sample is at x_2"),
)
hidden_alike = symbol(
    "H_alike",
    "P[x_2 can be hidden by choosing clients]",
    number=lambda system: alike_clients(system.M, system.n, system.m).hidden_probability,
    nonnegative=True,
)


def _of(function: Callable[[FederatedSystem], Fraction]) -> Callable[[Any], Fraction]:
    """Return ``function`` changed to be 0 for systems whose two concepts differ everywhere."""
    return lambda system: function(system) if system.agree_somewhere else Fraction(0)


def _by_samples(system: FederatedSystem) -> Fraction:
    return impossibility(system.M, system.n, system.m).minimax_probability


_LATEX = r"\min_{\mathrm{learners}}\;P[\mathrm{error}>\epsilon]"


def draw_failures(
    system: FederatedSystem, replicas: int, rng: np.random.Generator, n_server: int = 0
) -> FloatArray:
    """Draw whether the minimax learner errs by more than epsilon, as (replicas,) ones or zeros.

    The learner tosses a coin if neither the selected samples nor the server's are at x_2. Samples
    are selected individually, as in the proof.
    """
    rare = float(impossibility(system.M, system.n, system.m).rare_probability)
    seen = rng.binomial(system.M * system.n, rare, replicas)
    hidden = seen <= (system.M - system.m) * system.n
    hidden &= rng.binomial(n_server, rare, replicas) == 0
    wrong = hidden & (rng.random(replicas) < 0.5) & system.agree_somewhere
    return wrong.astype(np.float64)


def _by_clients(system: FederatedSystem) -> Fraction:
    return split_clients(system.M, system.n, system.m).minimax_probability


def _by_either(system: FederatedSystem) -> Fraction:
    """Return the smaller of the minimax failure probabilities if clients or samples are chosen."""
    return min(_by_clients(system), _by_samples(system))


def _conditional(system: FederatedSystem) -> Fraction:
    """Return the minimax failure probability, given that the proof counts x_2 as hidden.

    Given any such sample, a learner's error probabilities at x_2 under the two targets add up to
    one, whether the learner is randomised or not.
    """
    figures = impossibility(system.M, system.n, system.m)
    return figures.minimax_probability / figures.hidden_probability


def _frequent(system: FederatedSystem) -> Fraction:
    return 1 - _rare(system)


def _rare(system: FederatedSystem) -> Fraction:
    event = impossibility(system.M, system.n, system.m).paper_event
    assert event is not None
    return event


def _printed_sum(system: FederatedSystem) -> Fraction:
    """Return the largest value of (3) as printed, over a learner's outputs and values of f_2."""
    rare = impossibility(system.M, system.n, system.m).rare_probability
    values = (
        (returned != 1) * rare + (returned != second) * (1 - rare)
        for returned in (1, -1)
        for second in (1, -1)
    )
    return max(values)


def _derived_sum(system: FederatedSystem) -> Fraction:
    """Return the largest value of (3) with x_2 in both places and f_2(x_2) = -f_1(x_2)."""
    rare = impossibility(system.M, system.n, system.m).rare_probability
    return max((returned != 1) * rare + (returned != -1) * rare for returned in (1, -1))


def _system(M: int, n: int, m: int) -> Callable[[], FederatedSystem]:
    return lambda: FederatedSystem(M, n, m)


_SMALLEST = Regime("M = 2, n = 1, m = 1", _system(2, 1, 1))
_HALF = Regime("M = 10, n = 20, m = 5", _system(10, 20, 5))
_ONE = Regime("M = 10, n = 20, m = 1", _system(10, 20, 1))
_ALL_BUT_ONE = Regime("M = 400, n = 1, m = 399: close to the smallest value", _system(400, 1, 399))
_LARGE = Regime("M = 100, n = 100, m = 50", _system(100, 100, 50))

REGIMES = {
    "two clients with one sample": _SMALLEST,
    "half take part": _HALF,
    "one takes part": _ONE,
    "all but one": _ALL_BUT_ONE,
    "ten thousand samples": _LARGE,
}
_OPPOSITES = {
    "opposite concepts": Regime(
        "H = {f, -f}: two concepts that agree nowhere",
        lambda: FederatedSystem(10, 20, 5, agree_somewhere=False),
    )
}

_NON_TRIVIAL = Hypothesis(
    "two concepts agree at one point and differ at another",
    sp.Eq(agree, 1),
    "'non-trivial', Theorem 1",
    stated="two concepts agree at a point x_1 and differ at another point, x_2",
)
_FAILURE = "min over learners, max over f_1, f_2 of P[error > (1 - omega)/8]"

THEOREM_1 = LearningClaim(
    id="pac/1",
    title="No learner is PAC if clients stay away: its error exceeds (1 - omega)/8",
    source=f"{PAPER}, Theorem 1",
    quantity=PointQuantity(_of(_by_clients), f"{_FAILURE}, clients chosen"),
    relation=Relation.ABOVE,
    bound=sp.Rational(1, 20),
    hypotheses=(_NON_TRIVIAL,),
    symbols=SYMBOLS,
    domain=about(FederatedSystem),
    regimes={**REGIMES, **_OPPOSITES},
    note=(
        "Checked to the letter: a participation process chooses clients. Let M - m clients hold "
        "only x_2 and be excluded. Then x_2 has mass 1 - omega, not (1 - omega)/2, and is "
        "certainly hidden for every n. A learner that tosses a coin at x_2 is wrong with "
        "probability 1/2. Each client's samples are then drawn from its own P_i, but all samples "
        "together are not independent draws from P. The paper does not define 'non-trivial'. It "
        "is not enough to have more than one concept, because any sample distinguishes f from -f."
    ),
)

THEOREM_1_DERIVED = replace(
    THEOREM_1,
    reading="derived",
    quantity=PointQuantity(
        _of(_by_samples), f"{_FAILURE}, samples chosen", latex=_LATEX, sample=draw_failures
    ),
    note=(
        "This is what the proof does: out of Mn samples, all drawn from the same P, it selects mn "
        "one by one. No participation process can do that (see pac/1-equivalence). The proof ends "
        "with 'error >= epsilon' where the theorem has '>'. Both mean the same, because the error "
        "at x_2 is either 4 epsilon or 0. s_hat is binomial with parameter 4 epsilon, where the "
        "paper prints epsilon."
    ),
)

THEOREM_1_TIGHT = replace(
    THEOREM_1_DERIVED,
    reading="tight",
    bound=sp.Rational(9, 20),
    note=(
        "x_2 is also hidden if s_hat is exactly (1 - omega)Mn. Given that x_2 is hidden, the "
        "constant 1/3 can be raised to 1/2. The infimum over all systems is 3/4 exp(-1/2) = "
        "0.4549. It is approached if each of M clients has one sample, one client stays away, and "
        "M grows."
    ),
)

EQUIVALENCE = LearningClaim(
    id="pac/1-equivalence",
    title="Choosing clients is equivalent to choosing mn of Mn samples",
    source=f"{PAPER}, proof sketch of Theorem 1",
    quantity=PointQuantity(
        _of(_by_either),
        f"{_FAILURE}, whether clients or samples are chosen, the smaller of the two",
    ),
    relation=Relation.ABOVE,
    bound=sp.Rational(1, 20),
    hypotheses=(_NON_TRIVIAL,),
    symbols=SYMBOLS,
    domain=about(FederatedSystem),
    regimes=REGIMES,
    kind=StatementKind.SKETCH,
    note=(
        "The sentence is about learnability, and neither system is learnable: every learner fails "
        "both if clients are chosen (pac/1, printed) and if samples are chosen (pac/1, derived). "
        "The claim that each implies the other would be stronger; see the reading 'same data'."
    ),
)

EQUIVALENCE_ON_THE_SAME_DATA = replace(
    EQUIVALENCE,
    reading="same data",
    quantity=PointQuantity(
        lambda s: impossibility(s.M, s.n, s.m).hidden_probability,
        "P[x_2 can be hidden by choosing samples]",
    ),
    relation=Relation.AT_MOST,
    bound=hidden_alike,
    hypotheses=(),
    note=(
        "This claim is stronger than the sentence: whatever can be hidden by choosing samples can "
        "also be hidden by choosing clients. The data are those that the proof uses, so all "
        "samples are independent draws from P. To choose a client is to choose all of its "
        "samples, so only clients without x_2 help. If x_2 is held by clients that hold nothing "
        "else (see pac/1), choosing clients hides more than choosing samples does. But then S is "
        "not a sample of P, because exactly n of its points come from each client."
    ),
)

EQUIVALENCE_DERIVED = replace(
    EQUIVALENCE_ON_THE_SAME_DATA,
    reading="derived",
    hypotheses=(Hypothesis("one sample per client", sp.Le(n, 1), "a client is then a sample"),),
    note="With one sample per client, choosing clients is choosing samples.",
)

GUESSING = replace(
    THEOREM_1_DERIVED,
    id="pac/1-guessing",
    reading="printed",
    title="No learner is better than random guessing",
    source="SA-FL (earlier anonymous version), proof sketch of Theorem 1",
    quantity=PointQuantity(
        _of(lambda s: impossibility(s.M, s.n, s.m).minimax_expected_error),
        "min over learners, max over f_1, f_2 of E error",
    ),
    relation=Relation.AT_LEAST,
    bound=sp.Rational(1, 2),
    regimes=REGIMES,
    note=(
        "Checked to the letter; the later version leaves the sentence out. Random guessing errs "
        "with probability 1/2 at either point. But a learner sees x_1, which has mass 1 - 4 "
        "epsilon."
    ),
    kind=StatementKind.SKETCH,
)

GUESSING_DERIVED = replace(
    GUESSING,
    reading="derived",
    quantity=PointQuantity(
        _of(_conditional),
        "min over learners, max over f in {f_1, f_2} of P[h(x_2) != f(x_2) | hidden]",
        latex=(
            r"\min_{\mathrm{learners}}\;\max_{f\in\{f_1,f_2\}}"
            r"P[h(x_2)\neq f(x_2)\mid\mathrm{hidden}]"
        ),
    ),
    note="If a point is hidden, no learner does better there than a toss of a coin.",
)

CHERNOFF = LearningClaim(
    id="pac/1-chernoff",
    title="The rare point is not too frequent: 17/20",
    source=f"{PAPER}, proof of Theorem 1",
    quantity=PointQuantity(_frequent, "P[s_hat >= (1 - omega) M n], s_hat ~ B(Mn, 4 epsilon)"),
    relation=Relation.AT_MOST,
    bound=sp.Rational(17, 20),
    hypotheses=(),
    symbols=SYMBOLS,
    domain=about(FederatedSystem),
    regimes=REGIMES,
    note=(
        "Confirmed: exp(-1/6) <= 17/20 because 1 + 1/6 + 1/72 + 1/1296 = 1531/1296 > 20/17, and "
        "(1 - omega)Mn is a positive integer. 'B(Mn, epsilon)' is a misprint: P(x_2) is 4 "
        "epsilon, which is also what the mean in the next line uses."
    ),
    kind=StatementKind.STEP,
)

CHERNOFF_TIGHT = replace(
    CHERNOFF,
    reading="tight",
    bound=sp.Rational(7, 16),
    note="The largest value over all systems, attained at M = 2, n = m = 1.",
)

RARE = replace(
    CHERNOFF,
    id="pac/1-rare",
    title="The rare point is rare enough to be hidden: 3/20",
    quantity=PointQuantity(_rare, "P[s_hat < (1 - omega) M n], s_hat ~ B(Mn, 4 epsilon)"),
    relation=Relation.ABOVE,
    bound=sp.Rational(3, 20),
    note=(
        "Confirmed, as the complement of the bound 17/20. There is room to spare, because "
        "exp(-1/6) < 17/20."
    ),
)

RARE_TIGHT = replace(
    RARE,
    reading="tight",
    relation=Relation.AT_LEAST,
    bound=sp.Rational(9, 16),
    note="The least value over all systems, attained at M = 2, n = m = 1.",
)

CONDITIONAL = replace(
    CHERNOFF,
    id="pac/1-conditional",
    title="If the point is hidden, a learner errs with probability at least 1/3",
    source=f"{PAPER}, (8)",
    quantity=PointQuantity(
        _of(_conditional), "min over learners, max over f_1, f_2 of P[error >= epsilon | hidden]"
    ),
    relation=Relation.AT_LEAST,
    bound=sp.Rational(1, 3),
    hypotheses=(_NON_TRIVIAL,),
    note=(
        "Confirmed, by splitting the expectation and bounding its smaller part by epsilon. "
        "Because the error at x_2 is either 4 epsilon or 0, an expectation of 2 epsilon even "
        "gives a probability of 1/2."
    ),
)

CONDITIONAL_TIGHT = replace(
    CONDITIONAL,
    reading="tight",
    bound=sp.Rational(1, 2),
    note=(
        "The constant is exact: a learner that tosses a coin at x_2 attains it. For learners "
        "without randomness, the constant is 1."
    ),
)


def _sum_of_errors(*points: str) -> str:
    """Return (3) in LaTeX, with x_1 or x_2 at its six places."""
    a, b, c, d, e, f = points
    return (
        rf"\max_h\;1\{{h(x_{a})\neq f_1(x_{b})\}}P(x_{c})"
        rf"+1\{{h(x_{d})\neq f_2(x_{e})\}}P(x_{f})"
    )


SUM = replace(
    CHERNOFF,
    id="pac/1-sum",
    title="The errors under the two targets add up to 4 epsilon",
    source=f"{PAPER}, (3) and (4)",
    quantity=PointQuantity(
        _printed_sum,
        "max over h of 1{h(x_1) != f_1(x_1)} P(x_2) + 1{h(x_1) != f_2(x_2)} P(x_1)",
        latex=_sum_of_errors("1", "1", "2", "1", "2", "1"),
    ),
    bound=(1 - omega) / 2,
    hypotheses=(_NON_TRIVIAL,),
    note=(
        "Checked to the letter: 1{h(x_1) != f_1(x_1)} P(x_2) + 1{h(x_1) != f_2(x_2)} P(x_1), with "
        "x_1 where x_2 should stand. This sum is 1 - 4 epsilon for a learner that is right at "
        "x_1, because f_2(x_2) is a different label."
    ),
)

SUM_DERIVED = replace(
    SUM,
    reading="derived",
    quantity=PointQuantity(
        _derived_sum,
        "max over h of 1{h(x_2) != f_1(x_2)} P(x_2) + 1{h(x_2) != f_2(x_2)} P(x_2)",
        latex=_sum_of_errors("2", "2", "2", "2", "2", "2"),
    ),
    note="Because f_1 and f_2 differ at x_2, one of the two indicators is 1 and the other is 0.",
)

STATEMENTS = (
    THEOREM_1,
    THEOREM_1_DERIVED,
    THEOREM_1_TIGHT,
    EQUIVALENCE,
    replace(
        EQUIVALENCE_ON_THE_SAME_DATA,
        refutations=(
            Refutation(
                "A client brings all of its n samples, so only clients without x_2 help to hide "
                "it. With independent samples from P, there are rarely enough such clients.",
                Weight.GAP,
                "one sample per client",
                "derived",
                ("half take part", "one takes part", "ten thousand samples"),
                natural="half take part",
                answer="The sentence is about learnability, which fails in both cases.",
            ),
        ),
    ),
    EQUIVALENCE_DERIVED,
    replace(
        GUESSING,
        refutations=(
            Refutation(
                "A learner sees x_1, which has mass 1 - 4 epsilon. If it is right there, it errs "
                "with probability at most (1 - omega)/2. The proof is only about x_2, and so, "
                "probably, is the sentence.",
                Weight.WORDING,
                "a claim only about the hidden point, given that it is hidden",
                "derived",
                tuple(REGIMES),
                natural="half take part",
                answer="The sentence is informal and about the hidden point; the later version "
                "leaves it out.",
            ),
        ),
    ),
    GUESSING_DERIVED,
    CHERNOFF,
    CHERNOFF_TIGHT,
    RARE,
    RARE_TIGHT,
    replace(
        SUM,
        refutations=(
            Refutation(
                "Each of the two terms of (3) has x_1 where x_2 should stand. With x_2 in both "
                "places, (4) follows.",
                Weight.MISPRINT,
                "x_2 in place of x_1 in (3)",
                "derived",
                tuple(REGIMES),
                natural="half take part",
                answer="A typing error: (4) follows from the corrected (3).",
            ),
        ),
    ),
    SUM_DERIVED,
    CONDITIONAL,
    CONDITIONAL_TIGHT,
)
