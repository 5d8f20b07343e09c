"""SA-FL: Theorems 2 and 3, Remark 2, Lemmas 1 and 2 and the paper's example, on thresholds.

Conventions
-----------
"With probability at least 1 - delta, for any delta" is checked through the expectation, because a
bound that depends on delta through a power of log(1/delta) also bounds the expectation, in the same
order. If there are several empirical minimisers, the one with the largest excess error on P counts.
Constants hidden in O(.) must not grow with n. Logarithms may grow, and a slope is accepted if it is
at most 0.05 above the claimed one.

With beta = 0, Assumption 2 is true for all P and Q, with alpha = 1 and 0^0 = 1. Theorem 2 then says
only that an error is at most a constant. So beta > 0 is required.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from fltheory.claims.at_point import LearningClaim
from fltheory.claims.decay import DecayClaim, DecayQuantity, Measurement
from fltheory.claims.rate_axis import KnownDecay
from fltheory.grammar.assertion import Relation
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.refutation import Refutation, StatementKind, Weight
from fltheory.grammar.regime import Regime
from fltheory.grammar.symbols import symbol
from fltheory.learnability import Source
from fltheory.learnability.complexity import (
    cited_complexity,
    log_less_than_half_seen,
    log_more_than_twice_seen,
    printed_complexity,
)
from fltheory.learnability.empirical_minimiser import (
    NoiselessLaw,
    sample_erm,
    sample_noiseless,
    sample_server_assisted,
)
from fltheory.learnability.populations import Marginal, Population, as_population, uniform
from fltheory.learnability.relation import (
    PositiveRelation,
    alpha_bounds,
    bernstein_constant,
    relate,
)
from fltheory.learnability.system import (
    ClientsPerServer,
    DisagreementCase,
    Fixed,
    PowerOfSize,
    ServerAssistedSystem,
    ServerOf,
    ShareOfServer,
    TailCase,
    TailFamily,
    UniformPair,
)
from fltheory.theorems.sa_fl.impossibility import PAPER, about
from fltheory.validation import FloatArray

# ------------------------------------------------------------ learning problems

TWO_DECADES = (30, 100, 300, 1_000, 3_000)
FOUR_DECADES = (100, 1_000, 10_000, 100_000, 1_000_000)
UP_TO_A_HUNDRED_THOUSAND = (100, 1_000, 10_000, 100_000)
LATER_DECADES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_HALF = Fraction(1, 2)
_TENTH = Fraction(1, 10)
_MIDDLE_MISSING = Marginal((0, Fraction(1, 4), Fraction(3, 4), 1), (_HALF, 0, _HALF))


def source(
    marginal: Marginal, *, target: Fraction = _HALF, beta: Fraction | int = 1, scale: int = 1
) -> Population:
    """Return a population with a single source."""
    return as_population(Source(marginal, target, beta=beta, scale=scale))


UNIFORM = source(uniform(0, 1))
NOISY = source(uniform(0, 1), beta=_HALF, scale=2)
HALF_RIGHT = as_population(Source(uniform(0, 1), _HALF, scale=_HALF))
GAP = source(_MIDDLE_MISSING)
NOISY_GAP = source(_MIDDLE_MISSING, beta=_HALF, scale=2)


def _system(
    clients: Population,
    *,
    target: Population = UNIFORM,
    server: Population | None = None,
    sizes: tuple[int, ...] = FOUR_DECADES,
) -> ServerAssistedSystem:
    return ServerAssistedSystem(
        target, server or target, Fixed(clients), sizes, ShareOfServer(_TENTH)
    )


def _fixed_server(clients: Population) -> ServerAssistedSystem:
    return ServerAssistedSystem(UNIFORM, UNIFORM, Fixed(clients), FOUR_DECADES, ServerOf(10))


def _clients_only() -> ServerAssistedSystem:
    return ServerAssistedSystem(UNIFORM, UNIFORM, Fixed(GAP), FOUR_DECADES, ServerOf(0))


THEOREM_2_REGIMES = {
    "clients miss the middle": Regime(
        "P uniform, D without the middle half, a tenth of all samples at the server",
        lambda: _system(GAP, sizes=LATER_DECADES),
    ),
    "constant noise": Regime(
        "D = P, a quarter of all labels wrong", lambda: _system(HALF_RIGHT, target=HALF_RIGHT)
    ),
    "noise near the target": Regime(
        "D = P, beta_P = beta_Q = 1/2", lambda: _system(NOISY, target=NOISY)
    ),
    "noisy clients miss the middle": Regime(
        "D without the middle half, beta_P = beta_Q = 1/2",
        lambda: _system(NOISY_GAP, target=NOISY, sizes=LATER_DECADES),
    ),
    "ten server samples": Regime(
        "D without the middle half, n_T = 10 and n_S grows", lambda: _fixed_server(GAP)
    ),
    "ten server samples but clients everywhere": Regime(
        "D = P, n_T = 10 and n_S grows", lambda: _fixed_server(UNIFORM)
    ),
    "clients only": Regime("plain FL: D without the middle half, n_T = 0", _clients_only),
    "clients with another target": Regime(
        "D's labels change at 3/5, P's at 1/2",
        lambda: _system(source(uniform(0, 1), target=Fraction(3, 5)), sizes=TWO_DECADES),
    ),
}

REMARK_2_REGIMES = {
    "server's points shifted": Regime(
        "P' uniform on [3/8, 5/8], D without the middle half",
        lambda: _system(
            GAP, server=source(uniform(Fraction(3, 8), Fraction(5, 8))), sizes=LATER_DECADES
        ),
    ),
    "labels of P' and D noisier": Regime(
        "P without noise, D and P' noisy near the target: beta = beta_Q = 1/2",
        lambda: _system(NOISY, server=NOISY),
    ),
    "server's target shifted": Regime(
        "the labels of P' change at 11/20, P's at 1/2",
        lambda: _system(
            GAP, server=source(uniform(0, 1), target=Fraction(11, 20)), sizes=TWO_DECADES
        ),
    ),
    "server misses the middle too": Regime(
        "P' uniform on [3/4, 1], D without the middle half",
        lambda: _system(GAP, server=source(uniform(Fraction(3, 4), 1))),
    ),
}


def near_target(size: int) -> Population:
    """Return clients whose target differs from the server's by 2/n_T."""
    return source(uniform(0, 1), target=_HALF + Fraction(2, size))


