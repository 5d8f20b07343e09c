"""CA-Fed: Lemmas 1 to 3 of the proof of Theorem 2, and consequences of Lemma 1 used there.

The lemmas are about the iterates w_t, not about their average. Sums over t run over the rounds
t = 1 .. T, with w_1 = w_{0,0}. On the right-hand side of Lemma 2, they run over all t >= 1, as in
Theorem 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from fltheory.claims.along_run import Theorem
from fltheory.claims.at_point import PointClaim
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.engines.affine.numbers import raw_number
from fltheory.engines.affine.symbolic.forms import NotAffineError
from fltheory.engines.enclosure.enclosed import NotEnclosedError
from fltheory.engines.enclosure.exact_setting import (
    WideningNumber,
    exact_numbers,
    largest_weighted_square,
    product,
    widened,
)
from fltheory.engines.observables import Observable, PresentExcessLoss
from fltheory.engines.setting import without_idle_projection
from fltheory.exact_or_float import ROUNDINGS, is_exact, largest, number, with_rounding
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, PointQuantity, RoundRange
from fltheory.grammar.refutation import Refutation, StatementKind, Weight
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import GRADIENT, LENGTH, LOSS, PURE, STEP
from fltheory.numbers.of_setting import view_of
from fltheory.numbers.projected_averaging import ProjectedAveraging
from fltheory.problems.ball import largest_affine_norm
from fltheory.theorems.ca_fed import regimes
from fltheory.theorems.ca_fed.statements import (
    CONVEX,
    D_B,
    F_B,
    INTERIOR,
    J_T,
    PAPER,
    S_1,
    S_2,
    S_2T,
    SMOOTH,
    D,
    E,
    G,
    Gamma,
    L,
    N_q,
    Q,
    eta_1,
    eta_s,
    pi_q,
    q,
    r_0,
    rho,
    sigma,
    tv_start,
)
from fltheory.validation import FloatArray

_FRACTIONS_KEPT = 3


_NOT_NATURAL = (
    "none found in 20,000 settings with two clients and 100 rounds, from any state, with "
    "probabilities from 0.05 to 0.95; the largest ratio is {}"
)


def of_iterates(setting: Setting) -> Setting:
    """Return the setting, or raise ValueError if it is not CA-Fed's or its model is an average."""
    if view_of(setting).averaging.averages:
        raise ValueError(
            "algorithm must be the Projected(...) inside AveragedIterate, which CA-Fed's lemmas "
            f"are about, got {setting.algorithm!r}"
        )
    return setting


# --- the iterates ------------------------------------------------------------------------


def _places(of: ProjectedAveraging) -> tuple[Any, Any, Any]:
    """Return the chain: clients present in each state, initial distribution and transitions."""
    law = of.participation.law()
    numbers = exact_numbers if is_exact(of.x0) else _floats
    states = range(of.participation.n_states or 0)
    places = [(s, chance, mask) for s in states for chance, mask in law.who(s)]
    first, rows = dict(law.first), {s: dict(law.following(s)) for s in states}
    start = numbers([first.get(s, 0) * chance for s, chance, _ in places])
    onward = [[rows[s].get(then, 0) * chance for then, chance, _ in places] for s, _, _ in places]
    return np.array([mask for _, _, mask in places]), start, numbers(onward)


def _floats(values: Any) -> FloatArray:
    return np.array(values, dtype=np.float64)


