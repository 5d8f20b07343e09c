"""SCAFFOLD: the theorems on finitely many rounds, with their constants.

Karimireddy, Kale, Mohri, Reddi, Stich and Suresh, "SCAFFOLD: Stochastic Controlled Averaging for
Federated Learning" (ICML 2020; arXiv 1910.06378v4), as restated with page numbers: Lemma 15
telescoped for convex losses, Lemma 19 for nonconvex ones. The paper's own summary, Theorem VII,
gives only orders, and leaves out the initial controls and the warm start.

Conventions
-----------
``x^r`` is the model before round r = 0 .. T-1. ``eta_g >= 1`` is stated together with h in the
convex theorem; we assume it in both. Algorithm 1's option I sets c_i^+ = g_i(x); the paper says
that this makes an additional pass over the local data, so g_i(x) averages at least as many
gradients as a round has local steps. In the reading "pseudo-code", which follows the pseudo-code
alone, g_i(x) is a single stochastic gradient, of variance sigma^2 like that of a local step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from fltheory.algorithms import Scaffold, WarmStarted
from fltheory.claims.along_run import Theorem
from fltheory.claims.statement import Statement
from fltheory.derivations.derivation import Derivation, Implied, Step, deferred
from fltheory.engines import Setting
from fltheory.exact_or_float import powers
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, RoundRange
from fltheory.grammar.refutation import Refutation, Weight
from fltheory.grammar.regime import JUST_BELOW, OwnRun, coupled, strong_convexity
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LENGTH, LOSS, PURE, STEP
from fltheory.numbers.of_setting import value_in
from fltheory.participation import Bernoulli, Cyclic, MarkovOnOff, Participation, UniformSubset
from fltheory.problems import Problem, QuadraticProblem, nonconvex, quadratic
from fltheory.validation import FloatArray

# ------------------------------------------------------------ symbols

_OPTION = (
    "1 if a control is a gradient at the server's model, 2 if it is the mean over the local steps"
)
_COLD = "1 if the controls start at zero, 0 if every client computes its own at x^0"
_UNLIKE = (
    "total variation distance between the distribution of a round's participants and that of a "
    "uniform draw of S of N"
)
_MEMORY = "1 if participation depends on earlier rounds, else 0"
_OF_NOISE = "clients' gradient noise, E||noise||^2 <= sigma^2"
_SIZE = "number of participants in a round; its expectation if it varies"
_ROUNDS = "rounds; one less if the controls are computed in a separate round"
_GAP = "1/N sum_i ||c_i^0 - grad f_i(x*)||^2, where c_i^0 = 0 here"

W_T = symbol("W_T", "sum of w_r = (1 - mu h/2)^-(r+1) over r < T", PURE, positive=True)
beta = symbol("beta", "smoothness of every client", CURVATURE, "L", positive=True)
sigma = symbol("sigma", _OF_NOISE, GRADIENT, "sigma", nonnegative=True)
h = symbol("h", "effective step K eta_l eta_g", STEP, positive=True)
eta_l = symbol("eta_l", "client_lr, step size of local SGD", STEP, "client_lr", positive=True)
eta_g = symbol("eta_g", "server_lr", PURE, "server_lr", positive=True)
K = symbol("K", "local_steps", PURE, "local_steps", positive=True, integer=True)
S = symbol("S", _SIZE, PURE, "participants", positive=True)
N = symbol("N", "clients", PURE, "n_clients", positive=True, integer=True)
T = symbol("T", _ROUNDS, PURE, "rounds - is_warm", positive=True, integer=True)
unlike = symbol("d_U", _UNLIKE, PURE, "distance_from_uniform", nonnegative=True)
memory = symbol("m", _MEMORY, PURE, "has_memory", nonnegative=True, integer=True)
mu = symbol("mu", "strong convexity of every client", CURVATURE, "mu", real=True)
D_0 = symbol("D_0", "||x^0 - x*||", LENGTH, "sqrt(squared_distance)", nonnegative=True)
C_0 = symbol("C_0", _GAP, GRADIENT**2, "control_gap", nonnegative=True)
F_0 = symbol("F_0", "f(x^0) - min f", LOSS, "excess_loss", nonnegative=True)
cold = symbol("k", _COLD, PURE, "1 - is_warm", nonnegative=True, integer=True)
option = symbol("o", _OPTION, PURE, "option", positive=True, integer=True)


# ------------------------------------------------------------ settings on which they are checked
# Six clients in the plane are varied in one respect at a time, with h at its printed limit unless a
# regime is about this limit. In the last regimes, sampling is not uniform: the theorems do not
# apply, and the table shows their bounds next to the truth.


@dataclass(frozen=True, eq=False)
class _Instance:
    """All parameters of a setting; h is ``step`` times its limit."""

    problem: Problem
    participation: Participation
    distance: float = 3.0
    rounds: int = 1500
    local_steps: int = 4
    server_lr: float = 1.0
    option: Literal[1, 2] = 2
    step: float = 1.0
    warm: bool = True


def _quadratic(
    n_clients: int = 6,
    *,
    mu: float = 0.25,
    sigma_G: float = 2.0,
    sigma: float = 1.0,
) -> QuadraticProblem:
    return quadratic(n_clients, 2, L=1.0, mu=mu, sigma_G=sigma_G, sigma=sigma)


def _base() -> _Instance:
    return _Instance(_quadratic(), UniformSubset(6, 2))


def _with(**changes: float | bool | Participation | Problem) -> Callable[[], _Instance]:
    return lambda: replace(_base(), **changes)  # type: ignore[arg-type]


def _noise_free(participation: Participation) -> Callable[[], _Instance]:
    n_clients = participation.n_clients
    return lambda: _Instance(_quadratic(n_clients, sigma=0.0), participation)


def _different_hessians() -> _Instance:
    problem = _quadratic()
    scales = np.linspace(0.3, 1.0, problem.n_clients)[:, None, None]
    return replace(
        _base(), problem=QuadraticProblem(scales * problem.hessians, problem.optima, sigma=1.0)
    )


def _cold_start() -> _Instance:
    """Return four clients of weight 1/4, so that x* = 0 without rounding, and the bound is zero."""
    optima = [[2.0, 0.0], [-2.0, 0.0], [1.0, 4.0], [-1.0, -4.0]]
    problem = QuadraticProblem(np.diag([1.0, 0.25]), optima)
    return _Instance(problem, UniformSubset(4, 2), distance=0.0, warm=False)


def _one_gradient_as_control() -> _Instance:
    """Return a run of noise alone: equal clients, start at x*, 300 local steps, large eta_g."""
    return _Instance(
        quadratic(5, 1, L=1.0, mu=1.0, sigma_G=0.0, sigma=10.0),
        UniformSubset(5, 1),
        distance=0.0,
        local_steps=300,
        server_lr=10.0,
        option=1,
    )


def _in_rotation(n_clients: int) -> Cyclic:
    """Return participation in rotation: one client per round."""
    return Cyclic([n_clients] * n_clients, list(range(n_clients)))


_ALIKE: Mapping[str, tuple[str, Callable[[], _Instance]]] = {
    "uniform sampling": ("two of six clients per round", _base),
    "everybody": ("all six clients in every round", _with(participation=UniformSubset(6, 6))),
    "one participant": ("one of six clients per round", _with(participation=UniformSubset(6, 1))),
    "noise-free": ("exact gradients, different clients", _noise_free(UniformSubset(6, 2))),
    "i.i.d.": ("equal clients", _with(problem=_quadratic(sigma_G=0.0))),
    "K = 1": ("one local step", _with(local_steps=1)),
    "large server step": ("eta_g = 10", _with(server_lr=10.0)),
    "option I": ("each control is one gradient at the server's model", _with(option=1)),
    "one gradient as control": ("option I, 300 local steps, noise only", _one_gradient_as_control),
    "different Hessians": ("clients of unequal curvature", _different_hessians),
    "small steps": ("h at a tenth of its limit", _with(step=0.1)),
    "too large a step": (
        "one local step, h 165 times its limit, above 2/beta",
        _with(step=165.0, local_steps=1),
    ),
    "small server step": (
        "eta_g = 1/1000 and eta_l above 2/beta, exact gradients",
        lambda: replace(_noise_free(UniformSubset(6, 2))(), server_lr=0.001),
    ),
    "excluded client": (
        "one of six clients never takes part",
        _noise_free(UniformSubset(6, 2, excluded=(0,))),
    ),
    "Bernoulli": (
        "all clients alike, each present with probability 1/3",
        _with(participation=Bernoulli([1 / 3] * 6)),
    ),
    "rare client": (
        "Bernoulli: one client in one of 2000 rounds, the others in all",
        _noise_free(Bernoulli([0.0005, 1.0, 1.0, 1.0, 1.0, 1.0])),
    ),
    "long stretches": (
        "Markov: all clients alike, each present half of the time, for 1000 rounds in a row",
        _noise_free(MarkovOnOff([0.5] * 4, 0.998)),
    ),
    "in rotation": ("cyclic: one client after the other", _noise_free(_in_rotation(6))),
}

_OF_CONVEX: Mapping[str, tuple[str, Callable[[], _Instance]]] = {
    "started at the optimum": (
        "x^0 = x*, exact gradients: only the controls are still wrong",
        lambda: replace(_noise_free(UniformSubset(6, 2))(), distance=0.0),
    ),
    "few of many": (
        "one of 11 clients, mu = 0.9 L: mu h above S/(15N)",
        lambda: _Instance(_quadratic(11, mu=0.9), UniformSubset(11, 1)),
    ),
}

_OF_NONCONVEX: Mapping[str, tuple[str, Callable[[], _Instance]]] = {
    "nonconvex": (
        "rippled losses, sampled",
        lambda: _Instance(
            nonconvex(6, 2, L=1.0, sigma_G=1.0, sigma=0.5), UniformSubset(6, 2), rounds=60
        ),
    ),
    "cold start": (
        "controls of zero, x^0 = x*, exact gradients",
        _cold_start,
    ),
}


def _algorithm(instance: _Instance, limit: float) -> Scaffold:
    effective = JUST_BELOW * instance.step * limit / instance.problem.L
    client_lr = effective / (instance.local_steps * instance.server_lr)
    return Scaffold(
        client_lr, instance.local_steps, option=instance.option, server_lr=instance.server_lr
    )


def _setting(instance: _Instance, limit: float, *, warm: bool) -> Setting:
    scaffold = _algorithm(instance, limit)
    dim = instance.problem.dim
    return Setting(
        WarmStarted(scaffold) if warm else scaffold,
        instance.problem,
        instance.participation,
        instance.rounds + warm,
        instance.problem.x_star + np.full(dim, instance.distance / math.sqrt(dim)),
    )


def _convex_setting(instance: _Instance) -> Setting:
    return _setting(instance, 1 / 81, warm=False)


def _nonconvex_setting(instance: _Instance) -> Setting:
    share = float(instance.participation.marginals.sum()) / instance.problem.n_clients
    return _setting(instance, share ** (2 / 3) / 24, warm=instance.warm)


CONVEX_REGIMES = coupled({**_ALIKE, **_OF_CONVEX}, _convex_setting)
NONCONVEX_REGIMES = coupled({**_ALIKE, **_OF_NONCONVEX}, _nonconvex_setting)


def _share(setting: Setting) -> float:
    return float(value_in("participants", setting)) / setting.problem.n_clients


def _own(limit: Callable[[Setting], float], *, warm: bool = False) -> OwnRun:
    """Return SCAFFOLD with beta h at its limit; a warm start counts as the first round."""

    def make(setting: Setting) -> Setting:
        if warm and setting.rounds < 2:
            raise ValueError("rounds must be at least 2: the first only sets the controls")
        problem, who = setting.problem, setting.participation
        steps = value_in("local_steps", setting)
        scaffold = _algorithm(_Instance(problem, who, local_steps=steps), limit(setting))
        method = WarmStarted(scaffold) if warm else scaffold
        return Setting(method, problem, who, setting.rounds, setting.x0)

    return OwnRun(make)


OWN_STRONGLY_CONVEX = _own(
    lambda s: min(1 / 81, _share(s) * float(s.problem.L) / (15 * float(strong_convexity(s))))
)
OWN_CONVEX = _own(lambda s: 1 / 81)
OWN_NONCONVEX = _own(lambda s: _share(s) ** (2 / 3) / 24, warm=True)


# ------------------------------------------------------------ the end of the convex proof
# The recursions for the server's model, the controls' lag and the local drift, as restated, are
# used without a check. Everything else follows from them, including constants.

_distance, _next, _excess, _lag, _next_lag, _drift = sp.symbols("d d' e C C' E", nonnegative=True)
_before, _after, _sum, _mean = sp.symbols("V V' s q", nonnegative=True)
_weight = sp.Symbol("w", positive=True)
_convexity = sp.Symbol("mu", nonnegative=True)

_ONE = sp.Integer(1)
_LAG_WEIGHT = 9 * N * h**2 / S
NOISE = 12 * h * sigma**2 / (K * S) * (1 + S / eta_g**2)
_START = D_0**2 + _LAG_WEIGHT * C_0
BOUND = _START / (h * W_T) + NOISE

_MEANINGS = {
    _distance: "E||x^r - x*||^2; d' after the round",
    _excess: "E[f(x^r) - f(x*)]",
    _lag: "1/N sum_i E||E c_i - grad f_i(x*)||^2; C' after the round",
    _drift: "1/(KN) sum_{i,k} E||y_{i,k} - x^r||^2",
    _before: "d + 9 N h^2/S C; V' after the round",
    _weight: "w_r, so that w_{r-1} = (1 - mu h/2) w_r",
    _sum: "sum_{r<T} w_r E[f(x^r) - f(x*)]",
    _mean: "s/W_T",
}
_TAKEN = (
    "The server's step: d' <= (1 - mu h/2) d - 2 h e + 2 h beta E + variance, by perturbed strong "
    "convexity (lemmas/perturbed-strong-convexity).",
    "Its variance: 8 beta h^2 e + 8 h^2 C + 4 h^2 beta^2 E + 12 h^2 sigma^2/(KS).",
    "The lag: C' <= (1 - S/N) C + S/N (4 beta e + 2 beta^2 E), for uniform sampling.",
    "The drift: 3 beta h E <= 2/3 h^2 C + h e/(25 eta_g^2) + h^2 sigma^2/(K eta_g^2).",
)


def _one_round(convexity: sp.Expr) -> Step:
    shrink = 1 - convexity * h / 2
    noise = h * NOISE
    strongly = convexity != 0
    step_limit = (sp.Le(convexity * h, S / (15 * N)),) if strongly else ()
    of_step_limit = (5 * N * h**2 * _lag / S,) if strongly else ()
    return Step(
        "recursions to one round",
        "V = d + 9 N h^2/S C shrinks by the factor 1 - mu h/2, minus h e, plus noise",
        Implied(
            given=(
                sp.Le(
                    _next,
                    shrink * _distance
                    - 2 * h * _excess
                    + 2 * h * beta * _drift
                    + 8 * beta * h**2 * _excess
                    + 8 * h**2 * _lag
                    + 4 * h**2 * beta**2 * _drift
                    + 12 * h**2 * sigma**2 / (K * S),
                ),
                sp.Le(
                    _next_lag,
                    (1 - S / N) * _lag + S / N * (4 * beta * _excess + 2 * beta**2 * _drift),
                ),
                sp.Le(
                    3 * beta * h * _drift,
                    sp.Rational(2, 3) * h**2 * _lag
                    + h * _excess / (25 * eta_g**2)
                    + h**2 * sigma**2 / (K * eta_g**2),
                ),
                sp.Le(81 * beta * h, 1),
                sp.Le(1 / eta_g**2, 1),
                *step_limit,
            ),
            claimed=sp.Le(
                _next + _LAG_WEIGHT * _next_lag,
                shrink * (_distance + _LAG_WEIGHT * _lag) - h * _excess + noise,
            ),
            multipliers=(
                _ONE,
                _LAG_WEIGHT,
                _ONE,
                beta * h * _drift + sp.Rational(44, 81) * h * _excess,
                sp.Rational(37, 81) * h * _excess,
                *of_step_limit,
            ),
        ),
    )


def _weighed(convexity: sp.Expr) -> Step:
    shrink = 1 - convexity * h / 2
    return Step(
        "one round, weighed",
        "times w_r: the left side of a round is the right side of the next",
        Implied(
            given=(sp.Le(_after, shrink * _before - h * _excess + h * NOISE),),
            claimed=sp.Le(
                _weight * _after,
                _weight * shrink * _before - h * _weight * _excess + _weight * h * NOISE,
            ),
            multipliers=(_weight,),
        ),
    )


def _telescoped(total: sp.Expr, bound: sp.Expr) -> Step:
    return Step(
        "telescoped",
        "the sum over r < T, divided by h W_T, is the bound as stated",
        Implied(
            given=(
                sp.Le(h * _sum, _START + total * h * NOISE),
                sp.Le(_mean, _sum / total),
            ),
            claimed=sp.Le(_mean, bound),
            multipliers=(1 / (h * total), _ONE),
        ),
    )


@deferred
def strongly_convex_proof() -> Derivation:
    """Return the last steps of the proof for strongly convex clients."""
    return Derivation(
        steps=(_one_round(_convexity), _weighed(_convexity), _telescoped(W_T, BOUND)),
        taken=_TAKEN,
        meanings=_MEANINGS,
    )


@deferred
def convex_proof() -> Derivation:
    """Return the last steps of the proof for convex clients."""
    return Derivation(
        steps=(
            _one_round(sp.Integer(0)),
            _weighed(sp.Integer(0)),
            _telescoped(T, _START / (h * T) + NOISE),
        ),
        taken=_TAKEN,
        meanings=_MEANINGS,
    )


# ------------------------------------------------------------ the theorems


def of_scaffold(setting: Setting) -> Setting:
    """Return the setting.

    Raises
    ------
    ValueError
        If the algorithm is not SCAFFOLD, warm-started or not, or target weights are unequal.
    """
    _scaffold(setting)
    alpha = setting.problem.alpha
    if (alpha != alpha[0]).any():
        raise ValueError(
            "target_weights must be equal for the theorems of SCAFFOLD, where f is the clients' "
            f"mean, got {alpha.tolist()}"
        )
    return setting


def with_cold_start(setting: Setting) -> Setting:
    """Return the setting; raise ValueError if controls do not start at zero, as C_0 assumes."""
    if isinstance(setting.algorithm, WarmStarted):
        raise ValueError(
            "algorithm must be Scaffold, with controls that start at zero, for the theorem on "
            f"convex losses, got {setting.algorithm!r}"
        )
    return of_scaffold(setting)


def _scaffold(setting: Setting) -> Scaffold:
    algorithm = setting.algorithm
    scaffold = algorithm.scaffold if isinstance(algorithm, WarmStarted) else algorithm
    if not isinstance(scaffold, Scaffold):
        raise ValueError(
            f"algorithm must be Scaffold or WarmStarted for SCAFFOLD's theorems, got {algorithm!r}"
        )
    return scaffold


def geometric_weights(setting: Setting) -> FloatArray:
    """Return ``w_r = (1 - mu h/2)^-(r+1)`` for r = 0 .. T-1, divided by the last one."""
    scaffold = _scaffold(setting)
    step = scaffold.local_steps * scaffold.client_lr * scaffold.server_lr
    before_last = np.arange(setting.rounds - 1, -1, -1)
    return powers(1 - setting.problem.mu * step / 2, before_last)


def rounds_that_count(setting: Setting) -> NDArray[np.int64]:
    """Return 1 for r = 0 .. T-1, and 0 for the round of a warm start."""
    weights = np.ones(setting.rounds, dtype=np.int64)
    weights[: isinstance(setting.algorithm, WarmStarted)] = 0
    return weights


_PAPER = "SCAFFOLD (ICML 2020, arXiv v4)"
_LEMMA_15 = f"{_PAPER}, Lemma 15 telescoped, p. 30-31"
_BEFORE_EACH_ROUND = RoundRange(0, -1)
_STEP = {h: K * eta_l * eta_g}

_UNIFORM = (
    Hypothesis("clients drawn uniformly", sp.Eq(unlike, 0, evaluate=False), "Algorithm 1"),
    Hypothesis("draws independent of each other", sp.Eq(memory, 0, evaluate=False), "Algorithm 1"),
)
_SMOOTH = Hypothesis("smooth clients", sp.Lt(beta, sp.oo, evaluate=False), "Lemma 15")
_SERVER = Hypothesis("server step of at least one", sp.Ge(eta_g, 1), "Lemma 15")
_SMALL = Hypothesis("small effective step", sp.Le(h, 1 / (81 * beta)), "Lemma 15")
_FEW_OF_MANY = Hypothesis(
    "mu h at most S/(15N)", as_printed(lambda: sp.Le(mu * h, S / (15 * N))), "Lemma 15"
)
_PASS = Hypothesis(
    "option I with an additional pass over the local data, or option II",
    sp.Ge(option, 2, evaluate=False),
    "Algorithm 1",
)
_OPTION_2 = Hypothesis(
    "controls that average K gradients", sp.Ge(option, 2, evaluate=False), "12 h^2 sigma^2/(KS)"
)
_ONE_GRADIENT = Refutation(
    "The K in the term 12 h^2 sigma^2/(KS) needs control variates of variance sigma^2/K, but line "
    "12 of Algorithm 1, taken alone, makes c_i^+ = g_i(x) a single stochastic gradient, of "
    "variance sigma^2.",
    Weight.MISSING_HYPOTHESIS,
    "in option I, an additional pass over the local data, as the paper's text says",
    "printed",
    ("one gradient as control",),
)
_ONE_STOCHASTIC_GRADIENT = (
    "This reading follows only the pseudo-code, in which g_i(x) of option I is a single "
    "stochastic gradient. The paper's text says that option I makes an additional pass over the "
    "local data; see the printed reading."
)


def _without_pass(theorem: Theorem) -> tuple[Hypothesis, ...]:
    return tuple(item for item in theorem.hypotheses if item is not _PASS)


def _pseudo_code(theorem: Theorem) -> Theorem:
    """Return the reading in which option I's control is one stochastic gradient."""
    return replace(
        theorem,
        reading="pseudo-code",
        hypotheses=_without_pass(theorem),
        note=_ONE_STOCHASTIC_GRADIENT,
        refutations=(
            replace(_ONE_GRADIENT, certificates=(f"{theorem.id.replace('/', '-')}.json",)),
        ),
    )