def _shared(
    clients: Callable[[int], Population],
    *,
    target: Population = UNIFORM,
    sizes: tuple[int, ...] = FOUR_DECADES,
) -> ServerAssistedSystem:
    return ServerAssistedSystem(target, target, clients, sizes, ClientsPerServer(4))


THEOREM_3_REGIMES = {
    "one target": Regime("D = P, n_S = 4 n_T", lambda: _shared(Fixed(UNIFORM))),
    "one target with noise near it": Regime(
        "D = P, beta_P = 1/2, n_S = 4 n_T",
        lambda: _shared(Fixed(NOISY), target=NOISY, sizes=(20, 200, 2_000, 20_000, 200_000)),
    ),
    "clients' target within 2/n_T": Regime(
        "D's labels change at 1/2 + 2/n_T", lambda: _shared(near_target, sizes=TWO_DECADES)
    ),
    "clients' target apart": Regime(
        "D's labels change at 3/5, P's at 1/2",
        lambda: _shared(Fixed(source(uniform(0, 1), target=Fraction(3, 5))), sizes=TWO_DECADES),
    ),
}

LEMMA_1_REGIMES = {
    "likely": Regime("m = 100, delta = 1/10", lambda: TailCase(100, "1/10")),
    "unlikely": Regime("m = 100, delta = 1e-6", lambda: TailCase(100, "1/1000000")),
    "most unlikely": Regime("m = 100, delta = 1e-40", lambda: TailCase(100, Fraction(1, 10**40))),
    "exponentially unlikely": Regime(
        "m = 2000, delta = 2^-1000", lambda: TailCase(2_000, Fraction(1, 2**1000))
    ),
}

LEMMA_1_AT_ALL_SIZES = {
    "delta = 1/20": Regime(
        "delta = 1/20 at every m", lambda: TailFamily(FOUR_DECADES, "1/20", 0.0)
    ),
    "delta = exp(-m/2)": Regime(
        "a delta that falls exponentially with m", lambda: TailFamily(FOUR_DECADES, 1, 0.5)
    ),
}

LEMMA_1_FALLING = {
    "delta = 1/20": Regime(
        "delta = 1/20 at every m", lambda: TailFamily(UP_TO_A_HUNDRED_THOUSAND, "1/20", 0.0)
    ),
    "delta = 1e-6": Regime(
        "delta = 1e-6 at every m", lambda: TailFamily(UP_TO_A_HUNDRED_THOUSAND, "1/1000000", 0.0)
    ),
    "delta = exp(-m/2)": Regime(
        "a delta that falls exponentially with m",
        lambda: TailFamily(UP_TO_A_HUNDRED_THOUSAND, 1, 0.5),
    ),
    "delta = exp(-m/10)": Regime(
        "a delta that falls exponentially with m",
        lambda: TailFamily(UP_TO_A_HUNDRED_THOUSAND, 1, 0.1),
    ),
    "delta = exp(-m/1000)": Regime(
        "a delta that falls exponentially, but slowly",
        lambda: TailFamily(UP_TO_A_HUNDRED_THOUSAND, 1, 0.001),
    ),
}

LEMMA_1_FEW = {
    "two samples": Regime("m = 2, delta = 1/2", lambda: TailCase(2, _HALF)),
    "one sample": Regime("m = 1, delta = 1/2", lambda: TailCase(1, _HALF)),
}

LEMMA_2_REGIMES = {
    "apart": Regime(
        "P(h_Q* != h_P*) = 1/2", lambda: DisagreementCase(PowerOfSize(0.5, 0.0), FOUR_DECADES)
    ),
    "within 3/n_T": Regime(
        "P(h_Q* != h_P*) = 3/n_T", lambda: DisagreementCase(PowerOfSize(3.0, 1.0), FOUR_DECADES)
    ),
}

EXAMPLE_REGIMES = {
    "target in the middle": Regime(
        "P on [0, 1], Q on [1/4, 3/4], t* = 1/2",
        lambda: UniformPair(0, 1, "1/4", "3/4", "1/2"),
    ),
    "target off the middle": Regime(
        "P on [0, 1], Q on [0, 1/2], t* = 3/8", lambda: UniformPair(0, 1, 0, "1/2", "3/8")
    ),
    "target at Q's end": Regime(
        "P on [0, 1], Q on [0, 1/2], t* = 1/2", lambda: UniformPair(0, 1, 0, "1/2", "1/2")
    ),
    "Q = P": Regime("both on [0, 1]", lambda: UniformPair(0, 1, 0, 1, "1/3")),
}


# ------------------------------------------------------------ the statements

_ROUNDING = 1e-12
_MET = "first condition met in {:.0%}"
_NO_GROWTH = sp.Rational(1, 20)


def _law(population: Population) -> frozenset[tuple[Source, Fraction]]:
    """Return a mixture's parts with their weights, merging equal parts."""
    weights: dict[Source, Fraction] = {}
    for weight, source in population.present:
        weights[source] = weights.get(source, Fraction(0)) + weight
    return frozenset(weights.items())


@lru_cache
def _trained(system: ServerAssistedSystem) -> tuple[Population, ...]:
    """Return the training population at each size."""
    return tuple(system.training(value) for value in system.sizes)


@lru_cache
def _relations(system: ServerAssistedSystem) -> tuple[PositiveRelation, ...]:
    """Return the training population's relation to the target at each size."""
    return tuple(relate(system.target, training) for training in _trained(system))


@lru_cache
def _needed_alphas(system: ServerAssistedSystem) -> tuple[float, ...]:
    """Return Assumption 2's alpha for min(1, beta) at each size, or () if there is no relation."""
    trained, relations = _trained(system), _relations(system)
    if not all(found.holds for found in relations):
        return ()
    used = [
        min(Fraction(1), Fraction(found.beta)) if found.beta < math.inf else Fraction(1)
        for found in relations
    ]
    return tuple(
        float(alpha_bounds(system.target, training, exponent).at_most)
        for training, exponent in zip(trained, used, strict=True)
    )


def slope(sizes: tuple[int, ...], values: Sequence[float]) -> float:
    """Return the slope of log(value) over log(size), or zero if all values are zero."""
    if not any(values):
        return 0.0
    with np.errstate(divide="ignore"):
        heights = np.log(np.array(values))
    return float(np.polyfit(np.log(np.array(sizes, dtype=np.float64)), heights, 1)[0])