def _moments(of: ProjectedAveraging, masks: Any, start: Any, onward: Any) -> Iterator[Any]:
    """Yield ``E[z z' 1{state}]`` of ``z = (w_t - x*, 1)``, (M, d + 1, d + 1), for t = 1 .. T."""
    problem, d = of.problem, of.problem.dim
    z = np.concatenate([of.x0 - problem.x_star, of.x0[:1] * 0 + 1])
    moment = start[:, None, None] * np.outer(z, z)
    identity = np.eye(d, dtype=int)
    for t in range(1, of.rounds + 1):
        yield moment
        eta, server = of.steps.at(t), of.fedavg.server_lr
        slopes, noises = [], []
        for weight, hessian, noise in zip(
            of.q, problem.client_hessians, problem.client_sigmas, strict=True
        ):
            step, power, squares = identity - eta * hessian, identity, 0 * identity
            for _ in range(of.fedavg.local_steps):
                squares, power = squares + power @ power, power @ step
            slopes.append(server * weight * (power - identity))
            noises.append((server * weight * eta * noise) ** 2 / d * squares)
        pushes = np.matmul(np.array(slopes), (problem.x_star - problem.optima)[:, :, None])
        after = []
        for one, there in zip(moment, masks, strict=True):
            whole = one * 0
            whole[:d, :d] = identity + _of_those(slopes, there)
            whole[:d, d:] = _of_those(pushes, there)
            whole[d, d] = whole[d, d] + 1
            moved = product(whole, one, whole.T)
            moved[:d, :d] = moved[:d, :d] + one[d, d] * _of_those(noises, there)
            after.append(moved)
        reached = product(onward.T, np.array(after).reshape(len(masks), -1))
        moment = widened(reached.reshape(moment.shape), t, _FRACTIONS_KEPT)


def _of_those(each: Any, there: Any) -> Any:
    return sum((one for one, is_in in zip(each, there, strict=True) if is_in), 0 * each[0])


def _lagged_losses(setting: Setting) -> tuple[Any, float]:
    """Return ``sum_t eta_t E[sum_{A_t} q_k (F_k(w_{t-J_t}) - F_k(w_t))]`` over t = 1 .. T.

    Given the state in round t - J_t, the distribution of the state in round t follows from J_t
    transitions, whatever the model is.
    """
    of = view_of(setting).averaging
    try:
        without_idle_projection(setting, of.problem)
    except NotAffineError:
        return math.nan, 0.0
    masks, start, onward = _places(of)
    problem, d = of.problem, of.problem.dim
    forms = []
    for hessian, optimum in zip(problem.client_hessians, problem.optima, strict=True):
        off = np.concatenate([np.eye(d, dtype=int), (problem.x_star - optimum)[:, None]], axis=1)
        forms.append(off.T @ hessian @ off / 2)
    weighed = [weight * form for weight, form in zip(of.q, forms, strict=True)]
    lagged = [np.array([_of_those(weighed, there).ravel() for there in masks])]
    for _ in range(max(of.delays)):
        lagged.append(product(onward, lagged[-1]))
    seen: list[Any] = []
    total, size = of.x0[0] * 0, 0.0
    for t, moment in enumerate(_moments(of, masks, start, onward), start=1):
        seen.append(moment.reshape(len(masks), -1))
        delay = of.delays[t - 1]
        then, now = ((seen[t - 1 - j] * lagged[j]).sum() for j in (delay, 0))
        total = total + of.steps.at(t) * (then - now)
        size += 0.0 if is_exact(total) else of.steps.at(t) * float(abs(then) + abs(now))
    return number(total), ROUNDINGS * of.rounds * len(masks) * size


def _present_excess(setting: Setting) -> Sequence[Observable]:
    of = view_of(setting).averaging
    return (PresentExcessLoss(tuple(of.q.tolist()), tuple(of.p.tolist())),)


def _steps(setting: Setting) -> Any:
    of = view_of(setting).averaging
    return np.array([of.steps.at(t) for t in range(1, of.rounds + 1)])


def _proved_steps(setting: Setting) -> Any:
    """Return ``b_t = eta_t (1 - L eta_t (EQ + 1)) (1 - L eta_t)``."""
    of = view_of(setting).averaging
    eta, L, E = _steps(setting), of.problem.L, of.fedavg.local_steps
    return eta * (1 - L * eta * (E * of.total + 1)) * (1 - L * eta)


def _largest_rise(setting: Setting) -> Any:
    eta = _steps(setting)
    return largest([0 * eta[0], *(eta[1:] - eta[:-1])])


