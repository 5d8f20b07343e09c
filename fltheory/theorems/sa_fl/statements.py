"""SA-FL: Theorems 4 and 5, Corollaries 1 and 2, in both versions of the paper.

Yang, Qiu, Khanduri, Fang and Liu, "Understanding Server-Assisted Federated Learning in the
Presence of Incomplete Client Participation" (ICML 2024), and its earlier anonymous version.

Conventions
-----------
The statements are about random rounds and random gradients, such as ``G_1 = max over r in T_s``. A
coin decides, after ``x_r`` is known, whether round r belongs to the server (T_s) or to the clients
(T_c). So G_1 and G_2 are evaluated in expectation and over all rounds 0 .. R-1, which is also how
the proofs use them. ``i in [m]`` in G_2 is read as the proof's ``i in S_r``, the clients that take
part. Assumption 4 holds by construction for analytic clients.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import sympy as sp

from fltheory.algorithms import FedAvg, Safari
from fltheory.claims.along_run import Theorem
from fltheory.claims.order import RateClaim
from fltheory.claims.rate_axis import RateAxis, with_rounds
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.engines.observables import Observable, ParticipantExcessLoss, ParticipantGradientSum
from fltheory.grammar.family import SearchSpace
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, Reduction, RoundRange, RoundSymbol
from fltheory.grammar.refutation import Mend, Refutation, Repair, StatementKind, Weight
from fltheory.grammar.units import LENGTH, LOSS
from fltheory.numbers.of_setting import value_in
from fltheory.problems.quadratic_problem import quadratic_for
from fltheory.theorems.sa_fl import proof_4, proof_5, proof_rates, regimes
from fltheory.theorems.sa_fl.regimes import OWN_5_REPAIRED
from fltheory.theorems.sa_fl.symbols import (
    D_0,
    G_1,
    G_2,
    G_3,
    G_4,
    Delta_0,
    K,
    L,
    R,
    eta_bar,
    eta_c,
    eta_s,
    m,
    mu,
    q,
    sigma,
    sigma_G,
    sigma_of_all,
    sigma_s,
)

__all__ = [
    "D_0",
    "G_1",
    "G_2",
    "G_3",
    "G_4",
    "STATEMENTS",
    "Delta_0",
    "K",
    "L",
    "R",
    "eta_bar",
    "eta_c",
    "eta_s",
    "m",
    "mu",
    "q",
    "sigma",
    "sigma_G",
    "sigma_s",
]

_ICML = "SA-FL (ICML 2024)"
_EARLIER = "SA-FL (earlier anonymous version)"
_BEFORE_EACH_ROUND = RoundRange(0, -1)
_AFTER_EACH_ROUND = RoundRange(1, 0)


def as_safari(setting: Setting) -> Setting:
    """Return a SAFARI setting unchanged, and a plain FedAvg setting as SAFARI at q = 1.

    FedAvg makes no server steps; the step size eta_s, which the theorems couple to eta_c, is then
    taken from eta_c = 2 eta_s / K (Theorem 4).

    Raises
    ------
    ValueError
        If the algorithm is a different one, or the number of participants varies, or rounds are
        dependent.
    """
    algorithm, participation = setting.algorithm, setting.participation
    if isinstance(algorithm, FedAvg) and algorithm.server_lr == 1:
        assist_lr = algorithm.client_lr * algorithm.local_steps / 2
        algorithm = Safari(1.0, algorithm.client_lr, assist_lr, algorithm.local_steps)
    if not isinstance(algorithm, Safari):
        raise ValueError(
            "algorithm must be Safari, or FedAvg with server_lr=1 (SAFARI at q = 1), "
            f"for the theorems of SA-FL, got {setting.algorithm!r}"
        )
    if not participation.independent:
        raise ValueError(
            "participation must be independent across rounds for the theorems of SA-FL, got "
            f"{participation!r}, which has memory"
        )
    if participation.fixed_size is None:
        raise ValueError(
            "participation must have a fixed number m of participants for the theorems of "
            f"SA-FL, got {participation!r}"
        )
    # `replace` is not used, as it would check the numbers of an exact twin as if they were floats.
    found = copy(setting)
    object.__setattr__(found, "algorithm", algorithm)
    return found


def _participants(setting: Setting) -> int:
    return int(value_in("participants", as_safari(setting)))


def _observe_gradient_sum(setting: Setting) -> Sequence[Observable]:
    algorithm: Any = setting.algorithm
    return (ParticipantGradientSum(algorithm.local_steps, algorithm.client_lr),)


def _observe_excess_loss(setting: Setting) -> Sequence[Observable]:
    return (ParticipantExcessLoss(),)


_SMOOTH = Hypothesis("smooth clients", sp.Lt(L, sp.oo, evaluate=False), "Assumption 3")
_DISSIMILARITY = Hypothesis(
    "bounded gradient dissimilarity", sp.Lt(sigma_G, sp.oo, evaluate=False), "Assumption 5"
)
_STRONGLY_CONVEX = Hypothesis("strongly convex clients", sp.Gt(mu, 0, evaluate=False), "Theorem 5")
_COUPLING_4 = Hypothesis("coupled step sizes", sp.Eq(eta_c, 2 * eta_s / K), "Theorem 4")
_COUPLING_5 = Hypothesis(
    "coupled step sizes",
    as_printed(lambda: sp.Eq(eta_c * K * mu / 2, 2 * eta_s * L * mu / (L + mu))),
    "Theorem 5",
)


def gradient_symbols(reduction: Reduction, rounds: RoundRange) -> tuple[RoundSymbol, ...]:
    """Return G_1 and G_2 of Theorem 4, reduced over rounds."""
    over = f"{reduction} over {rounds.text} of"
    return (
        RoundSymbol(G_1, "squared_gradient", reduction, rounds, f"{over} E||grad F(x_r)||^2"),
        RoundSymbol(
            G_2,
            "participant_gradient_sum",
            reduction,
            rounds,
            f"{over} E||1/m sum_i sum_k grad F_i(x_{{r,k}}^i)||^2",
        ),
    )


_Q_CONDITION_4 = as_printed(
    lambda: sp.Le(
        q,
        1
        / (
            (4 * sigma_G**2 - 4 * G_2 * (1 / (2 * K**2) - 2 * L * eta_s**2 / K**2))
            / ((1 - L * eta_s) * G_1)
            + 1
        ),
    )
)
_Q_CONDITION_54 = as_printed(
    lambda: sp.Le(
        4 * q * sigma_G**2,
        (1 - q) * (1 - L * eta_s) * G_1 + q * (2 / K**2 - 8 * L * eta_s / K**2) * G_2,
    )
)


def _bound_4(server_noise: sp.Symbol) -> sp.Expr:
    return (
        2 * Delta_0 / (R * eta_s)
        + L * eta_s * (1 - q) * server_noise**2
        + 80 * q * L**2 * eta_s**2 / K * (sigma**2 + 6 * K * sigma_G**2)
        + 8 * L * q * eta_s / (m * K) * sigma**2
    )


def _mean_gradient(rounds: RoundRange) -> BoundedQuantity:
    first, last = rounds.first, "R" if rounds.beyond_last == 0 else "R-1"
    latex = rf"\frac1R\sum_{{r={first}}}^{{{last}}}\mathbb E\|\nabla F(x_r)\|^2"
    text = f"1/R sum_{{r={first}}}^{{{last}}} E||grad F(x_r)||^2"
    unit = (LOSS / LENGTH) ** 2
    return BoundedQuantity("squared_gradient", "mean", rounds, text, latex, unit)


STEP_PRINTED_4 = Hypothesis(
    "small client step",
    as_printed(lambda: sp.Le(eta_c, 1 / (4 * sp.sqrt(30 * L * K)))),
    "Theorem 4",
)
STEP_DERIVED_4 = Hypothesis(
    "small client step",
    as_printed(lambda: sp.Le(eta_c, 1 / (2 * sp.sqrt(30) * L * K))),
    "below (46)",
)

THEOREM_4 = Theorem(
    id="sa-fl/4",
    title="SAFARI on nonconvex losses: the mean squared gradient",
    source=f"{_ICML}, Theorem 4",
    quantity=_mean_gradient(_AFTER_EACH_ROUND),
    bound=as_printed(lambda: _bound_4(sigma_s)),
    hypotheses=(
        _SMOOTH,
        _DISSIMILARITY,
        STEP_PRINTED_4,
        _COUPLING_4,
        Hypothesis("few client rounds", _Q_CONDITION_4, "Theorem 4"),
    ),
    domain=as_safari,
    search_space=SearchSpace.SAFARI,
    derivation=proof_4.printed(_bound_4(sigma_s), _Q_CONDITION_4, STEP_PRINTED_4.condition),
    round_symbols=gradient_symbols("max", _BEFORE_EACH_ROUND),
    observe=_observe_gradient_sum,
    regimes=regimes.THEOREM_4,
    own_run=regimes.OWN_4,
    note=(
        "Checked to the letter. The limit on the step size has LK under the root, in the "
        "statements of both versions and in the proof, so it is unlikely to be an error from "
        "converting the file. But (45) needs 1/2 - 30 (LK eta_c)^2 >= 1/4, that is eta_c <= 1/(2 "
        "sqrt(30) LK). No refutation is known that rests on this difference alone: settings with "
        "such large steps have L eta_s > 1, and they meet the condition on q only because its "
        "denominator is negative. In the condition on q, eta_s is squared, and G_1 and G_2 are "
        "maxima over the random sets T_s and T_c. We take the maxima of expected values over all "
        "rounds 0 .. R-1, which is how the proof uses them. We read i in [m] as i in S_r, as in "
        "(55). The stored witness against the maxima also meets the condition on every path of "
        "the coin tosses."
    ),
)

THEOREM_4_DERIVED = replace(
    THEOREM_4,
    reading="derived",
    quantity=_mean_gradient(_BEFORE_EACH_ROUND),
    hypotheses=(
        _SMOOTH,
        _DISSIMILARITY,
        STEP_DERIVED_4,
        _COUPLING_4,
        Hypothesis("few client rounds", _Q_CONDITION_54, "(54), in expectation"),
    ),
    derivation=proof_4.derived(_bound_4(sigma_s), _Q_CONDITION_54, STEP_DERIVED_4.condition),
    round_symbols=gradient_symbols("mean", _BEFORE_EACH_ROUND),
    note=(
        "This is what the proof gives. (45) needs 1/2 - 30 (LK eta_c)^2 >= 1/4, that is eta_c <= "
        "1/(2 sqrt(30) LK). (53) needs (54), which has sums over the rounds. (55) replaces these "
        "sums by maxima, which gives an upper bound although a lower bound is needed. This "
        "reading has means instead. The factor in (55) is 2/K^2 - 8 L eta_s/K^2, where eta_s is "
        "not squared. The inequalities for one round are summed over r = 0 .. R-1, not 1 .. R."
    ),
)

SUBMISSION_4 = replace(
    THEOREM_4,
    id="sa-fl-submission/4",
    source=f"{_EARLIER}, Theorem 4",
    bound=as_printed(lambda: _bound_4(sigma)),
    read_as={sigma: sigma_of_all},
    search_space=SearchSpace.SAFARI_ONE_NOISE_LEVEL,
    derivation=proof_4.printed_with_minima(
        _bound_4(sigma), _Q_CONDITION_4, STEP_PRINTED_4.condition, sigma
    ),
    round_symbols=gradient_symbols("min", _BEFORE_EACH_ROUND),
    note=(
        "This version differs from the later one: G_1 and G_2 are minima, and one sigma bounds "
        "all noise. Its Assumption 3 requires only F to be smooth; for the clients checked here, "
        "whose dissimilarity is finite, F and the clients have the same L. The limit on the step "
        "size has the same misprint as in the later version. No refutation of the statement is "
        "known. Settings that would refute it have L eta_s > 1, and they meet the condition on q "
        "only because its denominator is negative."
    ),
)

SUBMISSION_4_DERIVED = replace(
    SUBMISSION_4,
    reading="derived",
    quantity=THEOREM_4_DERIVED.quantity,
    hypotheses=THEOREM_4_DERIVED.hypotheses,
    derivation=proof_4.derived(_bound_4(sigma), _Q_CONDITION_54, STEP_DERIVED_4.condition, sigma),
    round_symbols=THEOREM_4_DERIVED.round_symbols,
    note="This reading comes from the later version's proof, with one sigma. "
    + THEOREM_4_DERIVED.note,
)

DRIFT_5 = as_printed(lambda: 1 + 30 * L * eta_bar / mu * (1 + 2 * L * eta_bar / mu))
_Q_CONDITION_5 = as_printed(
    lambda: sp.Le(
        q,
        1
        / (
            1
            + (4 * eta_bar / mu**2 * DRIFT_5 * G_3 - 4 / mu * G_4)
            / ((1 / (L + mu) - (L + mu) ** 2 * eta_bar / (4 * L**2 * mu**2)) * G_3)
        ),
    )
)
_Q_CONDITION_81 = as_printed(
    lambda: sp.Le(
        (
            16 * q * eta_bar / mu**2 * DRIFT_5
            - (1 - q) * (1 / (L * mu) - (L + mu) ** 2 * eta_bar / (4 * L**2 * mu**2))
        )
        * G_3,
        4 * q / mu * G_4,
    )
)


def bound_5(noise: int = 2) -> sp.Expr:
    """Return Theorem 5's bound with this factor on the clients' noise."""
    return (
        (1 - eta_bar) ** R * D_0**2
        + 8 * q * eta_c * K / mu * sigma_G**2
        + noise * q * eta_c / (mu * m) * sigma**2
        + 4
        * q
        * L
        * (1 + K * eta_c * L)
        / mu
        * (5 * K * eta_c**2 * (sigma**2 + 6 * K * sigma_G**2))
        + (1 - q) * (L + mu) / (2 * L * mu) * eta_s * sigma_s**2
    )


_BOUND_5 = as_printed(bound_5)
_BOUND_5_DERIVED = as_printed(lambda: bound_5(4))
_SERVER_STEP_5 = Hypothesis("small server step", sp.Le(eta_s, 2 / (L + mu)), "Theorem 5")
STEP_DRIFT_5 = Hypothesis(
    "small client step", as_printed(lambda: sp.Le(eta_c, 1 / (8 * L * K))), "local drift, (75)"
)

THEOREM_5 = Theorem(
    id="sa-fl/5",
    title="SAFARI on strongly convex losses: the squared distance after R rounds",
    source=f"{_ICML}, Theorem 5",
    quantity=BoundedQuantity(
        "squared_distance",
        "last",
        RoundRange(0, 0),
        "E||x_R - x*||^2",
        r"\mathbb E\|x_R-x_*\|^2",
        LENGTH**2,
    ),
    bound=_BOUND_5,
    hypotheses=(
        _SMOOTH,
        _STRONGLY_CONVEX,
        _DISSIMILARITY,
        _SERVER_STEP_5,
        _COUPLING_5,
        Hypothesis("few client rounds", _Q_CONDITION_5, "Theorem 5"),
    ),
    domain=as_safari,
    search_space=SearchSpace.SAFARI,
    derivation=proof_5.printed(_BOUND_5, _Q_CONDITION_5, _SERVER_STEP_5.condition),
    definitions={eta_bar: as_printed(lambda: eta_c * K * mu / 2)},
    round_symbols=(
        RoundSymbol(G_3, "squared_gradient", "every", _BEFORE_EACH_ROUND, "E||grad F(x_r)||^2"),
        RoundSymbol(
            G_4,
            "participant_excess_loss",
            "every",
            _BEFORE_EACH_ROUND,
            "E 1/m sum_{i in S_r} [F_i(x_r) - F_i(x*)]",
        ),
    ),
    observe=_observe_excess_loss,
    regimes=regimes.THEOREM_5,
    own_run=regimes.OWN_5,
    note=(
        "Checked to the letter, as stated in the main text. The restatement in the appendix lacks "
        "the factor 1/mu^2. The statement does not say for which r the condition on q must hold. "
        "The proof uses it in every round, between (82) and (83). The stored witness meets it in "
        "every round, both in expectation and on every path of the coin tosses."
    ),
)

THEOREM_5_DERIVED = replace(
    THEOREM_5,
    reading="derived",
    bound=_BOUND_5_DERIVED,
    hypotheses=(
        _SMOOTH,
        _STRONGLY_CONVEX,
        _DISSIMILARITY,
        _SERVER_STEP_5,
        STEP_DRIFT_5,
        _COUPLING_5,
        Hypothesis("few client rounds", _Q_CONDITION_81, "(81), from (78) and (80)"),
    ),
    derivation=proof_5.derived(
        _BOUND_5_DERIVED, _Q_CONDITION_81, _SERVER_STEP_5.condition, STEP_DRIFT_5.condition
    ),
    note=(
        "This is what the proof gives. The drift bound in (75) needs eta_c <= 1/(8LK), which the "
        "statement leaves out. Between (80) and (81) there are two slips. First, 4 q eta_c^2 K^2 "
        "is 16 q etabar^2/mu^2, not 4 q etabar^2/mu^2. Second, (L+mu)/(2 L mu) * 2/(L+mu) is 1/(L "
        "mu), not 1/(L+mu), which also has the wrong unit. (61) separates mean and variance, but "
        "omits the factor 2 of the lemma that it cites. With this factor, the noise term doubles, "
        "to 4 q eta_c sigma^2/(mu m). For quadratic clients with additive noise, the step is valid "
        "as printed."
    ),
)


def _rescheduled(setting: Setting, rounds: int, assist_lr: float, ratio: float) -> Setting:
    """Return the setting with R and eta_s changed, and eta_c = ratio * eta_s."""
    algorithm = safari_of(setting)
    changed = replace(algorithm, assist_lr=assist_lr, client_lr=ratio * assist_lr)
    return replace(setting, algorithm=changed, rounds=rounds)


def safari_of(setting: Setting) -> Safari:
    if not isinstance(setting.algorithm, Safari):
        raise ValueError(f"algorithm must be Safari for a corollary, got {setting.algorithm!r}")
    return setting.algorithm


def _three_decades_of_rounds(setting: Setting) -> tuple[int, ...]:
    if setting.rounds < 1000:
        raise ValueError(
            f"rounds must be at least 1000 to read an order off three decades, got {setting.rounds}"
        )
    return tuple(round(setting.rounds * 10 ** (-step / 3)) for step in range(9, -1, -1))


def _three_decades_of_steps(setting: Setting) -> tuple[int, ...]:
    return (1, 10, 100, 200, 500, 1000)


def _corollary_1_rounds(setting: Setting, rounds: int) -> Setting:
    ratio = 2 / safari_of(setting).local_steps
    return _rescheduled(setting, rounds, 1 / math.sqrt(rounds), ratio)


def _corollary_1_rounds_with_speedup(setting: Setting, rounds: int) -> Setting:
    steps = safari_of(setting).local_steps
    size = _participants(setting)
    return _rescheduled(setting, rounds, math.sqrt(size * steps / rounds), 2 / steps)


def _with_local_steps(setting: Setting, steps: int) -> Setting:
    """Change K, and with it the server's noise: sigma_s^2 = sigma^2 / (2 m K)."""
    problem = quadratic_for("for a corollary", setting.problem)
    size = _participants(setting)
    quieter = replace(problem, server_sigma=problem.sigma / math.sqrt(2 * size * steps))
    algorithm = replace(safari_of(setting), local_steps=steps)
    return replace(setting, algorithm=algorithm, problem=quieter)