def _growth_of_alpha(system: ServerAssistedSystem) -> float:
    needed = _needed_alphas(system)
    return slope(system.sizes, needed) if needed else math.inf


def growth_of_offset(complexity: Callable[[int, float], float]) -> Callable[[Any], float]:
    """Return a function for the growth of ``eps_P(h_Q*)/A(n_T, delta)`` with n."""

    def growth(system: ServerAssistedSystem) -> float:
        offsets = [
            float(system.target.excess(system.training(value).best))
            / complexity(system.split(value)[0], system.delta)
            for value in system.sizes
        ]
        return slope(system.sizes, offsets)

    return growth


def _growth_of_disagreement(case: DisagreementCase) -> float:
    """Return the growth of ``eps_P(h_Q*)/A`` without noise, when P(h != h_P*) is eps_P(h)."""
    shares = [case.mass(value) / cited_complexity(value, case.delta) for value in case.sizes]
    return slope(case.sizes, shares)


def _one(_: Any) -> int:
    """Return 1, the value of d_H, beta_Q, beta_P and the smallest c for noiseless thresholds."""
    return 1


_EXPONENT_OF = "Bernstein exponent of {}"
_OFFSET_GROWTH = "growth of eps_P(h_Q*)/A(n_T, 1/20) with n_T, as a slope in logarithms"

size = symbol("n", "n_T + n_S, all samples", positive=True)
beta = symbol(
    "beta",
    "largest exponent of Assumption 2, for P and Q",
    number=lambda system: min(float(found.beta) for found in _relations(system)),
    extended_nonnegative=True,
)
n_T = symbol("n_T", "the server's samples", positive=True)
beta_P = symbol(
    "beta_P",
    _EXPONENT_OF.format("P"),
    number=lambda system: float(system.target.beta),
    nonnegative=True,
)
beta_Q = symbol(
    "beta_Q",
    _EXPONENT_OF.format("Q"),
    number=lambda system: float(min(training.beta for training in _trained(system))),
    nonnegative=True,
)
alpha_P = symbol(
    "alpha_P",
    "constant of Assumption 1 for P, over all thresholds",
    number=lambda system: bernstein_constant(system.target, system.target.beta),
    extended_nonnegative=True,
)
alpha_Q = symbol(
    "alpha_Q",
    "constant of Assumption 1 for Q, over all thresholds",
    number=lambda system: max(bernstein_constant(q, q.beta) for q in _trained(system)),
    extended_nonnegative=True,
)
alpha = symbol(
    "alpha",
    "constant of Assumption 2 for min(1, beta), over all thresholds and sizes",
    number=lambda system: max(_needed_alphas(system), default=math.inf),
    extended_nonnegative=True,
)
alpha_growth = symbol(
    "g_alpha",
    "growth of alpha with n, as a slope in logarithms",
    number=_growth_of_alpha,
    extended_real=True,
)
offset_growth, cited_offset_growth = (
    symbol("g_offset", _OFFSET_GROWTH, number=growth_of_offset(complexity), extended_real=True)
    for complexity in (printed_complexity, cited_complexity)
)
laws = symbol(
    "N_Q",
    "number of different distributions Q over all n",
    number=lambda system: len({_law(training) for training in _trained(system)}),
    positive=True,
    integer=True,
)


def _measured(values: FloatArray, remark: str = "") -> Measurement:
    error = float(values.std(ddof=1) / math.sqrt(values.size))
    return Measurement(float(values.mean()), error, remark)


def _excess(
    system: ServerAssistedSystem, n: int, replicas: int, rng: np.random.Generator
) -> Measurement:
    """Return the expected excess error on P of the worst minimiser over n samples of Q.

    Without noise, the result is exact for n_T samples of the server and n_S of the clients. With
    noise, samples are drawn from Q, as in the paper, or from both populations if targets differ.
    """
    n_server, n_clients = system.split(n)
    clients, training = system.clients(n), system.training(n)
    if system.is_noiseless:
        draws = [(system.server, n_server), (clients, n_clients)]
        return Measurement(NoiselessLaw(system.target, draws).mean())
    if len({*system.target.targets, *training.targets}) > 1:
        drawn = sample_server_assisted(
            system.server, clients, n_server, n_clients, replicas, rng, target=system.target
        )
        return _measured(drawn.together)
    return _measured(sample_erm(system.target, training, n, replicas, rng).on_target)


def _draw_excess(
    system: ServerAssistedSystem, n: int, replicas: int, rng: np.random.Generator
) -> FloatArray:
    """Draw samples of the excess error that `_excess` computes without noise."""
    n_server, n_clients = system.split(n)
    draws = [(system.server, n_server), (system.clients(n), n_clients)]
    return sample_noiseless(system.target, draws, replicas, rng)


def _mass_beyond_target(system: ServerAssistedSystem, size: int) -> Fraction:
    """Return P's mass between the target and the clients' support on its right."""
    clients, target = system.clients(size), system.target.best
    free = [
        place
        for place in clients.places
        if place > target and clients.below(place) == clients.below(target)
    ]
    return system.target.below(max(free)) - system.target.below(target) if free else Fraction(0)


def _kept_by_few_server_samples(system: ServerAssistedSystem) -> KnownDecay | None:
    """State that the error does not decay if clients have no samples around the target.

    Any threshold in the gap between the target and the server's nearest sample is then a minimiser.
    Suppose that P has mass u in the part of the gap on the right. With probability (1 - u)^n_T, no
    server sample is there, and the worst minimiser errs by u. So the mean is at least
    u (1 - u)^n_T.
    """
    counts = {system.split(value)[0] for value in system.sizes}
    if len(counts) > 1 or not system.is_noiseless or system.server != system.target:
        return None
    gap = min(_mass_beyond_target(system, value) for value in system.sizes)
    least = gap * (1 - gap) ** counts.pop()
    return KnownDecay(0.0, f"at least {float(least):.2g} at every n") if least > 0 else None


_A1_P = Hypothesis("Assumption 1 for P", sp.Lt(alpha_P, sp.oo, evaluate=False), "Assumption 1")
_A1_Q = Hypothesis("Assumption 1 for Q", sp.Lt(alpha_Q, sp.oo, evaluate=False), "Assumption 1")
_A2 = Hypothesis("Assumption 2 with beta > 0", sp.Gt(beta, 0, evaluate=False), "Assumption 2")
_ONE_LAW = Hypothesis("one Q for all n", sp.Le(laws, 1), "Section 3.2: S_Q ~ Q for some Q")
_A2_CONSTANT = Hypothesis(
    "alpha does not grow with n",
    sp.Le(alpha_growth, _NO_GROWTH),
    "(15) to (1)",
    stated="alpha of Assumption 2 does not grow with n",
)