_TEXTS = (
    F_B,
    q,
    *(
        symbol(name, meaning, unit, real=True)
        for name, meaning, unit in (
            ("A_t", "clients present in round t = 1 .. T", PURE),
            ("w_t", "model before round t, where w_1 = w_{0,0}", LENGTH),
            ("w_B", "w_B*, the minimiser of F_B", LENGTH),
            ("w_j", "model of a client after j of the E local steps from w", LENGTH),
            ("F_k", "loss of client k", LOSS),
            ("W", "ball onto which models are projected", LENGTH),
            ("xi", "the sample of a stochastic gradient", PURE),
            ("eta_t", "client_lr in round t", STEP),
            ("eta_d", "client_lr in round d", STEP),
            ("b_t", "eta_t (1 - L eta_t (EQ + 1)) (1 - L eta_t)", STEP),
            ("J_t", "delay of round t, as below (12), at most t - 1", PURE),
        )
    ),
)

# --- Lemma 1 -------------------------------------------------------------------------------------


def _largest_second_moment(setting: Setting) -> tuple[Any, float]:
    """Return the largest ``E||grad F_k(w, xi)||^2`` over clients and w in W."""
    of = view_of(setting).averaging
    squares = of.problem.largest_gradients_on(of.ball) ** 2 + of.problem.client_sigmas**2
    value = largest(list(squares))
    return with_rounding(value, of.problem.dim)


def _largest_local_moment(setting: Setting) -> tuple[Any, float]:
    """Return the largest second moment of a gradient in the first round, over all starts w in W.

    After j local steps, with A = I - eta_1 H, the gradient is ``H A^j (w - c)`` plus noise of
    covariance ``eta_1^2 sigma_k^2/d sum_{i<j} H A^{2i} H``.
    """
    of = view_of(setting).averaging
    problem, d, eta = of.problem, of.problem.dim, of.steps.at(1)
    found = []
    for hessian, optimum, noise in zip(
        problem.client_hessians, problem.optima, problem.client_sigmas, strict=True
    ):
        step, pull, offset = np.eye(d, dtype=int) - eta * hessian, hessian, of.ball.centre - optimum
        variance = noise**2
        for _ in range(of.fedavg.local_steps):
            found.append(_largest_square(pull, offset, of.ball.radius) + variance)
            variance = variance + (eta * noise) ** 2 / d * (pull * pull).sum()
            pull = pull @ step
    value = number(largest(found))
    return with_rounding(value, d * of.fedavg.local_steps)


def _largest_square(matrix: Any, offset: Any, radius: Any) -> Any:
    """Return the largest ``||matrix (y + offset)||^2`` over ``||y|| <= radius``."""
    if not is_exact(matrix):
        return largest_affine_norm(matrix, matrix @ offset, radius) ** 2
    across = matrix * (1 - np.eye(len(offset), dtype=int))
    if any(entry != 0 for entry in across.ravel()):
        raise NotEnclosedError("Hessians are not diagonal")
    squares = [raw_number(entry) ** 2 for entry in np.diagonal(matrix)]
    offsets = [raw_number(entry) for entry in offset]
    return WideningNumber(largest_weighted_square(squares, offsets, raw_number(radius)))


LEMMA_1 = PointClaim(
    id="ca-fed/lemma-1",
    title="Stochastic gradients on W have bounded second moments",
    source=f"{PAPER}, Lemma 1, (7)",
    quantity=PointQuantity(
        _largest_second_moment,
        "sup over W and k of E||grad F_k(w, xi)||^2",
        GRADIENT**2,
        r"\sup_{w\in W,k}\mathbb E\|\nabla F_k(w,\xi)\|^2",
    ),
    bound=D**2 + sigma**2,
    hypotheses=(INTERIOR, SMOOTH, CONVEX),
    domain=of_iterates,
    symbols=_TEXTS,
    regimes=regimes.LEMMA_1,
    kind=StatementKind.LEMMA,
    note=(
        "Checked to the letter, with D the supremum in (6) and G^2 = D^2 + max_k sigma_k^2 from "
        "the proof. (6) and (8) say that D and H are finite, which is true on a ball."
    ),
)