def _corollary_1_steps(setting: Setting, steps: int) -> Setting:
    return _corollary_1_rounds(_with_local_steps(setting, steps), setting.rounds)


def _corollary_1_steps_with_speedup(setting: Setting, steps: int) -> Setting:
    return _corollary_1_rounds_with_speedup(_with_local_steps(setting, steps), setting.rounds)


def _rarer(setting: Setting, q_now: float) -> Setting:
    return replace(setting, algorithm=replace(safari_of(setting), q=q_now))


def _corollary_1_rounds_rare(setting: Setting, rounds: int) -> Setting:
    """Change R and eta_s, and q = 1/(2 sqrt(R))."""
    return _rarer(_corollary_1_rounds(setting, rounds), 1 / (2 * math.sqrt(rounds)))


def _corollary_1_steps_rare(setting: Setting, steps: int) -> Setting:
    """Change K with eta_s = sqrt(mK/R), and q = 1/(2 sqrt(mKR))."""
    size = _participants(setting)
    faster = _corollary_1_steps_with_speedup(setting, steps)
    return _rarer(faster, 1 / (2 * math.sqrt(size * steps * setting.rounds)))


def _step_of_corollary_1(step: sp.Expr, stated: str, source: str) -> Hypothesis:
    """Return the hypothesis ``eta_s = step`` to nine digits, because roots are not fractions."""
    return Hypothesis(
        "step size of the corollary",
        sp.Le((eta_s / step - 1) ** 2, sp.Rational(1, 10**18)),
        source,
        stated=stated,
    )