_CLOSE_TARGETS = Hypothesis(
    "eps_P(h_Q*) = O(A(n_T, delta))",
    sp.Le(offset_growth, _NO_GROWTH),
    "Theorem 3",
    stated="eps_P(h_Q*) = O(d_H/n_T log(n_T/d_H))",
)

THEOREM_2 = DecayClaim(
    id="pac/2",
    title="SA-FL's error decays in the number of all samples, n_T + n_S",
    source=f"{PAPER}, Theorem 2",
    quantity=DecayQuantity(
        _excess,
        lambda system: not system.is_noiseless,
        "E eps_P(h_Q^), the worst minimiser",
        _draw_excess,
        r"\mathbb{E}\,\varepsilon_P(\hat h_Q)",
        _kept_by_few_server_samples,
    ),
    variable=size,
    order=size ** (-sp.Min(1, beta) / (2 - beta_Q)),
    hypotheses=(_A1_P, _A2, _A1_Q, _ONE_LAW),
    symbols=(size, beta, beta_P, beta_Q, alpha_P, alpha_Q, alpha, alpha_growth, laws),
    domain=about(ServerAssistedSystem),
    regimes=THEOREM_2_REGIMES,
    note=(
        "Checked to the letter: P and Q are given first, with constants alpha and beta, and "
        "samples are drawn from them afterwards. So Q stays the same as n grows, and so does the "
        "server's share of all samples. If n_T is fixed instead, Q changes with n. Another "
        "reading claims the order for that case as well."
    ),
)

THEOREM_2_UNIFORM = replace(
    THEOREM_2,
    reading="uniform in Q",
    hypotheses=(_A1_P, _A2, _A1_Q),
    note=(
        "This reading claims more than is printed: Assumption 2 need only hold at each n, with "
        "some alpha and beta. If the parts of a mixture Q = lambda_1 D + lambda_2 P share their "
        "best hypothesis, the assumption is always met with beta = 1 and alpha = max(1, "
        "1/lambda_2 - 1), because eps_Q >= lambda_2 eps_P. This alpha is n_S/n_T. With n_T fixed, "
        "alpha grows in proportion to n, which O(.) hides, and an error of order 1/n_T remains."
    ),
)

THEOREM_2_DERIVED = replace(
    THEOREM_2,
    reading="derived",
    hypotheses=(*THEOREM_2_UNIFORM.hypotheses, _A2_CONSTANT),
    note=(
        "In (15) the proof bounds eps_P by eps_Q + alpha eps_Q^beta. It then drops alpha, which "
        "therefore must not grow with n. For a mixture, this means that lambda_2 = n_T/(n_T + n_S) "
        "must stay away from zero."
    ),
)

REMARK_2 = replace(
    THEOREM_2,
    id="pac/remark-2",
    kind=StatementKind.REMARK,
    title="Theorem 2 with a server whose data come from P', not P",
    source=f"{PAPER}, Remark 2",
    regimes=REMARK_2_REGIMES,
    note=(
        "The condition is Assumption 2 for P and Q = lambda_1 D + lambda_2 P'. With beta > 0, "
        "this assumption requires the best hypothesis for Q to be best for P as well. So P' must "
        "have the same target, but it may have other points and other noise, as long as D or P' "
        "has points around the target. The remark also mentions Theorem 3, but the conditions of "
        "that theorem are about samples of P, which the server then does not have."
    ),
)


def _excess_if_no_worse(
    system: ServerAssistedSystem, n: int, replicas: int, rng: np.random.Generator
) -> Measurement:
    """Return ``E eps_P(h_Q^) 1{first condition}``, and the probability of the condition.

    Without noise and with a single target, no minimiser errs on any sample, so the condition is
    always met. If clients and server have the same distribution, it is decided at random which of
    the n_T + n_S samples are the server's.
    """
    n_server, n_clients = system.split(n)
    clients, training = system.clients(n), system.training(n)
    if system.is_noiseless:
        law = NoiselessLaw(system.target, [(system.server, n_server), (clients, n_clients)])
        return Measurement(law.mean(), 0.0, _MET.format(1.0))
    if clients == system.target == system.server:
        everything = n_server + n_clients
        tag = n_server / everything
        sample = sample_erm(system.target, training, everything, replicas, rng, tag=tag)
        met = sample.tagged_errors <= 0
        return _measured(np.where(met, sample.on_target, 0.0), _MET.format(met.mean()))
    drawn = sample_server_assisted(
        system.server, clients, n_server, n_clients, replicas, rng, target=system.target
    )
    met = drawn.no_worse_on_server
    return _measured(np.where(met, drawn.together, 0.0), _MET.format(met.mean()))


THEOREM_3 = DecayClaim(
    id="pac/3",
    title="SA-FL is no worse than learning from the server's data",
    source=f"{PAPER}, Theorem 3",
    quantity=DecayQuantity(
        _excess_if_no_worse,
        lambda system: not system.is_noiseless,
        "E eps_P(h_Q^) on R_P^(h_Q^) <= R_P^(h_Q*), the worst minimiser",
        _draw_excess,
        r"\mathbb{E}\,\varepsilon_P(\hat h_Q)\,1\{\hat R_P(\hat h_Q)\leq\hat R_P(h_Q^*)\}",
    ),
    variable=n_T,
    order=n_T ** (-1 / (2 - beta_P)),
    hypotheses=(
        _A1_P,
        _CLOSE_TARGETS,
    ),
    domain=about(ServerAssistedSystem),
    regimes=THEOREM_3_REGIMES,
    note=(
        "The first condition is an event, and the error is counted only where the event occurs. "
        "Both conditions are evaluated, the second over all sizes. A is the printed expression; "
        "at a fixed delta, it differs from the A of the derived reading only by logarithms. h_Q* "
        "is the mixture's best threshold. Assumption 1 for Q is always met with beta_Q = 0, and "
        "nothing else uses it."
    ),
)