STRONGLY_CONVEX = Theorem(
    id="scaffold/strongly-convex",
    title="SCAFFOLD on strongly convex losses: a weighted mean of the excess losses",
    source=_LEMMA_15,
    quantity=BoundedQuantity(
        "excess_loss",
        "mean",
        _BEFORE_EACH_ROUND,
        "1/W_T sum_{r<T} w_r E[f(x^r) - f(x*)]",
        r"\frac1{W_T}\sum_{r<T}w_r\mathbb E[f(x^r)-f(x^\star)]",
        LOSS,
        weights=geometric_weights,
        weights_text="(1 - mu*h/2)**(T - 1 - r)",
    ),
    bound=BOUND,
    hypotheses=(
        _SMOOTH,
        Hypothesis("strongly convex clients", sp.Gt(mu, 0, evaluate=False), "Lemma 15"),
        _SERVER,
        _SMALL,
        _FEW_OF_MANY,
        *_UNIFORM,
        _PASS,
    ),
    domain=with_cold_start,
    definitions={**_STEP, W_T: as_printed(lambda: ((1 - mu * h / 2) ** (-T) - 1) / (mu * h / 2))},
    regimes=CONVEX_REGIMES,
    own_run=OWN_STRONGLY_CONVEX,
    note=(
        "Checked to the letter, for both options of Algorithm 1. The short statement, Theorem "
        "VII, leaves out the term in C_0."
    ),
)

