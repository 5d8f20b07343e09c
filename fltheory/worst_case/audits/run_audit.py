"""A printed bound on a run compared with the best proved for every client loss, and the truth.

On one setting, three numbers are compared: the theorem's bound after T rounds, the bound that is
proved for all losses of the setting's class, and the error of the setting's own clients. The class
is given by the setting's smoothness and convexity, noise, start and dissimilarity. A theorem's row
in `RUN_AUDITS` says how the theorem is audited.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import groupby
from typing import Any

import numpy as np

from fltheory import validation
from fltheory.algorithms import AveragedIterate, Constant, FedAvg, FedAWE
from fltheory.claims.statement import Statement
from fltheory.decimals import as_fraction
from fltheory.engines import Setting, exact
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Verdict
from fltheory.numbers.projected_averaging import ProjectedAveraging
from fltheory.participation import UniformSubset
from fltheory.participation.process import process_of
from fltheory.problems.base import gradients_at
from fltheory.problems.weighted_objective import WeightedObjective
from fltheory.theorems import get
from fltheory.theorems.ca_fed.regimes import four_clients
from fltheory.theorems.ca_fed.statements import THEOREM_1, excess_B
from fltheory.theorems.fedau.setting import fedau_of
from fltheory.worst_case.best_bounds import certificate
from fltheory.worst_case.correlated.bound import RoundsCertificate, best_correlated_bound
from fltheory.worst_case.correlated.rich import richer_bound
from fltheory.worst_case.memory import MemoryRound, proved_gap
from fltheory.worst_case.proof.proof_file import ProofFile, of_least_margin
from fltheory.worst_case.rounds.bound import Bound, best_bound_of, best_speed_of, bound_of
from fltheory.worst_case.rounds.certificate import proved, raised
from fltheory.worst_case.rounds.client_class import ClientClass
from fltheory.worst_case.rounds.measure import DESCENT, AnyClass, Gap
from fltheory.worst_case.rounds.one_round import AveragingRound, OneRound, Played

# Relative margins by which the proved bound may exceed the solver's value, tried in turn.
_MARGINS = (Fraction(1, 10**6), Fraction(1, 10**5), Fraction(1, 10**4))
# The least rate itself has no finite residual.
_NEAREST = 0.999


@dataclass(frozen=True)
class ProvedBound:
    """A bound on a run, proved for every client loss of a class.

    Attributes
    ----------
    value : float
        The bound at the setting's start and dissimilarity. It is only a solver's value if there is
        no proof.
    clients : ClientClass or SmoothClass
    proofs : tuple of ProofFile
        Proofs that together cover all rounds; empty if none was found.
    at : str
        The numbers of the setting at which the value is taken.
    """

    value: float
    clients: AnyClass
    proofs: tuple[ProofFile[Any], ...]
    at: str


@dataclass(frozen=True)
class RunAudit:
    """The paper's bound on a run's error, the proved bound and the true error.

    Attributes
    ----------
    theorem : Statement
    setting : Setting
    verdict : Verdict
        The verdict on the theorem on this setting.
    paper, truth : float
    proved : ProvedBound
    note : str
        The ways in which the paper's class is wider.
    """

    theorem: Statement
    setting: Setting
    verdict: Verdict
    paper: float
    truth: float
    proved: ProvedBound
    note: str = ""


Printed = tuple[Verdict, float, float]
"""A verdict on a setting, the paper's bound and the truth."""


@dataclass(frozen=True)
class _Row:
    """How a theorem is audited: which reading, which default setting, and which proof."""

    reading: str
    regime: str
    prove: Callable[[Setting], ProvedBound]
    printed: Callable[[Statement, Setting], Printed]
    played: Callable[[Statement, str], Setting]
    note: str = ""
    rich: Callable[[Setting], ProvedBound] | None = None


