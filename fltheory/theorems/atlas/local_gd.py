"""Khaled, Mishchenko and Richtarik, "First Analysis of Local GD on Heterogeneous Data" (2019).

Conventions
-----------
A round is one gradient step of every client, T is `Setting.rounds`, and M is the number of clients.
Algorithm 1 averages in the step *from* t = t_p, p = 1, 2, .., so that the models are equal at t_p +
1; the analysis starts each epoch at t_p with equal models. The printed readings run Algorithm 1 as
printed, the derived ones average one step earlier. ``t_p = p H``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from fltheory.algorithms import AveragedIterate, Constant, LocalSgd
from fltheory.claims.along_run import Theorem
from fltheory.claims.at_point import PointClaim
from fltheory.claims.statement import Statement
from fltheory.derivations.derivation import Derivation, Equal, Implied, Step
from fltheory.engines import Setting
from fltheory.exact_or_float import largest, number, root, with_rounding
from fltheory.grammar.family import Family, Parameter
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, PointQuantity, RoundRange
from fltheory.grammar.refutation import Refutation, StatementKind, Weight
from fltheory.grammar.regime import JUST_BELOW, OwnRun, Regime
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LENGTH, LOSS, PURE, STEP
from fltheory.numbers.of_setting import value_in
from fltheory.participation import UniformSubset
from fltheory.theorems.atlas.client_models import (
    ClientModels,
    client_models,
    clients_in_the_plane,
    first_average,
    local_sgd,
)

_PAPER = "Khaled, Mishchenko and Richtarik (2019)"


def _step(setting: Setting) -> Any:
    return local_sgd(setting).step_sizes.at(1)


def _is_plain(setting: Setting) -> int:
    problem: Any = setting.problem
    constant = isinstance(local_sgd(setting).step_sizes, Constant)
    return int(constant and (problem.alpha == problem.alpha[0]).all())


@dataclass(frozen=True)
class _Worst:
    """The step or epoch at which an inequality is closest to failing; ties go to the first."""

    margins: Callable[[ClientModels], list[float]]

    def __call__(self, setting: Setting) -> int:
        return int(np.argmax(self.margins(client_models(setting))))


def _lemma_1_margins(models: ClientModels) -> list[float]:
    """Return left-hand side minus right-hand side of (4) for t = 0 .. T-1."""
    lr, size = float(_step(models.setting)), float(models.setting.problem.L)
    return [
        float(models.squared_distance(t + 1) - models.squared_distance(t))
        - lr * size * (1 + 2 * lr * size) * float(models.spread(t))
        + 2 * lr * (1 - 2 * lr * size) * float(models.excess_loss(t))
        for t in range(models.setting.rounds)
    ]


def _epochs(models: ClientModels) -> list[range]:
    """Return the range t_p .. t_{p+1} - 1 of every whole epoch."""
    steps = local_sgd(models.setting).local_steps
    return [range(t, t + steps) for t in range(0, models.setting.rounds - steps + 1, steps)]


def _lemma_2_margins(models: ClientModels) -> list[float]:
    """Return left-hand side minus right-hand side of Lemma 2's first inequality, by epoch."""
    setting = models.setting
    reach = float(_step(setting)) * local_sgd(setting).local_steps
    smoothness, spread = float(setting.problem.L), float(value_in("control_gap", setting))
    return [
        sum(float(models.spread(t)) for t in epoch)
        - 5 * smoothness * reach**2 * sum(float(models.excess_loss(t)) for t in epoch)
        - 8 * reach**2 * spread * len(epoch)
        for epoch in _epochs(models)
    ]


_worst_step, _worst_epoch = _Worst(_lemma_1_margins), _Worst(_lemma_2_margins)


def _lost(setting: Setting, steps: int) -> float:
    """Return a bound on the error of both sides, from moments after up to this many steps."""
    reach = float(_step(setting) * local_sgd(setting).local_steps * setting.problem.L)
    return 4 * (1 + reach) ** 2 * client_models(setting).rounding(steps)