LOCAL_GRADIENTS = replace(
    LEMMA_1,
    id="ca-fed/local-gradients",
    title="(7) also holds at the models between local steps",
    source=f"{PAPER}, Appendix B2, where (2) of Lemma 2's proof and (22) use (7)",
    quantity=PointQuantity(
        _largest_local_moment,
        "sup over w in W, j < E and k of E||grad F_k(w_j, xi)||^2",
        GRADIENT**2,
        r"\sup_{w\in W,j<E,k}\mathbb E\|\nabla F_k(w_j,\xi)\|^2",
    ),
    regimes=regimes.LOCAL_GRADIENTS,
    kind=StatementKind.STEP,
    note=(
        "Checked to the letter, with the step size of the first round and from every w in W. (7) "
        "is stated for w in W but used at w_{t,j}^k, which noise may drive out of W."
    ),
)
LOCAL_GRADIENTS_DERIVED = replace(
    LOCAL_GRADIENTS,
    reading="derived",
    hypotheses=(
        *LOCAL_GRADIENTS.hypotheses,
        Hypothesis("steps of at most 1/L", sp.Le(eta_1, 1 / L), "gradient descent"),
        Hypothesis(
            "no noise between local steps",
            as_printed(lambda: sp.Eq((E - 1) * sigma, 0, evaluate=False)),
            "(7) at w_{t,j}^k",
        ),
    ),
    note=(
        "Exact gradient steps of at most 1/L do not increase the norm of a convex, smooth "
        "client's gradient. So (7) then holds at local models, whether they are in W or not."
    ),
)

# --- Lemma 2 -------------------------------------------------------------------------------------

_CONVEX = Hypothesis("convex clients", sp.Ge(CONVEX.condition.lhs, 0, evaluate=False), "Lemma 2")
_STARTS_IN_W = Hypothesis("initial model in W", sp.Le(r_0, rho), "Section II")
_ONE_STEP = Hypothesis("no server step size", sp.Eq(eta_s, 1), "(20)")
_SMALL = Hypothesis("small steps", sp.Le(eta_1, 1 / (2 * L * (E * Q + 1))), "Lemma 2")
_STATIONARY = Hypothesis("stationary start", sp.Eq(tv_start, 0), "E 1(k in A_t) = pi_k")
_SHORT, _QUIET = LOCAL_GRADIENTS_DERIVED.hypotheses[-2:]

B_1 = symbol(
    "B_1",
    "sum over t = 1 .. T of b_t = eta_t (1 - L eta_t (EQ + 1)) (1 - L eta_t)",
    STEP,
    lambda setting: _proved_steps(setting).sum(),
    positive=True,
)

