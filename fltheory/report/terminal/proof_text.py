"""What a proof for every client loss says, and an audit of a theorem, in a few lines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from fltheory.report.terminal.refutation_text import shown
from fltheory.worst_case import Certificate
from fltheory.worst_case.audit import Audit, ClassOutcome, Finding
from fltheory.worst_case.averaging import AveragingCertificate
from fltheory.worst_case.lyapunov import LyapunovCertificate
from fltheory.worst_case.theorem_form import AnyBound

_SYMBOLS = {
    "rate": "||x - x*||^2",
    "decrease": "||grad F(x)||^2",
    "heterogeneity": "{level}^2",
    "noise": "sigma^2",
    "server_noise": "sigma_s^2",
}


def proof_text(certificate: Certificate) -> str:
    """Return what a certificate of proof shows: the claim, the round and the class.

    It is to be verified before: this only reads it.
    """
    proof = certificate.proof
    level = "sigma_*" if proof.heterogeneity == "optimum" else "sigma_G"
    first, last = proof.client_lr
    steps = f"eta_c = {first}" if first == last else f"every eta_c from {first} to {last}"
    after, before = ("E F(x+)", "F(x) - ") if proof.of_descent else ("E||x+ - x*||^2", "")
    terms = before + " + ".join(
        f"({_polynomial(polynomial)}) {_SYMBOLS[name].format(level=level)}"
        for name, polynomial in proof.bound.items()
        if any(polynomial) and (name != "noise" or proof.noisy)
    )
    clients = "every number of" if proof.n_clients is None else f"up to {proof.n_clients}"
    return "\n".join(
        [
            "PROVED for every client loss, checked in fractions",
            f"  {after} <= {terms}",
            f"  for all clients that are {_curvature(proof.L, proof.mu)}, in any dimension, "
            f"{_heterogeneity(proof.heterogeneity)}"
            + (", with noise" if proof.noisy else ", with exact gradients"),
            f"  K = {proof.local_steps}, m = {proof.participants} of {clients} clients, "
            f"{shown(proof.excluded_share)} of them excluded, {steps}, eta_s = "
            f"{proof.assist_ratio} eta_c, q = {shown(proof.q)}",
        ]
    )


def averaging_text(certificate: AveragingCertificate) -> str:
    """Return what a certificate on weighted averaging shows: the claim, the round and the class.

    It is to be verified before: this only reads it.
    """
    proof = certificate.proof
    optimum = proof.heterogeneity == "optimum"
    level = "sigma_*" if optimum else "sigma_G"
    clients = "sum alpha_i ||grad F_i(x*)||^2 <= sigma_*^2" if optimum else _heterogeneity("")
    sums = "weight times update" if proof.averaging == "weights" else "mean update of those present"
    lines = [
        "PROVED for every client loss, checked in fractions",
        f"  E||x+ - x*||^2 <= ({_polynomial([proof.rate])}) ||x - x*||^2 + "
        f"({_polynomial([proof.heterogeneity_coefficient])}) {level}^2",
        f"  for all clients that are {_curvature(proof.L, proof.mu)}, in any dimension, {clients}, "
        "with exact gradients, x* of sum alpha_i F_i",
        f"  K = {proof.local_steps}, eta_c = {proof.client_lr}, x+ = x + {proof.server_lr} times "
        f"{sums}, clients present independently of all else:",
    ]
    for own in proof.groups:
        weight = f", weight {shown(own.weight)}" if proof.averaging == "weights" else ""
        lines.append(
            f"    {own.n_clients} with probability {shown(own.availability)}, alpha = "
            f"{shown(own.target_weight)}{weight}"
        )
    return "\n".join(lines)


def _curvature(smoothness: Fraction, mu: Fraction) -> str:
    if mu < 0:
        least = "" if mu == -smoothness else f", of curvature {shown(mu)} at least"
        return f"{shown(smoothness)}-smooth, convex or not{least}"
    return f"{shown(smoothness)}-smooth and {shown(mu)}-strongly convex"


def lyapunov_text(certificate: LyapunovCertificate) -> str:
    """Return what a Lyapunov function proves: the bound for all rounds, the method and the class.

    It is to be verified before: this only reads it.
    """
    proof = certificate.proof
    bound = {name: _from_above(value) for name, value in proof.bound.items()}
    drawn = f"{proof.participants} of {proof.n_clients} clients drawn uniformly"
    alone = f"{proof.n_clients} clients present with probability {shown(proof.probability)} each"
    first = {
        "zero": "y_i = 0 at first",
        "gradients": "y_i = grad F_i(x_0) at first, R counted from there",
    }
    level = "" if proof.start == "gradients" else f" + {bound['heterogeneity']} sigma_*^2"
    return "\n".join(
        [
            "PROVED for every client loss, checked in fractions",
            f"  E||x_R - x*||^2 <= {bound['rate']}^R ({bound['start']} ||x_0 - x*||^2{level})",
            f"  for all clients that are {shown(proof.L)}-smooth and {shown(proof.mu)}-strongly "
            "convex, in any dimension, 1/N sum ||grad F_i(x*)||^2 <= sigma_*^2, with exact "
            "gradients",
            "  x+ = x - step (mean of all y_i + surprise sum over those present of (grad F_i(x) - "
            "y_i)), their y_i+ = grad F_i(x)",
            f"  {drawn if proof.sampling == 'drawn' else alone}, step = {shown(proof.step)}, "
            f"surprise = {shown(proof.surprise)}, {first[proof.start]}",
        ]
    )


def _from_above(value: Fraction) -> str:
    """Return a number in seven digits, rounded up where those are not all."""
    digits = Context(prec=7, rounding=ROUND_CEILING)
    rounded = digits.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{rounded.normalize():f}" if rounded > Decimal("1e-4") else f"{rounded.normalize()}"


def _heterogeneity(kind: str) -> str:
    if kind == "optimum":
        return "1/N sum ||grad F_i(x*)||^2 <= sigma_*^2"
    return "||grad F_i - grad F|| <= sigma_G"


def _polynomial(coefficients: list[Fraction]) -> str:
    powers = ["", " eta_c", " eta_c^2", " eta_c^3"]
    parts = [
        f"{float(value):.6g}{power}"
        for value, power in zip(coefficients, powers, strict=False)
        if value
    ]
    return " + ".join(parts)


def audit_text(audit: Audit) -> str:
    """Return an audit: the verdicts, and how far the printed bound is from the best provable."""
    return "\n".join(_audit_lines(audit))


def _audit_lines(audit: Audit) -> Iterator[str]:
    theorem, played, clients = audit.theorem, audit.round, audit.client_class
    name = f"{theorem.id} ({theorem.reading})"
    yield f"{name}: {_verdict(audit)}"
    yield (
        f"  for all clients that are {_curvature(clients.L, clients.mu)}, "
        f"{_heterogeneity(clients.heterogeneity)}"
    )
    yield (
        f"  m = {played.participants} of {played.n_eligible} eligible clients, "
        f"{played.n_excluded} excluded, K = {played.local_steps}, q = {shown(played.q)}, "
        f"eta_c = {played.client_lr}, eta_s = {played.assist_lr}"
    )
    yield f"  one round, {audit.form.one_round}: {_finding(audit.one_round)}"
    yield f"  all rounds, {audit.form.all_rounds}: {_finding(audit.all_rounds)}"
    if audit.unconditional is not None:
        yield f"  one round, without the condition on q: {_finding(audit.unconditional)}"
    for hypothesis, holds in audit.hypotheses.items():
        if holds is not True:
            fate = "fails here" if holds is False else "depends on the run; no proof used it"
            yield f"  hypothesis '{hypothesis}': {fate}"
    yield "  the paper's bound beside the best provable by one round:"
    yield from _comparison(audit)
    findings = (audit.one_round, audit.all_rounds, audit.unconditional)
    for finding in {id(item): item for item in findings if item is not None}.values():
        if finding.witness is not None:
            yield "  clients that break it:"
            yield from (f"    {line}" for line in finding.witness.lines)


def _verdict(audit: Audit) -> str:
    """Return the verdict on the theorem itself: a refutation must meet all its hypotheses."""
    outcome = audit.all_rounds.outcome
    if outcome is ClassOutcome.PROVED:
        return "PROVED at these parameters, for every client loss"
    if outcome is ClassOutcome.REFUTED and all(audit.hypotheses.values()):
        return "REFUTED"
    if audit.failed:
        verb = "fails" if len(audit.failed) == 1 else "fail"
        return f"INAPPLICABLE: {', '.join(audit.failed)} {verb}"
    return "UNDECIDED: not proved without the hypotheses on the run"


def _finding(finding: Finding) -> str:
    return f"{finding.outcome.name}, {finding.outcome.value}"


def _comparison(audit: Audit) -> Iterator[str]:
    paper, speed = audit.paper, audit.form.measure.speed
    yield f"    residual at the same {speed} {_pair(paper, audit.same_speed, 'residual')}"
    if audit.unconditional is not None:
        yield (
            f"    without the condition on q the paper's is {audit.unconditional_ratio:.4g} times "
            "as large as the best"
        )
    yield f"    floor {_pair(paper, audit.least_floor, 'floor')}"
    slower = audit.rate_ratio
    times = "" if math.isnan(slower) else f", {slower:.3g} times as many rounds"
    yield f"    {speed} {paper.speed:.6g} beside {audit.best_speed:.6g}{times}"


def _pair(paper: AnyBound, best: AnyBound | None, name: str) -> str:
    mine = getattr(paper, name)
    if best is None:
        return f"{mine:.4g}; none was found"
    other = getattr(best, name)
    times = f", {mine / other:.4g} times as large" if other > 0 else ""
    return f"{mine:.4g} beside {other:.4g}{times}"