THEOREM_3_DERIVED = replace(
    THEOREM_3,
    reading="derived",
    read_as={offset_growth: cited_offset_growth},
    note=(
        "Lemma 2 drops a term sqrt(P(h_Q* != h_P*) A). By Assumption 1 and the second condition, "
        "this term is A^((1 + beta_P)/2), not O(A). It is still at most A^(1/(2 - beta_P)) where "
        "A <= 1, because (1 + beta_P)(2 - beta_P) - 2 = beta_P (1 - beta_P) >= 0. So the theorem "
        "is still true once the lemma is corrected. A claimed order in the number of samples can "
        "be refuted only by a limit, and no limit of the left side is known. So we cannot search "
        "for a refutation."
    ),
)


a = symbol("a", "left end of P's support", number=lambda pair: pair.a, real=True)
b = symbol("b", "right end of P's support", number=lambda pair: pair.b, real=True)
c = symbol("c", "left end of Q's support, a' in the paper", number=lambda pair: pair.c, real=True)
d = symbol("d", "right end of Q's support, b' in the paper", number=lambda pair: pair.d, real=True)
t = symbol("t", "the target t*", number=lambda pair: pair.target, real=True)
_ERRORS = (
    symbol("eps_P", "excess error on P: the probability of an error, minus that of h_P*"),
    symbol("eps_Q", "excess error on Q: the probability of an error, minus that of h_Q*"),
    symbol("Rhat_P", "share of errors on the server's samples"),
    symbol("h_P", "h_P*, the best hypothesis for P"),
    symbol("h_Q", "h_Q*, the best hypothesis for Q; h_Q^, an empirical minimiser of Q's samples"),
)
_SAMPLES = "number of samples, drawn independently from Q"
m = symbol(
    "m",
    _SAMPLES,
    number=lambda case: case.m,
    positive=True,
    integer=True,
)
d_H = symbol("d_H", "VC dimension of the hypotheses", number=_one, positive=True, integer=True)
beta_1 = symbol("beta_Q", _EXPONENT_OF.format("Q"), number=_one, nonnegative=True)
delta = symbol("delta", "probability of failure", number=lambda case: case.delta, positive=True)
constant = symbol(
    "c",
    "a constant that depends only on Assumption 1's constant",
    number=_one,
    positive=True,
)
A = sp.Symbol("A", real=True)
_OF_LEMMA_1 = (*_ERRORS, m, d_H, beta_1, delta)


def _noiseless_tail(level: Callable[[int, float], float]) -> Callable[[Any], tuple[float, float]]:
    """Return a function for P[eps_Q > A], noiseless thresholds on [0, 1]: 1/(2 - beta_Q) is 1."""

    def value(case: TailCase) -> tuple[float, float]:
        u = level(case.m, float(case.delta))
        chance = 2 * max(0.0, 1 - u) ** case.m - max(0.0, 1 - 2 * u) ** case.m
        if u >= 0.5:
            chance = 0.0
        return chance, _ROUNDING * case.m * chance

    return value


_PRINTED_A = as_printed(lambda: d_H / m * sp.log(m / d_H + 1 / m * sp.log(1 / delta)))
_CITED_A = as_printed(lambda: d_H / m * sp.log(m / d_H) + 1 / m * sp.log(1 / delta))
LEMMA_1 = LearningClaim(
    id="pac/lemma-1",
    title="The empirical minimiser's excess error is A(m, delta)^(1/(2 - beta_Q))",
    source=f"{PAPER}, Lemma 1, (18)",
    quantity=PointQuantity(
        _noiseless_tail(printed_complexity),
        "P[eps_Q(h_Q^) > A^(1/(2 - beta_Q))]",
        latex=r"P\left[\varepsilon_Q(\hat h_Q)>A^{\frac{1}{2-\beta_Q}}\right]",
    ),
    relation=Relation.AT_MOST,
    bound=delta,
    hypotheses=(),
    symbols=_OF_LEMMA_1,
    definitions={A: _PRINTED_A},
    domain=about(TailCase),
    regimes=LEMMA_1_REGIMES,
    kind=StatementKind.LEMMA,
    note=(
        "A(m, delta) = d_H/m log(m/d_H + 1/m log(1/delta)) has delta inside the logarithm. "
        "Thresholds without noise have P[eps_Q > u] = 2 (1-u)^m - (1-2u)^m. At delta = exp(-m/2) "
        "this requires u = 1 - exp(-1/2) = 0.39, while A is log(m + 1/2)/m, so no constant factor "
        "is enough for all m. (18) is an equation without a constant. We read it as <= with the "
        "constant 1, and the regimes here refute only that. The reading 'any constant' refutes it "
        "for every other constant. The smallest constants that would be enough on the regimes are "
        "0.64, 2.9, 11 and 77, in this order. With the constant 3, the lemma would be true at m = "
        "100 and delta = 1e-6. But at m = 2000 and delta = 2^-1000, it would fail just as it does "
        "with the constant 1. For m below d_H/2, A can be negative."
    ),
)

LEMMA_1_DERIVED = replace(
    LEMMA_1,
    reading="derived",
    quantity=PointQuantity(
        _noiseless_tail(cited_complexity),
        "P[eps_Q(h_Q^) > (c A)^(1/(2 - beta_Q))]",
        latex=r"P\left[\varepsilon_Q(\hat h_Q)>(c\,A)^{\frac{1}{2-\beta_Q}}\right]",
    ),
    hypotheses=(
        Hypothesis("enough samples", as_printed(lambda: sp.Ge(m, 2 * d_H)), "log(m/d_H) > 0"),
    ),
    symbols=(*_OF_LEMMA_1, constant),
    definitions={A: _CITED_A},
    note=(
        "This reading has A(m, delta) = d_H/m log(m/d_H) + 1/m log(1/delta), the usual term in "
        "uniform Bernstein bounds. It needs m >= 2 d_H, because with few samples the first part "
        "can vanish, and then no constant factor helps if delta is near 1. With one sample, for "
        "instance, the error can be 1/2 while A = log(1/delta). For thresholds without noise, d_H "
        "and beta_Q are 1, and c = 1 is enough because 2 (1-u)^m <= 2 exp(-m u) = 2 delta/m at u "
        "= A. Vapnik and Chervonenkis proved that some c is enough for every class; we do not "
        "check that."
    ),
)