STRONGLY_CONVEX_DERIVED = replace(
    STRONGLY_CONVEX,
    reading="derived",
    hypotheses=(*_without_pass(STRONGLY_CONVEX), _OPTION_2),
    derivation=strongly_convex_proof(),
    note=(
        "The K in the server's variance, 12 h^2 sigma^2/(KS), needs control variates of variance "
        "sigma^2/K, which come from option II or from an extra pass of K gradients. With a single "
        "gradient as control variate (option I), the noise does not shrink with K."
    ),
)

CONVEX = replace(
    STRONGLY_CONVEX,
    id="scaffold/convex",
    title="SCAFFOLD on convex losses: the mean of the excess losses",
    source=f"{_LEMMA_15}, mu = 0",
    quantity=BoundedQuantity(
        "excess_loss",
        "mean",
        _BEFORE_EACH_ROUND,
        "1/T sum_{r<T} E[f(x^r) - f(x*)]",
        r"\frac1T\sum_{r<T}\mathbb E[f(x^r)-f(x^\star)]",
        LOSS,
    ),
    bound=as_printed(lambda: (D_0**2 + 9 * N * h**2 / S * C_0) / (h * T) + NOISE),
    hypotheses=(
        _SMOOTH,
        Hypothesis("convex clients", sp.Ge(mu, 0, evaluate=False), "Lemma 15"),
        _SERVER,
        _SMALL,
        *_UNIFORM,
        _PASS,
    ),
    definitions=_STEP,
    own_run=OWN_CONVEX,
    note="Checked to the letter, at mu = 0, where w_r = 1, and for both options of Algorithm 1.",
)