PLAIN_STEP = _step_of_corollary_1(1 / sp.sqrt(R), "eta_s = 1/sqrt(R)", "Corollary 1")
FASTER_STEP = _step_of_corollary_1(
    sp.sqrt(m * K / R), "eta_s = sqrt(mK/R)", "the earlier version, and 2 Delta_0/(R eta_s)"
)


def _corollary_2_rounds(setting: Setting, rounds: int) -> Setting:
    """Scale both step sizes by log(R)/R from their values at the setting's own R."""
    algorithm = safari_of(setting)
    scale = (math.log(rounds) / rounds) / (math.log(setting.rounds) / setting.rounds)
    ratio = algorithm.client_lr / algorithm.assist_lr
    return _rescheduled(setting, rounds, scale * algorithm.assist_lr, ratio)


def _corollary_2_rounds_rare(setting: Setting, rounds: int) -> Setting:
    """Change R, both step sizes, and q = log(R)/(2R)."""
    return _rarer(_corollary_2_rounds(setting, rounds), math.log(rounds) / (2 * rounds))


def _slowly_falling_steps(setting: Setting, rounds: int) -> Setting:
    """Scale both step sizes by 1/sqrt(R) from their values at the setting's own R."""
    algorithm = safari_of(setting)
    scale = math.sqrt(setting.rounds / rounds)
    ratio = algorithm.client_lr / algorithm.assist_lr
    return _rescheduled(setting, rounds, scale * algorithm.assist_lr, ratio)