def _distance_after(setting: Setting) -> tuple[Any, float]:
    after = _worst_step(setting) + 1
    return client_models(setting).squared_distance(after), _lost(setting, after)


def _spread_over(setting: Setting) -> tuple[Any, float]:
    epoch = _epochs(client_models(setting))[_worst_epoch(setting)]
    lost = len(epoch) * _lost(setting, epoch[-1])
    return _over_worst_epoch(ClientModels.spread)(setting), lost


def _at_worst_step(take: Callable[[ClientModels, int], Any]) -> Callable[[Setting], Any]:
    return lambda setting: take(client_models(setting), _worst_step(setting))


def _over_worst_epoch(take: Callable[[ClientModels, int], Any]) -> Callable[[Setting], Any]:
    def total(setting: Setting) -> Any:
        models = client_models(setting)
        return number(sum(take(models, t) for t in _epochs(models)[_worst_epoch(setting)]))

    return total


L = symbol("L", "smoothness of every client", CURVATURE, "L", positive=True)
gamma = symbol("gamma", "client_lr", STEP, _step, positive=True)
H = symbol(
    "H", "local_steps, the number of steps between two averages", PURE, "local_steps", positive=True
)
T = symbol("T", "number of gradient steps", PURE, "rounds", positive=True, integer=True)
M = symbol("M", "clients", PURE, "n_clients", positive=True, integer=True)
sigma = symbol(
    "sigma",
    "root of 1/M sum_m ||grad f_m(x*)||^2",
    GRADIENT,
    "sqrt(control_gap)",
    nonnegative=True,
)
D = symbol("D", "||x_0 - x*||", LENGTH, "sqrt(squared_distance)", nonnegative=True)
A = symbol(
    "A",
    "16 D^2/epsilon max(L, sigma sqrt(3L/epsilon)), with the smallest epsilon allowed",
    PURE,
    real=True,
)
noise = symbol("s", "noise of the gradients", GRADIENT, "sigma", nonnegative=True)
plain = symbol("d", "1 for equal weights and a constant step, else 0", PURE, _is_plain, real=True)
first = symbol(
    "t_1", "number of steps before the first average", PURE, first_average, positive=True
)
r_t = symbol(
    "R_t",
    "||x^_t - x*||^2 at the t at which (4) is closest to failing",
    LENGTH**2,
    _at_worst_step(ClientModels.squared_distance),
    nonnegative=True,
)
V_t = symbol(
    "V_t", "V_t at the same t", LENGTH**2, _at_worst_step(ClientModels.spread), nonnegative=True
)
D_t = symbol(
    "D_t",
    "f(x^_t) - f(x*) at the same t",
    LOSS,
    _at_worst_step(ClientModels.excess_loss),
    nonnegative=True,
)
D_p = symbol(
    "D_p",
    "sum of f(x^_t) - f(x*) over the epoch in which the claim is closest to failing",
    LOSS,
    _over_worst_epoch(ClientModels.excess_loss),
    nonnegative=True,
)
_EXACT = Hypothesis("exact gradients", sp.Eq(noise, 0), "Algorithm 1")
_PLAIN = Hypothesis("equal weights, a constant step", sp.Eq(plain, 1), "Algorithm 1")
_SMOOTH = Hypothesis("smooth clients", sp.Lt(L, sp.oo, evaluate=False), "Assumption 1")
_ANY_STEP = (_SMOOTH, _EXACT, _PLAIN)
_SMALL = Hypothesis("small steps", as_printed(lambda: sp.Le(gamma, 1 / (4 * L * H))), "Theorem 1")
_LATE = Hypothesis("averages in the step from t_p", sp.Eq(first, H + 1), "Algorithm 1")
_IN_TIME = Hypothesis("averages in the step to t_p", sp.Eq(first, H), "Lemma 2's V_t at t_p")