def _tail_quantile(
    family: TailFamily, n: int, replicas: int, rng: np.random.Generator
) -> Measurement:
    """Return the u at which ``2 (1-u)^m - (1-2u)^m``, zero from 1/2 on, falls to delta."""
    del replicas, rng
    wanted, low, high = family.log_delta(n), 0.0, 0.5
    for _ in range(200):
        u = (low + high) / 2
        both = math.exp(n * (math.log1p(-2 * u) - math.log1p(-u))) if u < 0.5 else 0.0
        is_likelier = n * math.log1p(-u) + math.log(2 - both) > wanted
        low, high = (u, high) if is_likelier else (low, u)
    return Measurement(high)


def _kept_by_exponential_delta(family: TailFamily) -> KnownDecay | None:
    """State that the quantile does not decay, because P[eps_Q > u] >= (1 - u)^m on one side."""
    least = -math.expm1(-family.rate)
    if family.delta < 1 or least == 0:
        return None
    return KnownDecay(0.0, f"at least {least:.2g} at every m, as P[eps_Q > u] >= (1-u)^m")


LEMMA_1_ANY_CONSTANT = DecayClaim(
    id="pac/lemma-1",
    reading="any constant",
    title="The empirical minimiser's excess error is O(A(m, delta)^(1/(2 - beta_Q)))",
    source=LEMMA_1.source,
    quantity=DecayQuantity(
        _tail_quantile,
        lambda family: False,
        "(1 - delta)-quantile of eps_Q(h_Q^)",
        latex=r"\inf\{u:P[\varepsilon_Q(\hat h_Q)>u]\leq\delta\}",
        known_decay=_kept_by_exponential_delta,
    ),
    variable=m,
    order=(d_H / m) ** (1 / (2 - beta_1)),
    hypotheses=(),
    symbols=_OF_LEMMA_1,
    read_as={m: symbol("m", _SAMPLES)},
    domain=about(TailFamily),
    regimes=LEMMA_1_AT_ALL_SIZES,
    kind=StatementKind.LEMMA,
    note=(
        "This reading is more lenient than the printed one: it allows any constant factor that is "
        "the same for all m and all delta in (0, 1). A(m, delta) as printed is of order log(m)/m "
        "for every delta >= exp(-m/2), and the check ignores logarithms. But with probability "
        "(1-u)^m all m points lie outside an interval of mass u on one side of the target. So at "
        "delta = exp(-m/2) the quantile is at least 1 - exp(-1/2) at every m."
    ),
)


any_threshold = symbol("h", "any threshold", real=True)
_OF_ERRORS = (any_threshold, symbol("R", "probability of an error on Q", nonnegative=True))
OF_ERRORS = replace(
    LEMMA_1_ANY_CONSTANT,
    id="pac/lemma-1-errors",
    reading="printed",
    title="Error differences between hypotheses equal those on the sample, up to a term with c "
    "A(m, delta)",
    source=f"{PAPER}, Lemma 1, (16)",
    quantity=replace(
        LEMMA_1_ANY_CONSTANT.quantity,
        text="(1 - delta)-quantile of the largest R(h) - R(h_Q*) of an h that agrees with h_Q* "
        "on the sample",
        latex=(r"\inf\{u:P[\max_{\hat P(h\neq h_Q^*)=0}R(h)-R(h_Q^*)>u]\leq\delta\}"),
    ),
    regimes=LEMMA_1_FALLING,
    symbols=(*_OF_LEMMA_1, *_OF_ERRORS),
    kind=StatementKind.STEP,
    note=(
        "Checked to the letter, with any constant c that is the same for all m and delta. (16) is "
        "a part of Lemma 1 and is counted with it. It is checked at h^ = h_Q* and at every h that "
        "agrees with h_Q* on the sample. For these pairs, the square root in (16) is zero, so "
        "(16) says that R(h) - R(h_Q*) <= c A(m, delta). Other pairs are not checked, so a regime "
        "on which this holds does not prove (16)."
    ),
)
OF_ERRORS_DERIVED = replace(
    LEMMA_1_DERIVED,
    id=OF_ERRORS.id,
    title=OF_ERRORS.title,
    source=OF_ERRORS.source,
    quantity=replace(
        LEMMA_1_DERIVED.quantity,
        text="P[R(h) - R(h_Q*) > c A for some h that agrees with h_Q* on the sample]",
        latex=r"P\left[\max_{\hat P(h\neq h_Q^*)=0}R(h)-R(h_Q^*)>c\,A\right]",
    ),
    regimes={**LEMMA_1_REGIMES, **LEMMA_1_FEW},
    symbols=(*_OF_LEMMA_1, constant, *_OF_ERRORS),
    kind=StatementKind.STEP,
    note=(
        "This reading has A(m, delta) = d_H/m log(m/d_H) + 1/m log(1/delta), and is checked at "
        "the same pairs as the printed one. For these pairs and thresholds, c = 1 is enough."
    ),
)


def _unseen_quantile(
    family: TailFamily, n: int, replicas: int, rng: np.random.Generator
) -> Measurement:
    """Return the level s that ``P(h != h^)/2 - P^(h != h^)`` exceeds with probability delta."""
    del replicas, rng
    wanted, low, high = family.log_delta(n), 0.0, 0.5
    for _ in range(60):
        level = (low + high) / 2
        is_likelier = log_less_than_half_seen(n, level) > wanted
        low, high = (level, high) if is_likelier else (low, level)
    return Measurement(high)


def _left_unseen(family: TailFamily) -> KnownDecay | None:
    """State that the quantile does not decay: [0, 2s) is empty with probability (1 - 2s)^m."""
    least = -math.expm1(-family.rate) / 2
    if least == 0:
        return None
    return KnownDecay(0.0, f"at least {least:.2g} at every m, as P[no point in [0, 2s)] = (1-2s)^m")


def _disagreements_off(case: TailCase) -> tuple[float, float]:
    """Return the sum of the probabilities that each inequality of (17) fails, with the cited A."""
    level = _FACTOR_17 * cited_complexity(case.m, float(case.delta))
    chance = sum(
        math.exp(of_side(case.m, level))
        for of_side in (log_less_than_half_seen, log_more_than_twice_seen)
    )
    return chance, _ROUNDING * case.m * chance