def _three_decades_of_twice_the_rounds(setting: Setting) -> tuple[int, ...]:
    """Return twice the usual R: at 100 rounds, log(R)/R is too large for eta_c <= 1/(16LK)."""
    return tuple(2 * rounds for rounds in _three_decades_of_rounds(setting))


_QUIET_SERVER = Hypothesis(
    "quiet server",
    as_printed(lambda: sp.Le(sigma_s**2, sigma**2 / (m * K))),
    "Corollary 1, constant 1",
)

COROLLARY_1 = RateClaim(
    id="sa-fl/corollary-1",
    title="SAFARI on nonconvex losses: O(1/sqrt(R)), and O(1/sqrt(mKR)) with a quiet server",
    source=f"{_ICML}, Corollary 1",
    theorem=THEOREM_4,
    derivation=proof_rates.corollary_1_printed(THEOREM_4.bound),
    axes=(
        RateAxis(
            R,
            R ** sp.Rational(-1, 2),
            _three_decades_of_rounds,
            _corollary_1_rounds,
            (PLAIN_STEP,),
            families={"constant steps": with_rounds},
        ),
        RateAxis(
            K,
            as_printed(lambda: (m * K) ** sp.Rational(-1, 2)),
            _three_decades_of_steps,
            _corollary_1_steps,
            (PLAIN_STEP, _QUIET_SERVER),
        ),
    ),
    regimes=regimes.COROLLARY_1,
    note=(
        "Checked to the letter: eta_s = 1/sqrt(R), with the hypotheses of Theorem 4 as printed. "
        "The second claim is tested in K, with sigma_s^2 = sigma^2/(2mK). Appendix A.1 says that "
        "the corollary does not hold in arbitrary cases, because the number of server rounds must "
        "be in proportion to that of client rounds. There, A.1 uses the condition on q with eta_s "
        "in place of eta_s^2, and with G_1 and G_2 unchanged. Here the condition is checked at "
        "every R, as printed in Theorem 4."
    ),
    kind=StatementKind.COROLLARY,
)