def _setting(
    *,
    condition: float = 4.0,
    spread: float = 1.0,
    local_steps: int = 5,
    epochs: int = 8,
    start: float = 1.0,
    step: float = 1.0,
    sigma: float = 0.0,
    late: bool = True,
    averaged: bool = True,
) -> Setting:
    """Return four clients in the plane; ``step`` is gamma over 1/(4 L H)."""
    problem = clients_in_the_plane(condition, spread, sigma)
    steps = int(local_steps)
    method: Any = LocalSgd(
        Constant(step / (4 * steps)), steps, (0.25,) * 4, first_average=steps + late
    )
    x0 = problem.x_star + np.array([start, 0.0])
    return Setting(
        AveragedIterate(method) if averaged else method,
        problem,
        UniformSubset(4, 4),
        int(epochs) * steps,
        x0,
    )


def _corollary_setting(*, local_steps: int = 4, epochs: int = 16, **changes: Any) -> Setting:
    """Return the setting with gamma = sqrt(M)/(4L sqrt(T)); as M = 4, it is 2H/sqrt(T)/(4LH)."""
    step = 2 * local_steps / (local_steps * epochs) ** 0.5
    return _setting(local_steps=local_steps, epochs=epochs, step=step, **changes)


def _own(
    setting: Setting, step_of: Callable[[Setting, int], float], *, late: bool = True
) -> Setting:
    """Return local gradient descent over whole epochs, with the step from ``step_of``."""
    steps = value_in("local_steps", setting)
    weights = tuple(setting.problem.alpha.tolist())
    method = LocalSgd(Constant(step_of(setting, steps)), steps, weights, first_average=steps + late)
    rounds = setting.rounds * steps
    return replace(setting, algorithm=AveragedIterate(method), rounds=rounds)


def _largest_step(setting: Setting, steps: int) -> float:
    return JUST_BELOW / (4 * setting.problem.L * steps)


def _corollary_step(setting: Setting, steps: int) -> float:
    total = setting.rounds * steps
    return math.sqrt(setting.problem.n_clients) / (4 * setting.problem.L * math.sqrt(total))


def _regimes(make: Callable[..., Setting]) -> dict[str, Regime]:
    return {
        "usual": Regime("kappa = 4, H = 5", make),
        "one local step": Regime("H = 1", partial(make, local_steps=1, epochs=30)),
        "equal curvatures": Regime("kappa = 1", partial(make, condition=1.0)),
        "ill conditioned": Regime("kappa = 1000", partial(make, condition=1000.0)),
        "equal clients": Regime("all clients have the same optimum", partial(make, spread=0.0)),
        "far apart": Regime("optima 100 times as far apart", partial(make, spread=100.0)),
        "started at the optimum": Regime("x_0 = x*", partial(make, start=0.0)),
        "a single epoch": Regime("T = H", partial(make, epochs=1)),
        "noisy gradients": Regime("sigma = 1", partial(make, sigma=1.0)),
        "steps four times as long": Regime("gamma = 1/(LH)", partial(make, step=4.0)),
    }


def _family(make: Callable[..., Setting], *, step: bool = True) -> Family:
    steps = (Parameter("step", 0.01, 1, 1, "gamma over 1/(4LH)"),) if step else ()
    return Family(
        make,
        (
            Parameter("condition", 1, 1000, 4, "kappa, with L = 1"),
            Parameter("epochs", 1, 20, 8, "T/H", whole=True),
            Parameter("local_steps", 1, 20, 5, "H", whole=True),
            Parameter("spread", 0.01, 100, 1, "distance between the clients' optima"),
            Parameter("start", 0.01, 100, 1, "||x_0 - x*||"),
            *steps,
        ),
    )


def _derived(printed: Any, make: Callable[..., Setting], *, step: bool = True) -> Any:
    """Return the reading in which epochs start with equal models, as in the analysis."""

    def in_time(regime: Regime) -> Regime:
        made: Any = regime.make
        return Regime(regime.about, partial(made, late=False))

    run = printed.own_run
    return replace(
        printed,
        reading="derived",
        hypotheses=tuple(_IN_TIME if item is _LATE else item for item in printed.hypotheses),
        regimes={name: in_time(regime) for name, regime in printed.regimes.items()},
        family=_family(partial(make, late=False), step=step),
        own_run=run and replace(run, make=partial(run.make, late=False)),
        # The paper's proof is about this reading too.
        derivation=printed.derivation and replace(printed.derivation),
        note="Epochs begin with equal models at t_p, as in the proof.",
    )