LEMMA_2 = Theorem(
    id="ca-fed/lemma-2",
    title="Summed over rounds, the participants' losses exceed those at w_B* by little",
    source=f"{PAPER}, Lemma 2",
    quantity=BoundedQuantity(
        "present_excess_loss",
        "mean",
        RoundRange(0, -1),
        "1/S_1 sum over t of eta_t E[sum over A_t of q_k (F_k(w_t) - F_k(w_B*))]",
        r"\frac1{S_1}\sum_{t=1}^T\eta_t\mathbb E[\sum_{k\in A_t}q_k(F_k(w_t)-F_k(w_B^*))]",
        LOSS,
        weights=_steps,
    ),
    bound=as_printed(
        lambda: (
            (
                2 / E * D_B**2
                + 2 * N_q * S_2
                + sp.Rational(2, 3) * pi_q * (E - 1) * (2 * E - 1) * G**2 * S_2
                + 2 * L * (E * Q + 2) * pi_q * Gamma * S_2
            )
            / S_1
        )
    ),
    hypotheses=(INTERIOR, SMOOTH, _CONVEX, _STARTS_IN_W, _ONE_STEP, _SMALL),
    domain=of_iterates,
    symbols=_TEXTS,
    observe=_present_excess,
    regimes=regimes.LEMMA_2,
    kind=StatementKind.LEMMA,
    note=(
        "Checked to the letter, divided by S_1. The sum on the left is over the rounds of a run, "
        "and the sums on the right are over all t. Three conditions are taken as given: "
        "Assumption 2, w_{0,0} in W (as (20) projects), and a Markov chain of availability. The "
        "term 2L(EQ+2) Gamma is half of what the steps of the proof give with eta_t/2, and half "
        "of the term in (12)."
    ),
)
LEMMA_2_DERIVED = replace(
    LEMMA_2,
    reading="derived",
    quantity=replace(
        LEMMA_2.quantity,
        text="1/B_1 sum over t of b_t E[sum over A_t of q_k (F_k(w_t) - F_k(w_B*))]",
        latex=(r"\frac1{B_1}\sum_{t=1}^Tb_t\mathbb E[\sum_{k\in A_t}q_k(F_k(w_t)-F_k(w_B^*))]"),
        weights=_proved_steps,
    ),
    bound=as_printed(
        lambda: (
            (
                D_B**2 / (2 * E)
                + N_q * S_2T / 2
                + sp.Rational(1, 6) * pi_q * (E - 1) * (2 * E - 1) * G**2 * S_2T
                + L * (E * Q + 2) * pi_q * Gamma * S_2T
            )
            / B_1
        )
    ),
    hypotheses=(*LEMMA_2.hypotheses, _STATIONARY, _QUIET),
    note=(
        "This is what the proof gives before it replaces the weights b_t by eta_t/2 in front of a "
        "sum that may be negative. The weights b_t are between eta_t/4 and eta_t. Gamma is "
        "correct even though the losses are evaluated at w_B*, provided that the chain starts in "
        "its stationary distribution."
    ),
)

# --- Lemma 3 -------------------------------------------------------------------------------------

rise = symbol("r_eta", "the largest eta_{t+1} - eta_t of the run", STEP, _largest_rise, real=True)
_FALLING = Hypothesis("steps that do not increase", sp.Le(rise, 0), "(e) of Lemma 3's proof")

LEMMA_3 = PointClaim(
    id="ca-fed/lemma-3",
    title="The decrease of the present clients' losses over J_t rounds, summed over rounds",
    source=f"{PAPER}, Lemma 3",
    quantity=PointQuantity(
        _lagged_losses,
        "sum over t of eta_t E[sum over A_t of q_k (F_k(w_{t-J_t}) - F_k(w_t))]",
        STEP * LOSS,
        r"\sum_{t=1}^T\eta_t\mathbb E[\sum_{k\in A_t}q_k(F_k(w_{t-J_t})-F_k(w_t))]",
    ),
    bound=as_printed(lambda: E * D * G * Q * J_T * pi_q),
    hypotheses=(INTERIOR, SMOOTH, replace(_CONVEX, source="Lemma 3"), _STARTS_IN_W, _ONE_STEP),
    domain=of_iterates,
    symbols=_TEXTS,
    regimes=regimes.LEMMA_3,
    kind=StatementKind.LEMMA,
    note=(
        "Checked to the letter, with both sums taken over the rounds of a run. J_t is computed "
        "from the chain's own C_P and T_P and is at most t - 1; the proof uses nothing else about "
        "J_t. Only exact gradients are checked, because with noise the projection may have an "
        "effect."
    ),
)
LEMMA_3_DERIVED = replace(
    LEMMA_3,
    reading="derived",
    hypotheses=(
        *LEMMA_3.hypotheses,
        _STATIONARY,
        _FALLING,
        LOCAL_GRADIENTS_DERIVED.hypotheses[-2],
        _QUIET,
    ),
    note=(
        "This reading adds the conditions that the proof uses: the chain is stationary in every "
        "round, step sizes do not increase, and (7) is true at local models."
    ),
)