def audit_run(
    theorem: str,
    setting: Setting | None = None,
    *,
    regime: str | None = None,
    rich: bool = False,
) -> RunAudit:
    """Compare a theorem's bound on a run with the best proved bound and with the truth.

    Parameters
    ----------
    theorem : str
        An id in `RUN_AUDITS`.
    setting : Setting, optional
        A setting that the theorem covers.
    regime : str, optional
        The name of a regime, in place of a setting; by default, the regime of the theorem's row.
    rich : bool
        If the row allows it, use a Lyapunov function that also depends on gradients and losses at
        the model.

    Raises
    ------
    ValueError
        If there is no proof for such a setting; the message says what is missing.
    ArithmeticError
        If no bound is found.

    Examples
    --------
    >>> found = audit_run("local-gd/1")
    >>> found.truth < found.proved.value < found.paper
    True
    """
    validation.one_of("theorem", theorem, tuple(RUN_AUDITS))
    row = RUN_AUDITS[theorem]
    statement = get(theorem, row.reading)
    played = setting
    if played is None:
        if regime is not None:
            validation.one_of("regime", regime, tuple(statement.regimes))
        played = row.played(statement, regime or row.regime)
    prove = row.prove
    if rich:
        if row.rich is None:
            raise ValueError(
                f"rich must be left out for {theorem}: its proof uses a single function"
            )
        prove = row.rich
    found = prove(played)
    return RunAudit(statement, played, *row.printed(statement, played), found, row.note)


# ------------------------------------------------------------ what is printed, and where


def _printed(statement: Any, setting: Setting) -> Printed:
    verdict = statement.verdict(setting, Sampling())
    return verdict, verdict.bound, verdict.truth


def _printed_behind(order: Any, setting: Setting) -> Printed:
    """Return the bound, at these steps, of the theorem behind a claimed order."""
    return _printed(order.theorem, setting)


def _regime(statement: Statement, name: str) -> Setting:
    setting: Any = statement.regimes[name].setting
    return setting


def _at_its_steps(order: Any, name: str) -> Setting:
    """Return a regime's setting with the step sizes that the order prescribes for its rounds."""
    setting = _regime(order, name)
    scheduled: Setting = order.axes[0].schedule(setting, setting.rounds)
    return scheduled


def _one_local_step(statement: Statement, name: str) -> Setting:
    """Return a regime's setting with K = 1 and a step as long as all local steps of a round."""
    setting = _regime(statement, name)
    method: Any = setting.algorithm
    longer = replace(method, local_steps=1, client_lr=method.client_lr * method.local_steps)
    return replace(setting, algorithm=longer)


# ------------------------------------------------------------ numbers of a setting


def _numbers(setting: Setting) -> dict[str, Any]:
    problem: Any = setting.problem
    names = ("L", "sigma", "server_sigma")
    return {name: as_fraction(float(getattr(problem, name))) for name in names}


def _convex(setting: Setting, h: float) -> ClientClass:
    """Return the setting's class, with ``h = sum alpha_i ||grad F_i(x*)||^2``."""
    numbers = _numbers(setting)
    # A class must have room between mu and L.
    mu = min(as_fraction(float(setting.problem.mu)), numbers["L"] * Fraction(999, 1000))
    level = as_fraction(math.sqrt(h)) if h > 0 else Fraction(1)
    return ClientClass(mu=mu, dissimilarity=level, **numbers)


def _at_optimum(problem: Any, weights: Any = None) -> float:
    """Return ``sum alpha_i ||grad F_i(x*)||^2`` for the objective with these weights."""
    alpha = np.asarray(problem.alpha if weights is None else weights, dtype=float)
    minimiser = problem.x_star if weights is None else WeightedObjective(problem, alpha).minimiser
    return float(alpha @ np.sum(gradients_at(problem, minimiser) ** 2, axis=1))


def _squared_start(setting: Setting) -> float:
    return float(np.sum((setting.x0 - setting.problem.x_star) ** 2))


def _round(setting: Setting, targets: Any = None) -> Played:
    """Return the round of a setting in which all rounds are alike."""
    if process_of(setting.participation).client_chains is not None:
        return AveragingRound.of(setting.algorithm, setting.participation, targets)
    return OneRound.of(setting.algorithm, setting.participation)


# ------------------------------------------------------------ proofs