COROLLARY_1_DERIVED = replace(
    COROLLARY_1,
    reading="derived",
    theorem=THEOREM_4_DERIVED,
    derivation=proof_rates.corollary_1_derived(THEOREM_4_DERIVED.bound),
    axes=(
        RateAxis(
            R,
            R ** sp.Rational(-1, 2),
            _three_decades_of_rounds,
            _corollary_1_rounds_with_speedup,
            (FASTER_STEP,),
            families={"constant steps": with_rounds},
        ),
        RateAxis(
            K,
            as_printed(lambda: (m * K) ** sp.Rational(-1, 2)),
            _three_decades_of_steps,
            _corollary_1_steps_with_speedup,
            (FASTER_STEP, _QUIET_SERVER),
        ),
    ),
    note=(
        "This reading has eta_s = sqrt(mK/R), as in the earlier version, because at eta_s = "
        "1/sqrt(R) the bound's first term, 2 Delta_0/sqrt(R), does not contain mK. It also has "
        "the hypotheses that Theorem 4's proof needs. So (54) must hold at every R, although the "
        "gradients on its right side vanish as R grows."
    ),
)

_MOST_STEP = 10
"""The largest step, in units of log(R)/R. Theta hides this constant, but a condition needs one."""

COROLLARY_2 = RateClaim(
    id="sa-fl/corollary-2",
    title="SAFARI on strongly convex losses: O(1/R) up to logarithms",
    source=f"{_ICML}, Corollary 2",
    theorem=THEOREM_5,
    derivation=proof_rates.corollary_2_printed(THEOREM_5.bound),
    axes=(
        RateAxis(
            R,
            sp.log(R) / R,
            _three_decades_of_rounds,
            _corollary_2_rounds,
            families={
                "constant steps": with_rounds,
                "steps of order 1/sqrt(R)": _slowly_falling_steps,
            },
        ),
    ),
    regimes=regimes.COROLLARY_2,
    kind=StatementKind.COROLLARY,
    note=(
        "Checked to the letter: any step sizes of order log(R)/R or larger qualify, whatever the "
        "constant, with the hypotheses of Theorem 5 as printed. The regimes have step sizes "
        "proportional to log(R)/R. Constant step sizes, and step sizes of order 1/sqrt(R), also "
        "qualify and are tried as well."
    ),
)