_FACTOR_17 = 3
three = symbol("c", "a constant, here 3", positive=True)
_HYPOTHESES_17 = (
    any_threshold,
    symbol("hhat", "h^, the threshold at the left end", real=True),
)
OF_DISAGREEMENTS = replace(
    LEMMA_1_ANY_CONSTANT,
    id="pac/lemma-1-disagreements",
    reading="printed",
    title="Disagreements between hypotheses equal those on the sample, up to a factor 2 and a "
    "term c A",
    source=f"{PAPER}, Lemma 1, (17)",
    quantity=DecayQuantity(
        _unseen_quantile,
        lambda family: False,
        "(1 - delta)-quantile of the largest P(h != h^)/2 - P^(h != h^)",
        latex=(r"\inf\{u:P[\max_h\frac12P(h\neq\hat h)-\hat P(h\neq\hat h)>u]\leq\delta\}"),
        known_decay=_left_unseen,
    ),
    symbols=(*_OF_LEMMA_1, *_HYPOTHESES_17),
    regimes=LEMMA_1_FALLING,
    kind=StatementKind.STEP,
    note=(
        "Checked to the letter, with any constant c that is the same for all m and delta. (17) is "
        "a part of Lemma 1 and is counted with it. Only its left inequality is checked, for "
        "uniformly distributed points and thresholds h. The threshold at one end serves as h^, so "
        "h and h^ disagree on an interval that begins at that end. Other pairs are not checked."
    ),
)
OF_DISAGREEMENTS_DERIVED = replace(
    LEMMA_1_DERIVED,
    id=OF_DISAGREEMENTS.id,
    title=OF_DISAGREEMENTS.title,
    source=OF_DISAGREEMENTS.source,
    quantity=PointQuantity(
        _disagreements_off,
        "P[P(h != h^)/2 - c A > P^(h != h^) for some h] + P[P^(h != h^) > 2 P(h != h^) + c A for "
        "some h]",
        latex=(
            r"P[\exists h:\frac12P(h\neq\hat h)-c\,A>\hat P(h\neq\hat h)]+"
            r"P[\exists h:\hat P(h\neq\hat h)>2P(h\neq\hat h)+c\,A]"
        ),
    ),
    symbols=(*_OF_LEMMA_1, *_HYPOTHESES_17, three),
    regimes={**LEMMA_1_REGIMES, **LEMMA_1_FEW},
    kind=StatementKind.STEP,
    note=(
        "This reading checks both inequalities, with A(m, delta) = d_H/m log(m/d_H) + 1/m "
        "log(1/delta) and c = 3. The number of points below t is binomial. Each inequality can "
        "fail for at most m values of t, and by Chernoff's bound each of these failures has "
        "probability at most delta/m. Here h^ is the threshold at one end. For all pairs of "
        "hypotheses, the union bound runs over m^2 positions, which requires a larger c."
    ),
)


def _deviation(
    case: DisagreementCase, n: int, replicas: int, rng: np.random.Generator
) -> Measurement:
    """Return the (1 - delta)-quantile of ``R^(h_Q*) - R^(h_P*) - eps_P(h_Q*)``, exactly.

    Without noise, h_P* makes no errors and h_Q* makes a binomial number of them.
    """
    from scipy.stats import binom

    del replicas, rng
    mass = case.mass(n)
    return Measurement(float(binom.ppf(1 - case.delta, n, mass)) / n - mass)


def _binomial_deviation(case: DisagreementCase) -> KnownDecay | None:
    """Return the central limit theorem's order, if the two hypotheses approach each other slowly.

    Suppose that they differ on a mass of ``c/n_T^e`` with e < 1. Then the variance of the number of
    samples on which they differ grows without bound, so the deviation of the share is of order
    ``sqrt(mass/n_T)``.
    """
    mass = case.mass
    if not isinstance(mass, PowerOfSize) or not 0 <= mass.exponent < 1:
        return None
    if not 0 < mass(case.sizes[0]) < 1:
        return None
    exponent = (1 + mass.exponent) / 2
    power = "1/2" if mass.exponent == 0 else f"{exponent:.3g}"
    return KnownDecay(-exponent, f"of order n_T^(-{power}) by the central limit theorem")


server_excess = symbol(
    "r",
    "Rhat_P(h_Q^) - Rhat_P(h_Q*), shares of errors on the server's samples",
    number=lambda case: 0,  # at h_Q^ = h_Q*
    real=True,
)
LEMMA_2 = DecayClaim(
    id="pac/lemma-2",
    title="Empirical errors of h_Q* and h_P* differ by eps_P(h_Q*) + O(A(n_T, delta))",
    source=f"{PAPER}, Lemma 2, (22) to (24)",
    quantity=DecayQuantity(
        _deviation,
        lambda case: False,
        "19/20-quantile of Rhat_P(h_Q^) - Rhat_P(h_P*) - eps_P(h_Q*)",
        latex=(
            r"\inf\{u:P[\hat R_P(\hat h_Q)-\hat R_P(h_P^*)-\varepsilon_P(h_Q^*)>u]"
            r"\leq\frac{1}{20}\}"
        ),
        known_decay=_binomial_deviation,
    ),
    variable=n_T,
    order=1 / n_T,
    hypotheses=(
        Hypothesis(
            "no worse on the server's data",
            sp.Le(server_excess, 0, evaluate=False),
            "Lemma 2",
            stated="Rhat_P(h_Q^) <= Rhat_P(h_Q*)",
        ),
    ),
    symbols=(*_ERRORS, d_H, beta_P, offset_growth),
    read_as={
        n_T: symbol("n_T", "the server's samples, drawn independently from P"),
        beta_P: symbol("beta_P", _EXPONENT_OF.format("P"), number=_one),
        offset_growth: symbol("g_offset", _OFFSET_GROWTH, number=_growth_of_disagreement),
    },
    domain=about(DisagreementCase),
    regimes=LEMMA_2_REGIMES,
    kind=StatementKind.LEMMA,
    note=(
        "Checked to the letter: there is no condition on h_Q*. The lemma is checked at h_Q^ = "
        "h_Q*, which meets the lemma's own condition. The step from (23) to (24) treats "
        "sqrt(P(h_Q* != h_P*) A) as O(A). But the number of samples on which two fixed hypotheses "
        "differ is binomial, so the share of such samples deviates from its mean by an amount of "
        "order n_T^(-1/2)."
    ),
)

LEMMA_2_DERIVED = replace(
    LEMMA_2,
    reading="derived",
    hypotheses=(
        *LEMMA_2.hypotheses,
        _CLOSE_TARGETS,
        Hypothesis("no noise near the target", sp.Eq(beta_P, 1), "Assumption 1, (23) to (24)"),
    ),
    note=(
        "With Theorem 3's second condition and beta_P = 1, P(h_Q* != h_P*) is O(A) as well. For "
        "smaller beta_P, the difference is of order A^((1 + beta_P)/2)."
    ),
)