def _proved(bound: Bound, value: Callable[[Bound], float], at: str) -> ProvedBound:
    """Prove a bound on one round, and return it with the value it gives for all rounds."""
    for margin in _MARGINS:
        claim = raised(bound, 1 + margin)
        made = proved(bound.round, bound.client_class, claim)
        if made is not None:
            of_claim = bound_of(bound.round, bound.client_class, claim)
            return ProvedBound(value(of_claim), bound.client_class, (made,), at)
    return ProvedBound(value(bound), bound.client_class, (), at)


def _smooth(setting: Setting, sigma_G: float) -> AnyClass:
    """Return the class of smooth clients, convex or not, of this dissimilarity everywhere."""
    clients = DESCENT.clients(mu=None, heterogeneity="everywhere", **_numbers(setting))
    return replace(clients, dissimilarity=as_fraction(max(float(sigma_G), 1e-9)))


def _descent(setting: Setting) -> ProvedBound:
    """Prove a bound on the mean squared gradient."""
    problem: Any = setting.problem
    excess, rounds = float(problem.excess_loss(setting.x0)), setting.rounds
    clients = _smooth(setting, problem.sigma_G)
    bound = best_bound_of(_round(setting), clients, None, DESCENT, first=excess / rounds)
    return _proved(bound, lambda one: one.after(rounds, excess), "start and sigma_G")


def _descent_of_everybody(setting: Setting) -> ProvedBound:
    """Prove a bound for FedAWE with full participation and one local step, when it is FedAvg."""
    method: Any = setting.algorithm
    count = setting.problem.n_clients
    always = process_of(setting.participation).marginals.min() == 1
    if not isinstance(method, FedAWE) or method.local_steps != 1 or not always:
        raise ValueError(
            f"setting must be FedAWE with full participation and one local step, got {setting!r}"
        )
    plain = FedAvg(method.client_lr * method.server_lr, 1)
    return _descent(replace(setting, algorithm=plain, participation=UniformSubset(count, count)))


def _limit_of_descent(setting: Setting) -> ProvedBound:
    """Prove a bound on the limit, for the loss that a run with constant weights minimises."""
    of = fedau_of(setting)
    share = of.constant_weights * of.p
    clients = _smooth(setting, of.weighted_problem.sigma_G)
    bound = best_bound_of(_round(setting, share / share.sum()), clients, None, DESCENT)
    return _proved(bound, lambda one: one.floor, "sigma_G, of h")


def _gap(setting: Setting) -> ProvedBound:
    """Prove a bound on F at the mean of the models before each round."""
    method: Any = setting.algorithm
    if not isinstance(method, AveragedIterate):
        raise ValueError(f"algorithm must be an AveragedIterate, got {method!r}")
    clients = _convex(setting, _at_optimum(setting.problem))
    squared, rounds = _squared_start(setting), setting.rounds
    a_round = _round(replace(setting, algorithm=method.algorithm))
    bound = best_bound_of(a_round, clients, None, Gap(), first=squared / rounds)
    return _proved(bound, lambda one: one.after(rounds, math.sqrt(squared)), _AT_OPTIMUM)


_AT_OPTIMUM = "start and gradients at x*"


def _distance(setting: Setting) -> ProvedBound:
    """Prove a bound on the squared distance after the last round."""
    clients = _convex(setting, _at_optimum(setting.problem))
    rounds = [_round(setting)] * setting.rounds
    return _after(rounds, clients, _squared_start(setting))


def _loss_of_falling_steps(setting: Setting) -> ProvedBound:
    """Prove a bound on F at the last model: the gap is at most L/2 times the squared distance."""
    clients = _convex(setting, _at_optimum(setting.problem))
    method: Any = setting.algorithm
    rounds = [
        OneRound.of(
            replace(method, step_sizes=Constant(method.step_sizes.at(1 + t))), setting.participation
        )
        for t in range(setting.rounds)
    ]
    found = _after(rounds, clients, _squared_start(setting))
    return replace(found, value=float(clients.L) / 2 * found.value)


def _after(rounds: list[Any], clients: ClientClass, squared: float) -> ProvedBound:
    """Bound the squared distance round by round, each stretch of equal rounds at one rate."""
    proofs: list[ProofFile[Any]] = []
    for a_round, alike in groupby(rounds):
        found = _stretch(a_round, len(list(alike)), clients, squared)
        squared = found.value
        proofs += found.proofs
        if not found.proofs:
            return replace(found, value=math.inf)
    return ProvedBound(squared, clients, tuple(proofs), _AT_OPTIMUM)