COROLLARY_2_DERIVED = replace(
    COROLLARY_2,
    reading="derived",
    theorem=THEOREM_5_DERIVED,
    derivation=proof_rates.corollary_2_derived(THEOREM_5_DERIVED.bound),
    axes=(
        replace(
            COROLLARY_2.axes[0],
            hypotheses=(
                Hypothesis(
                    "large enough step",
                    as_printed(lambda: sp.Ge(eta_bar, sp.log(R) / R)),
                    "(85) and (1-x)^R",
                ),
                Hypothesis(
                    "steps of no larger order",
                    as_printed(lambda: sp.Le(eta_bar, _MOST_STEP * sp.log(R) / R)),
                    "the noise's terms in the bound, of the order of the steps",
                ),
            ),
        ),
    ),
    note=(
        "(1 - etabar)^R is of order 1/R only if etabar >= log(R)/R, that is, with a constant of "
        "at least one; a smaller constant c gives R^(-c). The noise leaves an error of the order "
        "of the step sizes, so these must be Theta(log(R)/R), not Omega(log(R)/R). The 10 in the "
        "upper limit stands for any constant. The other hypotheses are those that Theorem 5's "
        "proof needs."
    ),
)

_MAXIMA = Refutation(
    "The proof needs (54), whose right side consists of sums over the rounds. (55) replaces each "
    "sum by its largest term. That bounds the sums from above, but a lower bound is needed.",
    Weight.GAP,
    "a term 4 q sigma_G^2 in the bound in place of the condition on q, from (51) and (52)",
    "repaired",
    ("long horizon", "other units"),
    ("sa-fl-4.json",),
    answer=(
        "The condition is meant with sums. With the term 4 q sigma_G^2 the bound holds, but it "
        "gives no rate."
    ),
)
_UNIT_OF_D = Refutation(
    "In (81), (L+mu)/(2L mu) times 2/(L+mu) is 1/(L mu). The condition on q, which is derived "
    "from (81), has 1/(L+mu) instead, which does not even have the same unit.",
    Weight.MISPRINT,
    "1/(L mu) in place of 1/(L+mu) in the condition on q, as in (81)",
    "derived",
    ("other units",),
    ("sa-fl-5.json",),
    answer="A slip in the condition; the proof has it right, in (81).",
)


# ------------------------------------------------------------ repairs
# The paper's argument uses the printed conditions on q to absorb 4 q sigma_G^2, the term from the
# clients' heterogeneity. Over many rounds no such condition can absorb it: the gradients on its
# right-hand side vanish (Theorem 4) or stay below it (Theorem 5). A repair drops the condition and
# keeps the term in the bound, so that the repaired statement applies whenever step sizes are small.
# `FAULTS` keeps the printed forms and repairs one fault at a time, to find out which fault a
# setting shows.

STEP_REPAIRED_5 = Hypothesis(
    "small client step",
    as_printed(lambda: sp.Le(eta_c, 1 / (16 * L * K))),
    "local drift, (75), and (78)",
)


def _theorem_4(
    printed: Theorem,
    reduction: Reduction,
    *,
    step: Hypothesis = STEP_PRINTED_4,
    power: int = 2,
    quantity: BoundedQuantity = THEOREM_4.quantity,
    price_in_bound: bool = False,
) -> Theorem:
    """Return Theorem 4 with this power of eta_s in the condition on q, or without the condition."""
    smooth, dissimilarity, _, coupling, few = (h for h in printed.hypotheses if not h.is_sign)
    if price_in_bound:
        return replace(
            printed,
            quantity=quantity,
            bound=as_printed(lambda: printed.bound + 4 * q * sigma_G**2),
            hypotheses=(smooth, dissimilarity, step, coupling),
            round_symbols=(),
        )
    clients = 4 * sigma_G**2 - 4 * G_2 * (1 / (2 * K**2) - 2 * L * eta_s**power / K**2)
    condition = sp.Le(q, 1 / (clients / ((1 - L * eta_s) * G_1) + 1))
    return replace(
        printed,
        quantity=quantity,
        hypotheses=(smooth, dissimilarity, step, coupling, replace(few, condition=condition)),
        round_symbols=gradient_symbols(reduction, RoundRange(0, -1)),
    )


