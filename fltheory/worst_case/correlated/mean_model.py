"""CA-Fed's bounds on the mean model beside what is proved for every client loss, and the truth.

CA-Fed's Theorem 2 bounds ``E F_B(wbar_T) - F_B*``, its Theorem 1 then ``F - F*``. Both are bounded
here for all L-smooth, mu-strongly convex clients under independent on-off chains, with constant
steps. CA-Fed's class is wider: any chain with a limit, and models projected onto W.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from fltheory.algorithms import Constant
from fltheory.decimals import as_fraction
from fltheory.engines import Setting, exact
from fltheory.evidence.truths import Sampling
from fltheory.evidence.verdict import Verdict
from fltheory.numbers.projected_averaging import ProjectedAveraging
from fltheory.problems.weighted_objective import WeightedObjective
from fltheory.theorems import get
from fltheory.theorems.ca_fed.statements import THEOREM_1
from fltheory.theorems.ca_fed.symbols import excess_B
from fltheory.worst_case.correlated.bound import (
    CorrelatedBound,
    CorrelatedCertificate,
    best_correlated_bound,
    correlated_certificate,
)
from fltheory.worst_case.rounds.averaging_round import AveragingRound
from fltheory.worst_case.rounds.client_class import ClientClass

Objective: TypeAlias = Literal["biased", "own"]

MEAN_MODEL: Mapping[str, Objective] = {"ca-fed/1": "own", "ca-fed/2": "biased"}
"""Statements about the mean model: of F_B, whose weights are the biased ones, or of F."""


@dataclass(frozen=True)
class MeanModelAudit:
    """What a paper, a certificate and the truth say of ``E F(wbar_T) - F*`` on one setting.

    Attributes
    ----------
    theorem : str
    objective : {"biased", "own"}
        F_B or F.
    setting : Setting
    verdict : Verdict
        On CA-Fed's Theorem 2, derived reading.
    paper : float
        CA-Fed's bound.
    bound : CorrelatedBound
    certificate : CorrelatedCertificate or None
        Its proof; None if none was found.
    proved : float
        The certificate's value at this setting's heterogeneity and start; the solver's if there is
        none.
    truth : float
    """

    theorem: str
    objective: Objective
    setting: Setting
    verdict: Verdict
    paper: float
    bound: CorrelatedBound
    certificate: CorrelatedCertificate | None
    proved: float
    truth: float


def audit_mean_model(theorem: str, setting: Setting) -> MeanModelAudit:
    """Compare CA-Fed's bound on the mean model with the best that is proved, and with the truth.

    Parameters
    ----------
    theorem : str
        "ca-fed/2", of F_B, or "ca-fed/1": F itself, by Theorem 1 and what Theorem 2 says of F_B.
    setting : Setting
        Of CA-Fed's theorems, with constant steps and clients that come and go independently.

    Raises
    ------
    ValueError
        For another setting, with what is missing.
    ArithmeticError
        If no bound is found.
    """
    s = ProjectedAveraging(setting)
    if not isinstance(s.steps, Constant):
        raise ValueError(
            f"algorithm must have constant steps for a proof over all rounds, got {s.steps!r}"
        )
    objective = MEAN_MODEL[theorem]
    verdict = get("ca-fed/2", "derived").verdict(setting, Sampling())
    paper, truth = verdict.bound, verdict.truth
    if objective == "own":
        constants: dict[Any, Any] = {**THEOREM_1.constants(setting), excess_B: paper}
        printed = THEOREM_1.bound.subs(list(THEOREM_1.definitions.items())).subs(constants)
        paper = float(printed) if math.isfinite(paper) else math.inf
        truth = float(exact(setting).excess_loss[-1])
    a_round = AveragingRound.of(s.fedavg, setting.participation, _targets(s, objective))
    weights = np.array([float(w) for w in _targets(s, objective)])
    biased = WeightedObjective(s.problem, weights)
    hessians = np.broadcast_to(s.problem.hessians, (len(weights), *s.problem.hessians.shape[-2:]))
    gradients = np.einsum("nij,nj->ni", hessians, biased.minimiser - s.problem.optima)
    h = float(weights @ np.sum(gradients**2, axis=1))
    far = float(np.linalg.norm(np.asarray(s.x0, dtype=float) - biased.minimiser))
    clients = ClientClass(
        as_fraction(s.problem.L),
        as_fraction(s.problem.mu),
        sigma=as_fraction(s.problem.sigma),
        dissimilarity=as_fraction(math.sqrt(h)) if h > 0 else Fraction(1),
    )
    bound = best_correlated_bound(
        a_round, clients, measure="loss", rounds=s.rounds, distance=as_fraction(max(far, 1e-6))
    )
    try:
        made = correlated_certificate(bound)
    except ArithmeticError:
        return MeanModelAudit(
            theorem,
            objective,
            setting,
            verdict,
            paper,
            bound,
            None,
            bound.after(s.rounds, far),
            truth,
        )
    numbers = {name: float(value) for name, value in made.proof.bound.items()}
    sigma = float(s.problem.sigma)
    first = numbers["start"] * far**2 + numbers["start_heterogeneity"] * h
    first += numbers["start_noise"] * sigma**2
    proved = first / s.rounds + numbers["heterogeneity"] * h + numbers["noise"] * sigma**2
    return MeanModelAudit(theorem, objective, setting, verdict, paper, bound, made, proved, truth)


def _targets(s: ProjectedAveraging, objective: Objective) -> list[Any]:
    """Return the weights of F, or of F_B: in proportion to availability times weight."""
    if objective == "own":
        return [as_fraction(a) for a in s.problem.alpha.tolist()]
    pairs = zip(s.pi.tolist(), s.q.tolist(), strict=True)
    shares = [as_fraction(p) * as_fraction(q) for p, q in pairs]
    return [share / sum(shares) for share in shares]