def _stretch(a_round: Played, count: int, clients: ClientClass, squared: float) -> ProvedBound:
    from scipy.optimize import minimize_scalar

    found: list[Bound] = []

    def value(bound: Bound) -> float:
        return bound.after(count, math.sqrt(squared))

    def at(log_away: float) -> float:
        try:
            bound = best_bound_of(a_round, clients, as_fraction(1 - math.exp(log_away)))
        except ArithmeticError:
            return math.inf
        found.append(bound)
        return value(bound)

    fastest = math.log(_NEAREST * (1 - best_speed_of(a_round, clients)))
    at(fastest)
    minimize_scalar(at, bounds=(fastest - 4, fastest), method="bounded", options={"xatol": 1e-3})
    if not found:
        raise ArithmeticError("no rate below 1 was found: try a smaller step")
    return _proved(min(found, key=value), value, _AT_OPTIMUM)


def _mean_loss_with_memory(setting: Setting, *, weighted: bool) -> ProvedBound:
    """Prove a bound on the mean of F over the models before each round, weighted or not."""
    clients = _convex(setting, _at_optimum(setting.problem))
    a_round = MemoryRound.of(setting.algorithm, setting.participation)
    rate = 1 - clients.mu * a_round.step / 2 if weighted else Fraction(1)
    squared, rounds = _squared_start(setting), setting.rounds
    made = proved_gap(a_round, clients, rate, squared)
    if made is None:
        raise ArithmeticError("no function was found that proves a bound: try a smaller step")
    bound = {name: float(value) for name, value in made.proof.bound.items()}
    first = bound["start"] * squared + bound["heterogeneity"] * _at_optimum(setting.problem)
    weights = float(rate) ** np.arange(rounds)
    value = bound["rate"] ** rounds * first / (bound["gap"] * float(weights.sum()))
    return ProvedBound(value, clients, (made,), _AT_OPTIMUM)


# ------------------------------------------------------------ CA-Fed's mean model


def mean_model_round(setting: Setting, targets: Any = None) -> AveragingRound:
    """Return the round of a run, if CA-Fed's theorems bound the mean model of such runs."""
    fedavg = ProjectedAveraging(setting).fedavg
    return AveragingRound.of(fedavg, setting.participation, targets)


def _mean_model(biased: bool, rich: bool, setting: Setting) -> ProvedBound:
    """Prove a bound on F_B, or on F, of the mean model under on-off chains with constant steps."""
    s = ProjectedAveraging(setting)
    if not isinstance(s.steps, Constant):
        raise ValueError(
            f"algorithm must have constant steps for a proof over all rounds, got {s.steps!r}"
        )
    targets: Any = [as_fraction(a) for a in s.problem.alpha.tolist()]
    if biased:
        pairs = zip(s.pi.tolist(), s.q.tolist(), strict=True)
        shares = [as_fraction(p) * as_fraction(q) for p, q in pairs]
        targets = [share / sum(shares) for share in shares]
    weights = np.array([float(w) for w in targets])
    minimiser = WeightedObjective(s.problem, weights).minimiser
    h = _at_optimum(s.problem, weights)
    far = float(np.linalg.norm(np.asarray(s.x0, dtype=float) - minimiser))
    clients = _convex(setting, h)
    a_round = mean_model_round(setting, targets)
    bound = best_correlated_bound(
        a_round, clients, measure="loss", rounds=s.rounds, distance=as_fraction(max(far, 1e-6))
    )
    at = f"start and gradients at the minimiser of {'F_B' if biased else 'F'}"
    for found in [richer_bound(bound), bound] if rich else [bound]:
        made = of_least_margin(partial(certificate, found), map(float, _MARGINS))
        if made is not None:
            assert isinstance(made, RoundsCertificate)
            squares = as_fraction(far) ** 2, as_fraction(h), clients.sigma**2
            value = made.mean_after(s.rounds, *squares)
            return ProvedBound(float(value), clients, (made,), at)
    return ProvedBound(bound.after(s.rounds, far), clients, (), at)