def _needed_everywhere(pair: UniformPair) -> Fraction | tuple[float, float]:
    """Return the smallest alpha for beta = 1 over all thresholds, or infinity if there is none."""
    on_p, on_q = pair.populations
    if not relate(on_p, on_q).holds:
        return math.inf, 0.0
    return Fraction(alpha_bounds(on_p, on_q, 1).at_least)


def _needed_inside(pair: UniformPair) -> Fraction:
    """Return the smallest alpha for beta = 1 over thresholds in [c, d]."""
    on_p, on_q = pair.populations
    pairs = [(Fraction(on_p.excess(end)), Fraction(on_q.excess(end))) for end in (pair.c, pair.d)]
    return max(abs(first - second) / second for first, second in pairs if second > 0)


def _supremum(thresholds: str) -> str:
    ratio = r"\frac{|\varepsilon_P(h_u)-\varepsilon_Q(h_u)|}{\varepsilon_Q(h_u)}"
    return rf"\sup_{{{thresholds}}}{ratio}"


EXAMPLE = LearningClaim(
    id="pac/example",
    title="Uniform P on [a, b] and Q on [c, d] are positively related with beta = 1",
    source=f"{PAPER}, below Assumption 2",
    quantity=PointQuantity(
        _needed_everywhere,
        "sup over thresholds of |eps_P - eps_Q|/eps_Q",
        latex=_supremum(r"u\in\mathbb R"),
    ),
    relation=Relation.AT_MOST,
    bound=as_printed(lambda: 1 - (d - c) / (b - a)),
    hypotheses=(Hypothesis("a target in Q's support", sp.Le(c, t), "below Assumption 2"),),
    symbols=_ERRORS,
    domain=about(UniformPair),
    regimes=EXAMPLE_REGIMES,
    kind=StatementKind.EXAMPLE,
    note=(
        "Checked to the letter, for any hypothesis h_t with real t. eps_Q is |t - t*|/(d - c) "
        "only up to the ends of Q's support; beyond them it stays constant while eps_P grows. If "
        "t* is at an end of Q's support, then eps_Q = 0 < eps_P beyond that end, so no alpha is "
        "enough, whatever beta > 0 is."
    ),
)

EXAMPLE_DERIVED = replace(
    EXAMPLE,
    reading="derived",
    quantity=PointQuantity(
        _needed_inside,
        "sup over thresholds in [c, d] of |eps_P - eps_Q|/eps_Q",
        latex=_supremum(r"c\leq u\leq d"),
    ),
    note="With thresholds restricted to Q's support, the printed alpha is exact.",
)

_BRACKET = Refutation(
    "As in (18), A(m, delta) has log(1/delta)/m inside the logarithm. But the probability that "
    "all samples miss an interval of constant mass falls only exponentially in m.",
    Weight.MISPRINT,
    "A = d_H/m log(m/d_H) + 1/m log(1/delta), with m >= 2 d_H",
    "derived",
    ("delta = exp(-m/2)", "delta = exp(-m/10)", "delta = exp(-m/1000)"),
    natural="delta = exp(-m/10)",
    answer="As in (18), the bracket of the logarithm closes too late.",
)

STATEMENTS = (
    replace(
        EXAMPLE,
        refutations=(
            Refutation(
                "eps_Q(h_t) = |t - t*|/(b' - a') holds only for t in [a', b']. Beyond the ends of "
                "Q's support eps_Q is constant, while eps_P(h_t) keeps growing.",
                Weight.MISSING_HYPOTHESIS,
                "thresholds in Q's support",
                "derived",
                ("target off the middle", "target at Q's end"),
                natural="target off the middle",
                answer="Thresholds inside the support of Q are meant.",
            ),
        ),
    ),
    EXAMPLE_DERIVED,
    replace(
        LEMMA_1,
        refutations=(
            Refutation(
                "A(m, delta) has log(1/delta)/m inside the logarithm. The bounds that the lemma "
                "cites have this term outside, and no constant factor makes up for the difference.",
                Weight.MISPRINT,
                "A = d_H/m log(m/d_H) + 1/m log(1/delta), with a constant factor and m >= 2 d_H",
                "derived",
                ("unlikely", "most unlikely", "exponentially unlikely"),
                natural="unlikely",
                answer="The bracket of the logarithm closes too late, and constants are left out.",
            ),
        ),
    ),
    LEMMA_1_DERIVED,
    replace(
        LEMMA_1_ANY_CONSTANT,
        refutations=(
            Refutation(
                "The probability that none of m samples is near the target falls only "
                "exponentially in m, while A as printed hardly depends on delta.",
                Weight.MISPRINT,
                "A = d_H/m log(m/d_H) + 1/m log(1/delta), as in the derived reading",
                regimes=("delta = exp(-m/2)",),
                natural="delta = exp(-m/2)",
                answer="With delta outside the logarithm, as above, a constant is enough.",
            ),
        ),
    ),
    replace(OF_ERRORS, refutations=(_BRACKET,)),
    OF_ERRORS_DERIVED,
    replace(OF_DISAGREEMENTS, refutations=(_BRACKET,)),
    OF_DISAGREEMENTS_DERIVED,
    THEOREM_2,
    replace(
        THEOREM_2_UNIFORM,
        refutations=(
            Refutation(
                "(15) bounds eps_P by eps_Q + alpha eps_Q^beta. (1) drops alpha, which grows with "
                "n if the server keeps the same number of samples.",
                Weight.GAP,
                "alpha does not grow with n",
                "derived",
                ("ten server samples",),
                natural="ten server samples",
                answer="Q is given first in the theorem, and does not change with n.",
            ),
        ),
    ),
    THEOREM_2_DERIVED,
    REMARK_2,
    replace(
        LEMMA_2,
        refutations=(
            Refutation(
                "The step from (23) to (24) treats sqrt(P(h_Q* != h_P*) A) as O(A). That is right "
                "only if P(h_Q* != h_P*) is itself O(A).",
                Weight.MISSING_HYPOTHESIS,
                "Theorem 3's second condition, and beta_P = 1",
                "derived",
                ("apart",),
                natural="apart",
                answer="The lemma is used only under Theorem 3's conditions, where it holds for "
                "beta_P = 1.",
            ),
        ),
    ),
    LEMMA_2_DERIVED,
    THEOREM_3,
    THEOREM_3_DERIVED,
)