CONVEX_DERIVED = replace(
    CONVEX,
    reading="derived",
    hypotheses=(*_without_pass(CONVEX), _OPTION_2),
    derivation=convex_proof(),
    note=f"{STRONGLY_CONVEX_DERIVED.note} Here mu = 0.",
)

NONCONVEX = Theorem(
    id="scaffold/nonconvex",
    title="SCAFFOLD on smooth losses: the mean squared gradient",
    source=f"{_PAPER}, Lemma 19, p. 34-35",
    quantity=BoundedQuantity(
        "squared_gradient",
        "mean",
        _BEFORE_EACH_ROUND,
        "1/T sum_{r<T} E||grad f(x^r)||^2",
        r"\frac1T\sum_{r<T}\mathbb E\|\nabla f(x^r)\|^2",
        (LOSS / LENGTH) ** 2,
        weights=rounds_that_count,
        weights_text="Min(r + k, 1)",
    ),
    bound=as_printed(
        lambda: 14 * F_0 / (h * T) + 70 * beta * h * sigma**2 / (K * S) * (1 + S / eta_g**2)
    ),
    hypotheses=(
        replace(_SMOOTH, source="Lemma 19"),
        _SERVER,
        Hypothesis(
            "small effective step",
            as_printed(lambda: sp.Le(h, (S / N) ** sp.Rational(2, 3) / (24 * beta))),
            "Lemma 19",
        ),
        Hypothesis("warm start by all clients", sp.Eq(cold, 0, evaluate=False), "Lemma 19"),
        *_UNIFORM,
        _PASS,
    ),
    domain=of_scaffold,
    definitions=_STEP,
    regimes=NONCONVEX_REGIMES,
    own_run=OWN_NONCONVEX,
    note=(
        "Checked to the letter, for both options of Algorithm 1. The short statement, Theorem "
        "VII, leaves out the warm start. Without it, the bound is 0 at x^0 = x* with exact "
        "gradients, although the model moves."
    ),
)

NONCONVEX_DERIVED = replace(
    NONCONVEX,
    reading="derived",
    hypotheses=(*_without_pass(NONCONVEX), replace(_OPTION_2, source="70 beta h sigma^2/(KS)")),
    note=(
        "The 1/K in the noise term needs control variates of variance sigma^2/K, as in the convex "
        "theorem. They come from option II or from an extra pass of K gradients."
    ),
)

STATEMENTS: tuple[Statement, ...] = (
    STRONGLY_CONVEX,
    _pseudo_code(STRONGLY_CONVEX),
    STRONGLY_CONVEX_DERIVED,
    CONVEX,
    _pseudo_code(CONVEX),
    CONVEX_DERIVED,
    NONCONVEX,
    _pseudo_code(NONCONVEX),
    NONCONVEX_DERIVED,
)