def _of_own(statement: Statement, setting: Setting) -> Printed:
    """Return Theorem 1 with Theorem 2's bound substituted for F_B."""
    verdict, paper, _ = _printed(get("ca-fed/2", "derived"), setting)
    constants: dict[Any, Any] = {**THEOREM_1.constants(setting), excess_B: paper}
    printed = THEOREM_1.bound.subs(list(THEOREM_1.definitions.items())).subs(constants)
    truth = float(exact(setting).excess_loss[-1])
    return verdict, float(printed) if math.isfinite(paper) else math.inf, truth


def _four_clients(statement: Statement, name: str) -> Setting:
    """Return CA-Fed's setting with bursts: pi = 1/2, lambda = 0.9, steps of 0.1, T = 300."""
    return four_clients([0.5] * 4, 0.9, steps=Constant(0.1), local_steps=1, rounds=300, sigma=0.0)


_ANY_CHAIN = "CA-Fed's class is wider than what is proved: any chain with a limit, and projections"


def _row(
    reading: str,
    regime: str,
    prove: Callable[[Setting], ProvedBound],
    *,
    printed: Callable[[Statement, Setting], Printed] = _printed,
    played: Callable[[Statement, str], Setting] = _regime,
    note: str = "",
    rich: Callable[[Setting], ProvedBound] | None = None,
) -> _Row:
    return _Row(reading, regime, prove, printed, played, note, rich)


_order_row = partial(_row, played=_at_its_steps, printed=_printed_behind)
_memory_row = partial(_row, "derived", "noise-free", played=_one_local_step)
_mean_model_row = partial(_row, played=_four_clients, note=_ANY_CHAIN)
_everybody_row = partial(
    _row,
    "derived",
    "everybody, one local step",
    _descent_of_everybody,
    note="FedAWE's class is wider than what is proved: absent clients, and several local steps",
)
RUN_AUDITS: Mapping[str, _Row] = {
    "ca-fed/1": _mean_model_row(
        "printed",
        "",
        partial(_mean_model, False, False),
        rich=partial(_mean_model, False, True),
        printed=_of_own,
    ),
    "ca-fed/2": _mean_model_row(
        "derived",
        "",
        partial(_mean_model, True, False),
        rich=partial(_mean_model, True, True),
    ),
    "fedau/1": _row("derived", "known statistics", _limit_of_descent),
    "fedau/2-option-1": _row("derived", "known statistics", _descent),
    "fedau/2-option-2": _row("derived", "equal weights", _descent),
    "fedawe/1": _everybody_row(),
    "fedawe/corollary-1": _everybody_row(),
    "fedavg-li/1": _row("from w_1", "one local step", _loss_of_falling_steps),
    "fedavg-li/3": _row("from w_1", "one local step", _loss_of_falling_steps),
    "local-gd/1": _row("derived", "one local step", _gap),
    "local-gd/corollary-1": _row("derived", "one local step", _gap),
    "sa-fl-submission/corollary-1": _order_row("derived", "i.i.d.", _descent),
    "sa-fl/corollary-1": _order_row("derived", "unbiased sampling", _descent),
    "sa-fl/corollary-1-speedup": _order_row("derived", "i.i.d.", _descent),
    "sa-fl/corollary-2": _order_row("derived", "unbiased sampling", _distance),
    "scaffold/convex": _memory_row(prove=partial(_mean_loss_with_memory, weighted=False)),
    "scaffold/strongly-convex": _memory_row(prove=partial(_mean_loss_with_memory, weighted=True)),
}
"""How theorems on whole runs are audited, by id: a row is all that another one takes."""


@lru_cache(maxsize=len(RUN_AUDITS))
def times_best_provable(theorem: str, reading: str) -> float | None:
    """Return the ratio of a theorem's bound to the best provable one, on its row's setting.

    Return None if the theorem is not audited in this reading, or if nothing is proved.

    Examples
    --------
    >>> times_best_provable("local-gd/1", "printed") is None
    True
    """
    if theorem not in RUN_AUDITS or RUN_AUDITS[theorem].reading != reading:
        return None
    found = audit_run(theorem)
    return found.paper / found.proved.value if found.proved.proofs else None