def _delayed_steps(setting: Setting) -> tuple[Any, float]:
    """Return ``1/2 sum_t sum_{d=t-J_t}^{t-1} (eta_t^2 + eta_d^2)``, t = 1 .. T."""
    of = view_of(setting).averaging
    squares = _steps(setting) ** 2
    total = 0 * squares[0]
    for t, delay in enumerate(of.delays):
        total = total + (delay * squares[t] + squares[t - delay : t].sum()) / 2
    return with_rounding(number(total), of.rounds)


FALLING_STEPS = PointClaim(
    id="ca-fed/falling-steps",
    title="The step size of a round is at most that of J_t rounds earlier",
    source=f"{PAPER}, (e) of Lemma 3's proof",
    quantity=PointQuantity(
        _delayed_steps,
        "1/2 sum over t and d = t - J_t .. t - 1 of eta_t^2 + eta_d^2",
        STEP**2,
        r"\frac12\sum_{t=1}^T\sum_{d=t-J_t}^{t-1}(\eta_t^2+\eta_d^2)",
    ),
    bound=J_T,
    hypotheses=(INTERIOR, _STARTS_IN_W),
    domain=of_iterates,
    symbols=_TEXTS,
    regimes=regimes.FALLING_STEPS,
    kind=StatementKind.STEP,
    note=(
        "Checked to the letter: '(e) uses eta_t < eta_d <= eta_{t-J_t}', which (11) does not "
        "require. The sums are over the rounds of a run."
    ),
)
FALLING_STEPS_DERIVED = replace(
    FALLING_STEPS,
    reading="derived",
    hypotheses=(*FALLING_STEPS.hypotheses, _FALLING),
    note="This reading adds the hypothesis that (e) needs. The step sizes need not fall strictly.",
)

STATEMENTS: tuple[Statement, ...] = (
    LEMMA_1,
    replace(
        LOCAL_GRADIENTS,
        refutations=(
            Refutation(
                "(7) is shown only for w in W. The noise of a local step can increase the "
                "norm of the next gradient by more than the step itself reduces it.",
                Weight.MISSING_HYPOTHESIS,
                "local steps without noise, or a larger G",
                "derived",
                ("noise outweighs gradients",),
                natural="noise outweighs gradients",
                answer="G can be read as a bound that also covers the gradients along local steps.",
            ),
        ),
    ),
    LOCAL_GRADIENTS_DERIVED,
    replace(
        LEMMA_2,
        refutations=(
            Refutation(
                "The sums of pi_k q_k on the right are meant as means over A_t. From the first "
                "round on, sums and means are equal only if availability is a chain that starts "
                "in its stationary distribution. The lemma requires neither such a chain nor such "
                "a start.",
                Weight.MISSING_HYPOTHESIS,
                "a chain that starts in its stationary distribution",
                "derived",
                ("a rare client first",),
                natural=_NOT_NATURAL.format(0.19),
                answer=(
                    "Availability is meant to be stationary; the effect of any other start dies "
                    "out."
                ),
            ),
        ),
    ),
    LEMMA_2_DERIVED,
    replace(
        LEMMA_3,
        refutations=(
            Refutation(
                "(e) writes sum_k pi_k q_k for the mean of the sum over A_t of q_k. From the "
                "first round on, the two are equal only if the chain starts in its stationary "
                "distribution.",
                Weight.MISSING_HYPOTHESIS,
                "a stationary start",
                "derived",
                ("a rare client stays",),
                natural=_NOT_NATURAL.format(0.35),
                answer=(
                    "Availability is meant to be stationary; the effect of any other start dies "
                    "out."
                ),
            ),
        ),
    ),
    LEMMA_3_DERIVED,
    replace(
        FALLING_STEPS,
        refutations=(
            Refutation(
                "(11) allows step sizes that rise at first. Then eta_{t-J_t} is the smallest of "
                "all step sizes in (e), not the largest.",
                Weight.MISSING_HYPOTHESIS,
                "step sizes that do not increase",
                "derived",
                ("warm-up",),
                natural="warm-up",
                answer="Step sizes are meant to fall, as is usual under (11).",
            ),
        ),
    ),
    FALLING_STEPS_DERIVED,
)