# ------------------------------------------------------------ the ends of the proofs

_V, _D, _R, _f = sp.symbols("V_sum D_sum R_T f_T", nonnegative=True)
_n = sp.Symbol("n", positive=True)
_BOUND = as_printed(lambda: 2 * D**2 / (gamma * T) + 24 * gamma**2 * sigma**2 * H**2 * L)
_BOUND_AT_ITS_STEP = as_printed(
    lambda: 8 * L * D**2 / sp.sqrt(M * T) + 3 * M * sigma**2 * H**2 / (2 * L * T)
)
_STEP_OF_COROLLARY = as_printed(lambda: sp.sqrt(M) / (4 * L * sp.sqrt(T)))
_SMALL_ENOUGH = sp.Le(gamma, 1 / (4 * L * H))
_DRIFT = gamma**2 * H**2 * sigma**2
_LEFT_OF_LEMMA_2 = sp.Rational(3, 2) * L * _V - _D
_PROOF = Derivation(
    (
        Step(
            "Lemma 2, first to second inequality",
            "3/2 L sum V_t - sum D_t <= -1/2 sum D_t + n 12 L gamma^2 H^2 sigma^2",
            Implied(
                given=(
                    sp.Le(_V, 5 * L * gamma**2 * H**2 * _D + 8 * _n * _DRIFT),
                    _SMALL_ENOUGH,
                ),
                claimed=sp.Le(_LEFT_OF_LEMMA_2, -_D / 2 + 12 * _n * L * _DRIFT),
                multipliers=(
                    sp.Rational(3, 2) * L,
                    sp.Rational(15, 2) * L**2 * H**2 * _D * (gamma + 1 / (4 * L * H)),
                ),
            ),
        ),
        Step(
            "Lemmas 1 and 2 to (5)",
            "the sum over t < T, of which the distance in the end is left out",
            Implied(
                given=(
                    sp.Le(_R, D**2 + gamma * _LEFT_OF_LEMMA_2),
                    sp.Le(_LEFT_OF_LEMMA_2, -_D / 2 + 12 * T * L * _DRIFT),
                    sp.Le(_f, _D / T),
                ),
                claimed=sp.Le(_f, _BOUND),
                multipliers=(2 / (gamma * T), 2 / T, sp.Integer(1)),
            ),
        ),
    ),
    (
        "Lemma 1 for gamma <= 1/(4L), summed over t < T, and Lemma 2's first inequality.",
        "f is convex, so f(x-_T) is at most the mean of the f(x^_t).",
    ),
    {
        _V: "sum of V_t over n steps",
        _D: "sum of D_f(x^_t, x*) over the same steps",
        _R: "||x^_T - x*||^2",
        _f: "f(x-_T) - f(x*)",
        _n: "steps",
    },
)
_PROOF_OF_COROLLARY = Derivation(
    (
        Step(
            "few local steps",
            "the step is as small as Theorem 1 requires",
            Implied(
                given=(sp.Le(H, sp.sqrt(T) / sp.sqrt(M)),),
                claimed=_SMALL_ENOUGH,
                multipliers=(sp.sqrt(M) / (4 * L * H * sp.sqrt(T)),),
                under={gamma: _STEP_OF_COROLLARY},
            ),
        ),
        Step(
            "(5) at this step",
            "Theorem 1's bound",
            Equal(_BOUND, _BOUND_AT_ITS_STEP, under={gamma: _STEP_OF_COROLLARY}),
        ),
    ),
    ("Theorem 1.",),
)

# ------------------------------------------------------------ the statements

_alone = partial(_setting, averaged=False)

