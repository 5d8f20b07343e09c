"""SA-FL: Remarks 5 and 6, on SAFARI's two special cases and on what it achieves beside FedAvg.

Remark 5 has three statements: SAFARI is FedAvg at q = 1 and SGD at q = 0, and there the bounds of
Theorems 4 and 5 are SGD's classic ones. Remark 6 says that FedAvg ends in a ball of a size that
depends on sigma_G, and that SAFARI can achieve the rates of ideal participation: "can" is read as
for some q. Remarks 1 and 2 are on data (see ``pac/remark-2``); 3 and 4 repeat Theorems 4 and 5.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from fltheory.algorithms import FedAvg
from fltheory.claims.along_run import Theorem
from fltheory.claims.at_point import PointClaim
from fltheory.claims.statement import Statement
from fltheory.engines import Setting
from fltheory.engines.enclosure.enclosed import Work, rational_trajectory
from fltheory.engines.trajectory import FIELDS
from fltheory.exact_or_float import largest
from fltheory.grammar.hypothesis import Hypothesis
from fltheory.grammar.printed_form import as_printed
from fltheory.grammar.quantities import PointQuantity
from fltheory.grammar.refutation import StatementKind
from fltheory.grammar.units import GRADIENT, LENGTH
from fltheory.participation.process import process_of
from fltheory.theorems.sa_fl import regimes
from fltheory.theorems.sa_fl.repairs import STATEMENTS as REPAIRED
from fltheory.theorems.sa_fl.statements import THEOREM_4, THEOREM_5, as_safari, safari_of
from fltheory.theorems.sa_fl.symbols import (
    D_0,
    Delta_0,
    L,
    R,
    eta_s,
    mu,
    q,
    sigma_G,
    sigma_s,
)

_SOURCE = "SA-FL (ICML 2024), Remark"
_FIRST_ROUNDS = 2
_WORK = 2e7


def _first_rounds(setting: Setting, algorithm: Any) -> Any:
    """Return the moments of the first rounds, in fractions: all rounds are alike."""
    return rational_trajectory(
        _with(setting, algorithm=algorithm, rounds=_FIRST_ROUNDS), (), Work(_WORK)
    )


def _with(setting: Setting, **fields: Any) -> Setting:
    """Return the setting, or its exact twin, with some fields changed."""
    changed = object.__new__(Setting)
    for name in ("algorithm", "problem", "participation", "rounds", "x0"):
        object.__setattr__(changed, name, fields.get(name, getattr(setting, name)))
    return changed


def _off_fedavg(setting: Setting) -> tuple[Any, float]:
    """Return the largest difference of SAFARI's moments and FedAvg's."""
    safari = safari_of(setting)
    ours = _first_rounds(setting, safari)
    theirs = _first_rounds(setting, FedAvg(safari.client_lr, safari.local_steps))
    gaps = [abs(ours[name] - theirs[name]) for name in FIELDS]
    return max(np.concatenate(gaps)), 0.0


def _off_sgd(setting: Setting) -> tuple[Any, float]:
    """Return the largest difference of SAFARI's E||x_r - x*||^2 and that of SGD on F.

    SGD's errors follow ``C -> (1 - eta H) C (1 - eta H)' + eta^2 sigma_s^2/d``.
    """
    problem: Any = setting.problem
    safari = safari_of(setting)
    ours = _first_rounds(setting, safari)["squared_distance"]
    dim = problem.dim
    move = np.eye(dim, dtype=int) - safari.assist_lr * problem.mean_hessian
    away = setting.x0 - problem.x_star
    errors = np.outer(away, away)
    gaps = []
    for distance in ours:
        gaps.append(abs(distance - np.trace(errors)))
        added = safari.assist_lr**2 * problem.server_sigma**2 / dim * np.eye(dim, dtype=int)
        errors = move @ errors @ move.T + added
    return largest(gaps), 2.0**-40


def _at(share: int, remark: int = 5) -> Hypothesis:
    case = "the clients alone" if share else "the server alone"
    return Hypothesis(case, sp.Eq(q, share), f"Remark {remark}")


AS_FEDAVG = PointClaim(
    id="sa-fl/remark-5-fedavg",
    reading="printed",
    title="SAFARI at q = 1 is FedAvg",
    source=f"{_SOURCE} 5, first case",
    quantity=PointQuantity(
        _off_fedavg, "largest difference of the moments of SAFARI's models and FedAvg's", LENGTH**2
    ),
    bound=sp.Integer(0),
    hypotheses=(_at(1),),
    domain=as_safari,
    regimes=regimes.REMARK_5,
    kind=StatementKind.REMARK,
    note=(
        "To the letter, for any clients, not only equal ones. For equal clients, sigma_G = 0, the "
        "remark advises q = 1, which Theorem 4's condition on q as printed excludes: N is then "
        "negative, and 1/(N/D + 1) as well."
    ),
)
AS_SGD = replace(
    AS_FEDAVG,
    id="sa-fl/remark-5-sgd",
    title="SAFARI at q = 0 is SGD on the server's data",
    source=f"{_SOURCE} 5, second case",
    quantity=PointQuantity(
        _off_sgd, "largest difference of E||x_r - x*||^2 of SAFARI and of SGD on F", LENGTH**2
    ),
    hypotheses=(_at(0),),
    note="To the letter: whatever the clients are, they are not asked.",
)

_smooth = next(item for item in THEOREM_4.hypotheses if item.name == "smooth clients")
_convex, _server_step = (
    next(item for item in THEOREM_5.hypotheses if item.name == name)
    for name in ("strongly convex clients", "small server step")
)
_CLASSIC_STEP = Hypothesis("small server step", sp.Le(eta_s, 1 / L), "SGD's classic bound")
_CLASSIC_NOTE = (
    "With q = 0 the terms with sigma_G vanish, even if sigma_G is infinite, and SGD's classic "
    "bound remains. The theorem's condition on q and on the client's step size are not required, "
    "because no client takes part."
)

CLASSIC_4 = Theorem(
    id="sa-fl/remark-5-bound-4",
    reading="printed",
    title="At q = 0 Theorem 4 is SGD's classic bound, without sigma_G",
    source=f"{_SOURCE} 5, on Theorem 4",
    quantity=THEOREM_4.quantity,
    bound=as_printed(lambda: 2 * Delta_0 / (R * eta_s) + L * eta_s * sigma_s**2),
    hypotheses=(_smooth, _at(0), _CLASSIC_STEP),
    domain=as_safari,
    regimes=regimes.REMARK_5,
    kind=StatementKind.REMARK,
    note=_CLASSIC_NOTE,
)
CLASSIC_5 = Theorem(
    id="sa-fl/remark-5-bound-5",
    reading="printed",
    title="At q = 0 Theorem 5 is SGD's classic bound, without sigma_G",
    source=f"{_SOURCE} 5, on Theorem 5",
    quantity=THEOREM_5.quantity,
    bound=as_printed(
        lambda: (
            (1 - 2 * eta_s * L * mu / (L + mu)) ** R * D_0**2
            + (L + mu) / (2 * L * mu) * eta_s * sigma_s**2
        )
    ),
    hypotheses=(_smooth, _convex, _at(0), _server_step),
    domain=as_safari,
    regimes=regimes.REMARK_5,
    kind=StatementKind.REMARK,
    note=_CLASSIC_NOTE,
)


def _gradient_where_fedavg_ends(setting: Setting) -> tuple[Any, float]:
    """Return ``||grad F||^2`` at the minimiser of the loss that the participants have on average.

    FedAvg ends there as its steps vanish. With one Hessian for all it is their mean optimum.
    """
    problem: Any = setting.problem
    presence = process_of(setting.participation).marginals
    if not np.isfinite(float(problem.sigma_G)):
        raise ValueError("problem must have clients of one Hessian for the error ball of FedAvg")
    mean = (presence[:, None] * problem.optima).sum(axis=0) / presence.sum()
    gradient = problem.mean_hessian @ (mean - problem.x_star)
    return (gradient * gradient).sum(), 2.0**-40


ERROR_BALL = PointClaim(
    id="sa-fl/remark-6-fedavg",
    reading="printed",
    title="FedAvg with incomplete participation ends in a ball whose size depends on sigma_G",
    source=f"{_SOURCE} 6, cited from Yang et al. (2022)",
    quantity=PointQuantity(
        _gradient_where_fedavg_ends,
        "||grad F||^2 at the minimiser of the participants' mean loss",
        GRADIENT**2,
    ),
    bound=sigma_G**2,
    hypotheses=(_convex, _at(1, remark=6)),
    domain=as_safari,
    regimes=regimes.REMARK_6,
    kind=StatementKind.REMARK,
    note=(
        "The remark has no formula. Read so: where FedAvg's model ends as its steps vanish, the "
        "gradient of F is at most sigma_G, as the participants' mean gradient is zero there and "
        "differs from that of F by at most sigma_G. It is zero only if those who take part have "
        "the optimum of all, and is sigma_G where one client alone takes part: the ball does not "
        "vanish."
    ),
)


_NONCONVEX: Any = next(item for item in REPAIRED if item.id == "sa-fl/corollary-1")
_CONVEX: Any = next(item for item in REPAIRED if item.id == "sa-fl/corollary-2")
_CAN = (
    "'Can' is read as 'for some q', and 'under mild conditions' as those of the repaired "
    "corollary. What achieves the rate is the server's data, with ever rarer clients' rounds, {}; "
    "q = 0, SGD at the server, achieves it too."
)

NONCONVEX = replace(
    _NONCONVEX,
    id="sa-fl/remark-6-nonconvex",
    reading="printed",
    title="SAFARI with incomplete participation can achieve O(1/sqrt(mKR)) on nonconvex losses",
    source=f"{_SOURCE} 6, on Corollary 1",
    axes=_NONCONVEX.axes[1:],
    derivation=None,
    regimes={**_NONCONVEX.regimes, **regimes.REMARK_6_NONCONVEX},
    kind=StatementKind.REMARK,
    note=_CAN.format("q <= 1/sqrt(mKR), with a server as quiet as sigma^2/(mK)"),
)
CONVEX = replace(
    _CONVEX,
    id="sa-fl/remark-6-convex",
    reading="printed",
    title="SAFARI with incomplete participation can achieve O(1/R) on strongly convex losses",
    source=f"{_SOURCE} 6, on Corollary 2",
    derivation=None,
    kind=StatementKind.REMARK,
    note=_CAN.format("q <= log(R)/R, with steps of Theta(log(R)/R)"),
)

STATEMENTS: tuple[Statement, ...] = (
    AS_FEDAVG,
    AS_SGD,
    CLASSIC_4,
    CLASSIC_5,
    ERROR_BALL,
    NONCONVEX,
    CONVEX,
)
