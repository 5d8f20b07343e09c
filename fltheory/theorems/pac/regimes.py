"""Learning problems on which SA-FL's Theorems 2 and 3 and their lemmas are checked."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from fltheory.grammar.regime import Regime
from fltheory.learnability import Source
from fltheory.learnability.populations import Marginal, Population, as_population, uniform
from fltheory.learnability.system import (
    DisagreementCase,
    PowerOfSize,
    ServerAssistedSystem,
    TailCase,
    TailFamily,
    UniformPair,
    clients_per_server,
    fixed,
    server_of,
    share_of_server,
)

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
    """Return a population of one source."""
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
        target, server or target, fixed(clients), sizes, share_of_server(_TENTH)
    )


def _fixed_server(clients: Population) -> ServerAssistedSystem:
    return ServerAssistedSystem(UNIFORM, UNIFORM, fixed(clients), FOUR_DECADES, server_of(10))


def _clients_only() -> ServerAssistedSystem:
    return ServerAssistedSystem(UNIFORM, UNIFORM, fixed(GAP), FOUR_DECADES, server_of(0))


THEOREM_2 = {
    "clients miss the middle": Regime(
        "P uniform, D without the middle half, a tenth of all samples the server's",
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

REMARK_2 = {
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
    """Return clients whose target is off by 2/n_T."""
    return source(uniform(0, 1), target=_HALF + Fraction(2, size))


def _shared(
    clients: Callable[[int], Population],
    *,
    target: Population = UNIFORM,
    sizes: tuple[int, ...] = FOUR_DECADES,
) -> ServerAssistedSystem:
    return ServerAssistedSystem(target, target, clients, sizes, clients_per_server(4))


THEOREM_3 = {
    "one target": Regime("D = P, n_S = 4 n_T", lambda: _shared(fixed(UNIFORM))),
    "one target with noise near it": Regime(
        "D = P, beta_P = 1/2, n_S = 4 n_T",
        lambda: _shared(fixed(NOISY), target=NOISY, sizes=(20, 200, 2_000, 20_000, 200_000)),
    ),
    "clients' target within 2/n_T": Regime(
        "D's labels change at 1/2 + 2/n_T", lambda: _shared(near_target, sizes=TWO_DECADES)
    ),
    "clients' target apart": Regime(
        "D's labels change at 3/5, P's at 1/2",
        lambda: _shared(fixed(source(uniform(0, 1), target=Fraction(3, 5))), sizes=TWO_DECADES),
    ),
}

LEMMA_1 = {
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

LEMMA_2 = {
    "apart": Regime(
        "P(h_Q* != h_P*) = 1/2", lambda: DisagreementCase(PowerOfSize(0.5, 0.0), FOUR_DECADES)
    ),
    "within 3/n_T": Regime(
        "P(h_Q* != h_P*) = 3/n_T", lambda: DisagreementCase(PowerOfSize(3.0, 1.0), FOUR_DECADES)
    ),
}

EXAMPLE = {
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