LEMMA_1 = PointClaim(
    id="local-gd/lemma-1",
    title="One step of local gradient descent, for all t and any step size",
    source=f"{_PAPER}, Lemma 1, (4)",
    quantity=PointQuantity(
        _distance_after,
        "||x^_{t+1} - x*||^2, at the t at which (4) is closest to failing",
        LENGTH**2,
    ),
    bound=as_printed(
        lambda: r_t + gamma * L * (1 + 2 * gamma * L) * V_t - 2 * gamma * (1 - 2 * gamma * L) * D_t
    ),
    hypotheses=_ANY_STEP,
    regimes={
        **_regimes(_alone),
        "steps beyond 1/(2L)": Regime("gamma = 2/L", partial(_alone, step=8.0, local_steps=1)),
    },
    family=_family(_alone),
    note="Checked to the letter, over the first T steps of Algorithm 1, with its own averages.",
    kind=StatementKind.LEMMA,
)

LEMMA_1_SMALL = replace(
    LEMMA_1,
    id="local-gd/lemma-1-small-steps",
    title="One step of local gradient descent, for all t and steps of at most 1/(4L)",
    source=f"{_PAPER}, Lemma 1, second inequality",
    bound=as_printed(lambda: r_t + sp.Rational(3, 2) * gamma * L * V_t - gamma * D_t),
    hypotheses=(
        *_ANY_STEP,
        Hypothesis("small steps", as_printed(lambda: sp.Le(gamma, 1 / (4 * L))), "Lemma 1"),
    ),
)

LEMMA_2 = PointClaim(
    id="local-gd/lemma-2",
    title="How far apart local models are over an epoch, for every epoch",
    source=f"{_PAPER}, Lemma 2, first inequality",
    quantity=PointQuantity(
        _spread_over,
        "sum of V_t over t = t_p .. t_{p+1} - 1, in the epoch in which the claim is closest to "
        "failing",
        LENGTH**2,
    ),
    bound=as_printed(lambda: 5 * L * gamma**2 * H**2 * D_p + H * 8 * gamma**2 * H**2 * sigma**2),
    hypotheses=(*_ANY_STEP, replace(_SMALL, source="Lemma 2"), _LATE),
    regimes=_regimes(_alone),
    family=_family(_alone),
    note=(
        "Checked to the letter: an epoch begins at t_p, where Algorithm 1 has not yet averaged. "
        "The second inequality follows from the first: see the proof of Theorem 1."
    ),
    kind=StatementKind.LEMMA,
)

THEOREM_1 = Theorem(
    id="local-gd/1",
    title="Local gradient descent on convex losses: the excess loss of the average model",
    source=f"{_PAPER}, Theorem 1",
    quantity=BoundedQuantity(
        "excess_loss",
        "last",
        RoundRange(0, 0),
        "f(x-_T) - f(x*), x-_T = 1/T sum_{t<T} x^_t",
        r"f(\bar x_T)-f(x_\star)",
        LOSS,
    ),
    bound=_BOUND,
    hypotheses=(*_ANY_STEP, _SMALL, _LATE),
    derivation=_PROOF,
    regimes=_regimes(_setting),
    family=_family(_setting),
    own_run=OwnRun(partial(_own, step_of=_largest_step)),
    note="Checked to the letter, for Algorithm 1 as printed.",
)

COROLLARY_1 = replace(
    THEOREM_1,
    id="local-gd/corollary-1",
    title="Local gradient descent with steps of 1/sqrt(T): the excess loss of the average model",
    source=f"{_PAPER}, Corollary 1",
    bound=_BOUND_AT_ITS_STEP,
    derivation=_PROOF_OF_COROLLARY,
    hypotheses=(
        *_ANY_STEP,
        _LATE,
        Hypothesis(
            "step size",
            as_printed(lambda: sp.Eq(gamma, _STEP_OF_COROLLARY)),
            "Corollary 1",
        ),
        Hypothesis(
            "few local steps", as_printed(lambda: sp.Le(H, sp.sqrt(T) / sp.sqrt(M))), "Corollary 1"
        ),
    ),
    regimes={
        "usual": Regime("kappa = 4, H = 4, T = 64", _corollary_setting),
        "one local step": Regime(
            "H = 1, T = 64", partial(_corollary_setting, local_steps=1, epochs=64)
        ),
        "many local steps": Regime(
            "H = 8, T = 256", partial(_corollary_setting, local_steps=8, epochs=32)
        ),
        "equal clients": Regime(
            "all clients have the same optimum", partial(_corollary_setting, spread=0.0)
        ),
        "far apart": Regime(
            "optima 100 times as far apart", partial(_corollary_setting, spread=100.0)
        ),
        "too many local steps": Regime(
            "H = 16, T = 64", partial(_corollary_setting, local_steps=16, epochs=4)
        ),
    },
    family=_family(_corollary_setting, step=False),
    own_run=OwnRun(partial(_own, step_of=_corollary_step)),
    kind=StatementKind.COROLLARY,
)


