"""ProxSkip and ProxSkip-VR: gradient steps that skip most averages.

Malinovsky, Yi and Richtarik, "Variance Reduced ProxSkip" (NeurIPS 2022), Theorems 5 and 6; the
latter is due to Mishchenko et al. (ICML 2022).

Conventions
-----------
In the consensus form, ``x = (x_1, .., x_M)``, f(x) is the sum of the clients' losses and r requires
that all x_m are equal, so that ``h* = (grad f_1(x*), .., grad f_M(x*))``. A round is one step. The
Lyapunov function depends on models and controls, so it cannot be read off the server's model: its
mean has its own recursion here. ``c > 0`` before Assumption 4 is read as C >= 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from fltheory.algorithms import ProxSkip
from fltheory.claims.at_point import PointClaim
from fltheory.claims.statement import Statement
from fltheory.content import cached_by_content
from fltheory.engines import Setting
from fltheory.engines.enclosure.exact_setting import product, widened
from fltheory.exact_or_float import ROUNDINGS, is_exact, number
from fltheory.grammar.family import Family, Parameter
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import BoundedQuantity, PointQuantity, RoundRange
from fltheory.grammar.regime import JUST_BELOW, OwnRun, Regime
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import CURVATURE, GRADIENT, LENGTH, PURE, STEP
from fltheory.numbers.of_setting import value_in
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems.atlas.client_models import check_affordable, clients_in_the_plane

_PAPER = "Malinovsky, Yi and Richtarik (NeurIPS 2022)"


def _of_proxskip(setting: Setting) -> Setting:
    """Return the setting, or raise ValueError if the theorems are not about it."""
    if not isinstance(setting.algorithm, ProxSkip):
        raise ValueError(f"algorithm must be ProxSkip for its theorems, got {setting.algorithm!r}")
    problem, alpha = setting.problem, setting.problem.alpha
    if not isinstance(problem, QuadraticProblem):
        raise ValueError(
            f"problem must be a QuadraticProblem for ProxSkip's theorems, got {problem!r}"
        )
    if (alpha != alpha[0]).any():
        raise ValueError(
            f"target_weights must be equal for ProxSkip's theorems, got {alpha.tolist()}"
        )
    if setting.participation.fixed_size != problem.n_clients:
        raise ValueError(
            f"participation must include every client in every round, got {setting.participation!r}"
        )
    return setting


@cached_by_content(16)
def lyapunov(setting: Setting) -> tuple[Any, Any, float]:
    """Return Psi_0 and E Psi_T, and a bound on the error of the latter.

    With ``z_m = x_m - x*`` and ``u_m = h_m - h_m*``, a step is linear in (z, u) and the noise n.
    First, ``y = z - gamma (H z - u + n)``. Then z becomes either y or the mean of
    ``y - gamma/p u``, and u changes by ``p/gamma`` times the difference between z and y.
    So second moments obey a recursion.
    """
    problem: Any = setting.problem
    method: Any = setting.algorithm
    lr, chance = method.client_lr, method.communication
    size = problem.n_clients * problem.dim
    one = problem.hessians.flat[0] * 0 + 1  # in the setting's type: a step may be an integer
    hessian = np.zeros((size, size), dtype=int) * one
    for m, block in enumerate(problem.client_hessians):
        here = slice(m * problem.dim, (m + 1) * problem.dim)
        hessian[here, here] = block
    identity = np.eye(size, dtype=int) * one
    mean = np.kron(np.ones((problem.n_clients,) * 2, dtype=int), np.eye(problem.dim, dtype=int))
    mean = mean * one / problem.n_clients
    stepped = np.hstack([identity - lr * hessian, lr * identity, -lr * identity])
    control = np.hstack([0 * identity, identity, 0 * identity])
    averaged = mean @ (stepped - lr / chance * control)
    apart = np.vstack([stepped, control])
    together = np.vstack([averaged, control + chance / lr * (averaged - stepped)])
    # With models and controls, a step needs four products of matrices of twice the width.
    check_affordable(setting.x0, 4 * setting.rounds, problem.n_clients)
    start = np.concatenate([setting.x0 - problem.x_star] * problem.n_clients)
    first = np.concatenate([start, -problem.gradients_at_optimum.ravel()])
    moment = np.outer(first, first)
    noise = identity * (np.repeat(problem.client_sigmas**2, problem.dim) / problem.dim)
    exact = is_exact(setting.x0)
    first = last = _psi(moment, lr / chance)
    largest_yet = 0.0 if exact else first
    for t in range(setting.rounds):
        whole = np.block([[moment, moment[:, :size] * 0], [moment[:size] * 0, noise]])
        moment = chance * product(together, whole, together.T)
        moment = moment + (1 - chance) * product(apart, whole, apart.T)
        moment = widened(moment, t)
        last = _psi(moment, lr / chance)
        largest_yet = largest_yet if exact else max(largest_yet, last)
    return first, last, ROUNDINGS * (setting.rounds + 1) * size * largest_yet


def _psi(moment: Any, weight: Any) -> Any:
    squares = np.diagonal(moment)
    half = len(squares) // 2
    return number(squares[:half].sum() + weight * weight * squares[half:].sum())


L = symbol("L", "smoothness of every client", CURVATURE, "L", positive=True)
mu = symbol("mu", "strong convexity of every client", CURVATURE, "mu", positive=True)
gamma = symbol("gamma", "client_lr", STEP, "client_lr", positive=True)
p = symbol(
    "p", "probability of an average", PURE, lambda s: s.algorithm.communication, positive=True
)
T = symbol("T", "steps", PURE, "rounds", positive=True, integer=True)
Psi_0 = symbol("Psi_0", "Psi at the start", LENGTH**2, lambda s: lyapunov(s)[0], nonnegative=True)
noise = symbol("s", "noise of a client's gradient", GRADIENT, "sigma", nonnegative=True)
C = symbol(
    "C",
    "sum_i s_i^2 in Assumption 4, which is M s^2 for equal noise",
    GRADIENT**2,
    lambda s: number((s.problem.client_sigmas**2).sum()),
    real=True,
)


def _setting(
    *,
    condition: float = 4.0,
    spread: float = 1.0,
    communication: float = 0.25,
    rounds: int = 20,
    start: float = 1.0,
    step: float = 1.0,
    sigma: float = 0.0,
) -> Setting:
    """Return four clients in the plane with L = 1; ``step`` is gamma L."""
    problem = clients_in_the_plane(condition, spread, sigma)
    method = ProxSkip(step, communication)
    x0 = problem.x_star + np.array([start, 0.0])
    return Setting(method, problem, UniformSubset(4, 4), int(rounds), x0)


def _own(setting: Setting) -> Setting:
    """Return the setting with steps of 1/L and an average in every K-th step on average."""
    steps = value_in("local_steps", setting)
    method = ProxSkip(JUST_BELOW / setting.problem.L, 1 / steps)
    rounds = setting.rounds * steps
    return replace(setting, algorithm=method, rounds=rounds)


_OWN = OwnRun(
    _own,
    BoundedQuantity(
        "squared_distance",
        "last",
        RoundRange(0, 0),
        "E||x-_T - x*||^2, where x- is the clients' mean; Psi_T is at least M times this",
        r"\mathbb E\|\bar x_T-x_\star\|^2",
        LENGTH**2,
    ),
    divisor=lambda setting: setting.problem.n_clients,
    divided_by="over M",
)


def _regimes(make: Callable[..., Setting]) -> dict[str, Regime]:
    return {
        "usual": Regime("kappa = 4, an average in every fourth step, gamma = 1/L", make),
        "average in every step": Regime("p = 1", partial(make, communication=1.0)),
        "rare averages": Regime("p = 1/50", partial(make, communication=0.02, rounds=50)),
        "p of 1/sqrt(kappa)": Regime(
            "kappa = 100, p = 1/10", partial(make, condition=100.0, communication=0.1)
        ),
        "equal curvatures": Regime("kappa = 1", partial(make, condition=1.0)),
        "equal clients": Regime("all clients have the same optimum", partial(make, spread=0.0)),
        "started at the optimum": Regime("x_0 = x*, controls of zero", partial(make, start=0.0)),
        "one step": Regime("T = 1", partial(make, rounds=1)),
        "noisy gradients": Regime("s = 1", partial(make, sigma=1.0)),
        "too long a step": Regime("gamma = 1.5/L", partial(make, step=1.5)),
    }


def _family(make: Callable[..., Setting], *, noisy: bool) -> Family:
    noises = (Parameter("sigma", 0, 10, 1, "noise", logarithmic=False),) if noisy else ()
    return Family(
        make,
        (
            Parameter("condition", 1, 1000, 4, "kappa, with L = 1"),
            Parameter("communication", 0.01, 1, 0.25, "p"),
            Parameter("step", 0.01, 1, 1, "gamma L"),
            Parameter("rounds", 1, 100, 20, "T", whole=True),
            Parameter("spread", 0.01, 100, 1, "distance between the clients' optima"),
            Parameter("start", 0.01, 100, 1, "||x_0 - x*||"),
            *noises,
        ),
    )


THEOREM_6 = PointClaim(
    id="proxskip/6",
    title="ProxSkip: a Lyapunov function of models and controls after T steps",
    source=f"{_PAPER}, Theorem 6",
    quantity=PointQuantity(
        lambda setting: lyapunov(setting)[1:],
        "E Psi_T, Psi_t = ||x_t - x*||^2 + gamma^2/p^2 ||h_t - h*||^2",
        LENGTH**2,
    ),
    bound=as_printed(lambda: sp.Max((1 - gamma * mu) ** T, (1 - p**2) ** T) * Psi_0),
    hypotheses=(
        Hypothesis("strongly convex clients", sp.Gt(mu, 0, evaluate=False), "Assumption 2"),
        Hypothesis("small steps", as_printed(lambda: sp.Le(gamma, 1 / L)), "Theorem 6"),
        Hypothesis("exact gradients", sp.Eq(noise, 0), "Theorem 6"),
    ),
    domain=_of_proxskip,
    regimes=_regimes(_setting),
    family=_family(_setting, noisy=False),
    own_run=_OWN,
    note="Checked to the letter, in the consensus form.",
)

THEOREM_5 = replace(
    THEOREM_6,
    id="proxskip/5",
    title="ProxSkip with noisy gradients: a Lyapunov function of models and controls after T steps",
    source=f"{_PAPER}, Theorem 5",
    bound=as_printed(
        lambda: (
            sp.Max((1 - gamma * mu) ** T, (1 - p**2) ** T) * Psi_0
            + C * gamma**2 / sp.Min(gamma * mu, p**2)
        )
    ),
    hypotheses=(
        THEOREM_6.hypotheses[0],
        Hypothesis("small steps", as_printed(lambda: sp.Le(gamma, 1 / L)), "gamma <= 1/A"),
        Hypothesis("steps of at most 1/mu", as_printed(lambda: sp.Le(gamma, 1 / mu)), "Theorem 5"),
    ),
    regimes={
        **_regimes(_setting),
        "noise alone": Regime(
            "equal clients, x_0 = x*", partial(_setting, sigma=1.0, spread=0.0, start=0.0)
        ),
    },
    family=_family(_setting, noisy=True),
    note=(
        "Checked for gradients with independent noise of variance s^2 at each client. They meet "
        "Assumption 4 with A = L, B = 0, C = M s^2 and A~ = B~ = C~ = 0. Then W = 0, beta = 0, "
        "and 1 - beta = 1 is never the minimum, because p <= 1."
    ),
)

STATEMENTS: tuple[Statement, ...] = (THEOREM_5, THEOREM_6)
