"""FedAvg under full participation: Li et al. (ICLR 2020), Theorem 1.

"On the Convergence of FedAvg on Non-IID Data". Steps of SGD are counted from the initial model w_1,
so that after R steps the model is w_T with T = R + 1.
"""

import math

import numpy as np
import sympy as sp

from fltheory.algorithms import Harmonic, LocalSgd
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.theorems import (
    BoundedQuantity,
    Family,
    Hypothesis,
    Parameter,
    Regime,
    RoundRange,
    Theorem,
    symbol,
)


# 1. The symbols of the paper. Numbers of a setting have names; others are functions of the setting.
def weighted_noise(setting):
    p = np.array(setting.algorithm.aggregation_weights)
    return float((p**2).sum()) * setting.problem.sigma**2


def largest_gradient(setting):
    """Bound sqrt(E||grad F_k(w_t^k, xi)||^2) over all k and t, for steps of at most 1/L.

    Without noise no model leaves the ball around w* of radius max(||w_1 - w*||, kappa r), where
    r is the distance of the farthest w_k*: a step moves by -eta H_k (w - w_k*). Noise adds a
    variance v with v <= (1 - eta mu)^2 v + eta^2 sigma^2, so at most eta_1 sigma^2 / mu.
    """
    problem, steps = setting.problem, setting.algorithm.step_sizes
    r = float(np.linalg.norm(problem.optima - problem.x_star, axis=1).max())
    start = float(np.linalg.norm(setting.x0 - problem.x_star))
    radius = max(start, problem.L / problem.mu * r)
    radius += math.sqrt(steps.at(1) * problem.sigma**2 / problem.mu)
    return math.hypot(problem.L * (radius + r), problem.sigma)


L = symbol("L", "smoothness", number="L", positive=True)
mu = symbol("mu", "strong convexity", number="mu", positive=True)
E = symbol("E", "local steps between two averages", number="local_steps", positive=True)
T = symbol(
    "T", "number of the last model; w_1 is the initial one", number="rounds + 1", positive=True
)
S = symbol("S", "sum_k p_k^2 sigma_k^2", number=weighted_noise, nonnegative=True)
# F* - sum_k p_k F_k*, and quadratic clients have F_k* = 0.
Gamma = symbol("Gamma", "F* - sum_k p_k F_k*", number=lambda s: s.problem.F_star, nonnegative=True)
G = symbol(
    "G",
    "bound on the root mean square of the stochastic gradients",
    number=largest_gradient,
    nonnegative=True,
)
D_1 = symbol("D_1", "||w_1 - w*||", number="sqrt(squared_distance)", nonnegative=True)
beta = symbol(
    "beta",
    "eta_t = beta / (gamma_0 + t)",
    number=lambda s: s.algorithm.step_sizes.scale,
    positive=True,
)
offset = symbol(
    "gamma_0",
    "offset of the steps",
    number=lambda s: s.algorithm.step_sizes.offset,
    nonnegative=True,
)
pi_min = symbol(
    "pi_min", "the least probability to take part", number="least_availability", nonnegative=True
)
kappa = symbol("kappa", "condition number", positive=True)
gamma = symbol("gamma", "offset of the steps that the theorem prescribes", positive=True)
B = symbol("B", "what noise and unlike clients add", nonnegative=True)


# 2. The settings that the theorem is about.
def decaying_local_sgd(setting):
    algorithm = setting.algorithm
    if not isinstance(algorithm, LocalSgd) or not isinstance(algorithm.step_sizes, Harmonic):
        raise ValueError(f"algorithm must be LocalSgd with Harmonic steps, got {algorithm!r}")
    return setting


# 3. A family of settings in which the step sizes follow the theorem.
def make(condition, spread, sigma, steps, local_steps, start):
    curvatures = [[1.0, 1 / condition], [1 / condition, 1.0]] * 2
    problem = QuadraticProblem(
        [np.diag(diagonal) for diagonal in curvatures],
        spread * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5], [0.0, -1.0]]),
        sigma=sigma,
    )
    weights = (0.25, 0.25, 0.25, 0.25)
    first = max(8 * problem.L / problem.mu, local_steps)
    algorithm = LocalSgd(Harmonic(2 / problem.mu, offset=first), int(local_steps), weights)
    x0 = problem.x_star + np.array([start, 0.0])
    return Setting(algorithm, problem, UniformSubset(4, 4), int(steps), x0)


FAMILY = Family(
    make,
    (
        Parameter("condition", 1, 100, 4, "kappa, with L = 1"),
        Parameter("steps", 1, 50, 10, "SGD steps, T - 1", whole=True),
        Parameter("local_steps", 1, 20, 5, "E", whole=True),
        Parameter("spread", 0.01, 100, 1, "distance of the clients' optima"),
        Parameter("sigma", 0, 10, 0, "noise of the gradients", logarithmic=False),
        Parameter("start", 0.01, 100, 1, "||w_1 - w*||"),
    ),
)

# 4. The statement.
THEOREM_1 = Theorem(
    id="li/1",
    reading="printed",
    title="FedAvg, everybody takes part, step sizes decay: the excess loss after T steps",
    source='Li et al., "On the Convergence of FedAvg on Non-IID Data" (ICLR 2020), Theorem 1',
    quantity=BoundedQuantity(
        "excess_loss", "last", RoundRange(0, 0), "E[F(w_T)] - F*", r"\mathbb E[F(w_T)]-F^*"
    ),
    bound=kappa / (gamma + T - 1) * (2 * B / mu + mu * gamma / 2 * D_1**2),
    hypotheses=(
        Hypothesis("smooth clients", sp.Lt(L, sp.oo, evaluate=False), "Assumption 1"),
        Hypothesis("strongly convex clients", sp.Gt(mu, 0, evaluate=False), "Assumption 2"),
        Hypothesis("bounded gradients", sp.Lt(G, sp.oo, evaluate=False), "Assumption 4"),
        Hypothesis("everybody takes part", sp.Eq(pi_min, 1), "Section 3.1"),
        Hypothesis("step sizes 2/(mu (gamma + t))", sp.Eq(beta, 2 / mu), "Theorem 1"),
        Hypothesis("their offset", sp.Eq(offset, gamma), "Theorem 1"),
    ),
    domain=decaying_local_sgd,
    definitions={
        kappa: L / mu,
        gamma: sp.Max(8 * kappa, E),
        B: S + 6 * L * Gamma + 8 * (E - 1) ** 2 * G**2,
    },
    regimes={
        "usual": Regime("kappa = 4, E = 5, sigma = 1", lambda: FAMILY.setting(sigma=1)),
        "one local step": Regime("E = 1", lambda: FAMILY.setting(sigma=1, local_steps=1)),
        "ill conditioned": Regime("kappa = 100", lambda: FAMILY.setting(sigma=1, condition=100)),
        "exact gradients": Regime("sigma = 0", FAMILY.setting),
    },
    family=FAMILY,
    note="To the letter. All eta_t are at most 1/(4 L), as eta_1 = 2/(mu (gamma + 1)).",
)

STATEMENTS = (THEOREM_1,)