def _least_accuracy(setting: Setting) -> Any:
    """Return the least epsilon with 2 D^2/(gamma T) and 24 gamma^2 sigma^2 H^2 L at most half."""
    lr = _step(setting)
    of_start = 4 * value_in("squared_distance", setting) / (lr * setting.rounds)
    of_clients = value_in("48 * local_steps**2 * control_gap * L", setting) * lr * lr
    return largest([of_start, of_clients])


def _averages_needed(setting: Setting) -> tuple[Any, float]:
    accuracy, smoothness = _least_accuracy(setting), setting.problem.L
    distance, spread = (value_in(name, setting) for name in ("squared_distance", "control_gap"))
    of_clients = root(3 * smoothness * spread / accuracy)
    return with_rounding(16 * distance / accuracy * largest([smoothness, of_clients]), 1)


COMMUNICATION = PointClaim(
    id="local-gd/communication",
    title="The smallest number of averages with which Theorem 1's bound reaches an accuracy",
    source=f"{_PAPER}, Section 2.3, (6)",
    quantity=PointQuantity(_averages_needed, "A", PURE, "A"),
    bound=as_printed(lambda: T / H),
    symbols=(A,),
    hypotheses=(
        _PLAIN,
        Hypothesis("small steps", as_printed(lambda: sp.Le(gamma, 1 / (4 * L))), "above (6)"),
    ),
    regimes={
        "equal clients": Regime("sigma = 0", partial(_alone, spread=0.0, step=5.0)),
        "clients close together": Regime(
            "optima 0.02 apart, H = 5",
            partial(_alone, spread=0.02, step=5.0, epochs=20, sigma=1.0),
        ),
        "clients apart": Regime("gamma = 1/(4L), H = 5", partial(_alone, step=5.0)),
        "one local step": Regime("H = 1", partial(_alone, local_steps=1)),
        "Theorem 1's step": Regime("gamma = 1/(4LH)", _alone),
        "far apart": Regime(
            "optima 100 times as far apart", partial(_alone, spread=100.0, step=5.0)
        ),
    },
    family=_family(partial(_alone, epochs=40)),
    note=(
        "Checked to the letter, with the smallest epsilon for which both terms of (5) are at most "
        "epsilon/2; there (6) requires the most averages."
    ),
    kind=StatementKind.REMARK,
    refutations=(
        Refutation(
            "The constraints are given as 0 < gamma <= 1/(4L), which does not bound H when sigma "
            "= 0. Theorem 1, and the max with L in (6), need gamma <= 1/(4LH).",
            Weight.MISPRINT,
            "gamma <= 1/(4LH) in place of gamma <= 1/(4L)",
            "derived",
            ("equal clients", "clients close together"),
            natural="clients close together",
            answer="A slip: Theorem 1's condition is meant, and (6) follows from it.",
        ),
    ),
)

COMMUNICATION_DERIVED = replace(
    COMMUNICATION,
    reading="derived",
    hypotheses=(_PLAIN, _SMALL),
    refutations=(),
    note="This reading has Theorem 1's own condition on the step size.",
)

STATEMENTS: tuple[Statement, ...] = (
    LEMMA_1,
    LEMMA_1_SMALL,
    LEMMA_2,
    _derived(LEMMA_2, _alone),
    THEOREM_1,
    _derived(THEOREM_1, _setting),
    COROLLARY_1,
    _derived(COROLLARY_1, _corollary_setting, step=False),
    COMMUNICATION,
    COMMUNICATION_DERIVED,
)