def _theorem_5(
    *,
    clients: int = 4,
    server: sp.Expr = 1 / (L + mu),
    step: Hypothesis | None = None,
    price_in_bound: bool = False,
    noise: int = 2,
) -> Theorem:
    """Return Theorem 5 with the given factors in the condition on q, or without the condition."""
    *others, coupling, few = (h for h in THEOREM_5.hypotheses if not h.is_sign)
    steps = () if step is None else (step,)
    bound = as_printed(lambda: bound_5(noise))
    if price_in_bound:
        return replace(
            THEOREM_5,
            bound=as_printed(lambda: bound + 4 * q * sigma_G**2 / mu**2),
            hypotheses=(*others, *steps, coupling),
            round_symbols=(),
        )
    numerator = clients * eta_bar / mu**2 * DRIFT_5 * G_3 - 4 / mu * G_4
    denominator = (server - (L + mu) ** 2 * eta_bar / (4 * L**2 * mu**2)) * G_3
    condition = sp.Le(q, 1 / (1 + numerator / denominator))
    return replace(
        THEOREM_5,
        bound=bound,
        hypotheses=(*others, *steps, coupling, replace(few, condition=condition)),
    )


_STEP = Mend(
    "eta_c <= 1/(2 sqrt(30) LK) in place of 1/(4 sqrt(30LK))",
    "(45)",
    {"step": STEP_DERIVED_4},
    Weight.MISPRINT,
)
_POWER = Mend(
    "eta_s in place of eta_s^2 in the condition on q", "(55)", {"power": 1}, Weight.MISPRINT
)
_ROUNDS = Mend(
    "the sum over r = 0 .. R-1 in place of 1 .. R",
    "(51)",
    {"quantity": THEOREM_4_DERIVED.quantity},
    Weight.MISPRINT,
)
_MINIMA = Mend(
    "minima in place of maxima in G_1 and G_2", "(54), (55)", {"reduction": "min"}, Weight.GAP
)
_PRICE_4 = Mend(
    "a term 4 q sigma_G^2 in the bound in place of the condition on q",
    "(52), without (54)",
    {"price_in_bound": True},
    Weight.GAP,
)


def _maxima_of_4(reduction: Reduction = "max", **changes: Any) -> Theorem:
    return _theorem_4(THEOREM_4, reduction, **changes)


_minima_of_submission_4 = partial(_theorem_4, SUBMISSION_4, "min")

FAULTS: Mapping[str, Repair[Theorem]] = {
    "sa-fl/4": Repair((_STEP, _POWER, _ROUNDS, _MINIMA), _maxima_of_4),
    "sa-fl-submission/4": Repair((_STEP, _POWER, _ROUNDS), _minima_of_submission_4),
    "sa-fl/5": Repair(
        (
            Mend(
                "16 etabar/mu^2 in place of 4 etabar/mu^2 in the condition on q",
                "(80)",
                {"clients": 16},
                Weight.MISPRINT,
            ),
            Mend(
                "1/(L mu) in place of 1/(L+mu) in the condition on q",
                "(81)",
                {"server": 1 / (L * mu)},
                Weight.MISPRINT,
            ),
            Mend(
                "eta_c <= 1/(8LK) as a further hypothesis",
                "(75)",
                {"step": STEP_DRIFT_5},
                Weight.MISSING_HYPOTHESIS,
            ),
        ),
        _theorem_5,
    ),
}
"""Each fault of a printed statement by itself; the form of its condition on q is kept."""

REPAIR_4 = Repair(
    (_STEP, _ROUNDS, _PRICE_4),
    _maxima_of_4,
    proof_4.repaired(THEOREM_4.bound + 4 * q * sigma_G**2, STEP_DERIVED_4.condition),
)
REPAIR_SUBMISSION_4 = Repair(
    # With the limit on the step repaired, no fault is known in its condition, which uses minima.
    (_STEP, _ROUNDS, replace(_PRICE_4, weight=None)),
    _minima_of_submission_4,
    proof_4.repaired(SUBMISSION_4.bound + 4 * q * sigma_G**2, STEP_DERIVED_4.condition, sigma),
)
_STEP_5 = Mend(
    "eta_c <= 1/(16LK) as a further hypothesis",
    "(75), (78)",
    {"step": STEP_REPAIRED_5},
    Weight.MISSING_HYPOTHESIS,
)
_NOISE_5 = Mend(
    "4 q eta_c sigma^2/(mu m) in place of 2 q eta_c sigma^2/(mu m) in the bound",
    "(61) with the cited lemma's factor 2",
    {"noise": 4},
    Weight.GAP,
)
_PRICE_5 = Mend(
    "a term 4 q sigma_G^2/mu^2 in the bound in place of the condition on q, which has 1/(L+mu) "
    "instead of 1/(L mu)",
    "(78), (81)",
    {"price_in_bound": True},
    Weight.MISPRINT,
)
_BOUND_5_REPAIRED = _theorem_5(noise=4, price_in_bound=True).bound
REPAIR_5 = Repair(
    (_STEP_5, _NOISE_5, _PRICE_5),
    _theorem_5,
    proof_5.repaired(
        _BOUND_5_REPAIRED,
        next(h.condition for h in THEOREM_5.hypotheses if h.name == "small server step"),
        STEP_REPAIRED_5.condition,
    ),
)

_REPAIRED_4 = REPAIR_4.theorem()
_REPAIRED_5 = replace(REPAIR_5.theorem(), own_run=OWN_5_REPAIRED)

COROLLARY_1_REPAIRED = replace(
    COROLLARY_1,
    reading="repaired",
    theorem=_REPAIRED_4,
    derivation=proof_rates.corollary_1_repaired(_REPAIRED_4.bound),
    axes=(
        replace(
            COROLLARY_1.axes[0],
            schedule=_corollary_1_rounds_rare,
            hypotheses=(
                PLAIN_STEP,
                Hypothesis("few client rounds", sp.Le(q, 1 / sp.sqrt(R)), "4 q sigma_G^2, (52)"),
            ),
        ),
        replace(
            COROLLARY_1.axes[1],
            schedule=_corollary_1_steps_rare,
            hypotheses=(
                FASTER_STEP,
                _QUIET_SERVER,
                Hypothesis(
                    "few client rounds",
                    as_printed(lambda: sp.Le(q, 1 / sp.sqrt(m * K * R))),
                    "4 q sigma_G^2, (52)",
                ),
            ),
        ),
    ),
    note=(
        "With 4 q sigma_G^2 in the bound, q must fall as fast as the claimed order. For the first "
        "claim, this means q <= 1/sqrt(R) with eta_s = 1/sqrt(R). For the second, it means q <= "
        "1/sqrt(mKR) with eta_s = sqrt(mK/R), the step size that the bound's first term needs. In "
        "the regimes, q is half the largest value allowed."
    ),
)

COROLLARY_2_REPAIRED = replace(
    COROLLARY_2,
    reading="repaired",
    theorem=_REPAIRED_5,
    derivation=proof_rates.corollary_2_repaired(_REPAIRED_5.bound),
    axes=(
        replace(
            COROLLARY_2.axes[0],
            grid=_three_decades_of_twice_the_rounds,
            schedule=_corollary_2_rounds_rare,
            hypotheses=(
                *COROLLARY_2_DERIVED.axes[0].hypotheses,
                Hypothesis(
                    "few client rounds",
                    as_printed(lambda: sp.Le(q, sp.log(R) / R)),
                    "4 q sigma_G^2/mu^2, (78)",
                ),
            ),
        ),
    ),
    note=(
        "With 4 q sigma_G^2/mu^2 in the bound, q must fall as fast as the claimed order, so q <= "
        "log(R)/R. As in the derived reading, log(R)/R <= etabar <= 10 log(R)/R, where 10 stands "
        "for any constant. In the regimes, q is half the largest value "
        "allowed."
    ),
)


STATEMENTS: tuple[Statement, ...] = (
    SUBMISSION_4,
    SUBMISSION_4_DERIVED,
    replace(THEOREM_4, refutations=(_MAXIMA,)),
    THEOREM_4_DERIVED,
    replace(THEOREM_5, refutations=(_UNIT_OF_D,)),
    THEOREM_5_DERIVED,
    replace(
        COROLLARY_1,
        refutations=(
            replace(
                _MAXIMA,
                reading="repaired",
                regimes=("biased minority excluded",),
                certificates=(),
                natural="biased minority excluded",
                answer=(
                    "A.1 says that the corollary does not hold in arbitrary cases; there q must "
                    "fall like 1/sqrt(R)."
                ),
                change=("q <= 1/sqrt(R), as the term 4 q sigma_G^2 requires"),
            ),
        ),
    ),
    COROLLARY_1_DERIVED,
    replace(
        COROLLARY_2,
        refutations=(
            Refutation(
                "Constant step sizes are Omega(log(R)/R) too. With constant steps, the noise "
                "leaves an error that does not fall with R, because the last terms of Theorem 5's "
                "bound are proportional to the step sizes.",
                Weight.MISSING_HYPOTHESIS,
                "Theta(log(R)/R) in place of Omega(log(R)/R), with a constant of at least one",
                "repaired",
                ("unbiased sampling, L = 20",),
                natural="unbiased sampling, L = 20",
                answer="Theta is meant, as is usual after such a bound.",
            ),
            Refutation(
                "Theorem 5's condition on q should have 1/(L mu) in place of 1/(L+mu), as in "
                "(81). With that change, no constant q meets the condition at every R if the "
                "participants' optimum differs from that of all clients. So the corollary then "
                "says nothing about incomplete participation.",
                Weight.GAP,
                "q <= log(R)/R in place of the condition on q",
                "repaired",
                ("minority excluded, L = 20",),
                natural="minority excluded, L = 20",
                answer="The corollary holds for unbiased sampling; otherwise q must fall like "
                "log(R)/R.",
            ),
        ),
    ),
    COROLLARY_2_DERIVED,
    REPAIR_SUBMISSION_4.theorem(),
    _REPAIRED_4,
    _REPAIRED_5,
    COROLLARY_1_REPAIRED,
    COROLLARY_2_REPAIRED,
)
