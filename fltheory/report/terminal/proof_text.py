"""Short texts on a proof for every client loss and on an audit of a theorem."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from fltheory.decimals import fraction_text, how_many
from fltheory.worst_case.audits.audit import Audit, AuditFinding
from fltheory.worst_case.audits.run_audit import RunAudit
from fltheory.worst_case.proof.proof_file import (
    ClassOutcome,
    ProofFile,
    class_text,
    heterogeneity_text,
)
from fltheory.worst_case.rounds.bound import Bound
from fltheory.worst_case.rounds.measure import AnyClass


def proof_text(proof: ProofFile[Any]) -> str:
    """Return a proof's content as text. Verify the proof first, because this only reads it."""
    proved = ClassOutcome.PROVED
    lines = (f"scope: {proved.scope.value}", *proof.lines)
    heading = f"{proved.name} for every client loss, checked in fractions"
    return "\n".join([heading, *(f"  {line}" for line in lines)])


def audit_text(audit: Audit) -> str:
    """Return an audit as text, with verdicts and the printed bound over the best provable one."""
    return "\n".join(_audit_lines(audit))


def run_text(audit: RunAudit) -> str:
    """Return a theorem's bound on a run, the proved bound and the truth side by side."""
    theorem, proved = audit.theorem, audit.proved
    times = f"{audit.paper / proved.value:.4g} times less" if proved.value > 0 else "none at all"
    printed = theorem.reading == "printed"
    bound = "bound as printed" if printed else f"bound of the {theorem.reading} reading"
    name = "PROVED" if proved.proofs else "not proved, a solver finds"
    lines = [
        f"{theorem.id}: {theorem.title}; {how_many(audit.setting.rounds, 'round')}",
        f"  {bound}, {theorem.source} ({audit.verdict.outcome.name} here): {audit.paper:.6g}",
        f"  {name}: {proved.value:.6g}, {times}, at this setting's {proved.at}",
        f"  exact truth of this setting's clients: {audit.truth:.6g}",
    ]
    for proof in proved.proofs[:1]:
        count = len(proved.proofs)
        which = "" if count == 1 else f", the first of {count} for rounds that differ"
        lines += [f"  proof{which}:", *(f"    {line}" for line in proof.lines)]
    return "\n".join([*lines, *([f"  {audit.note}"] if audit.note else [])])


def _audit_lines(audit: Audit) -> Iterator[str]:
    theorem, played, clients = audit.theorem, audit.round, audit.client_class
    name = f"{theorem.id} ({theorem.reading})"
    yield f"{name}: {_verdict(audit)}"
    yield f"  scope: {audit.all_rounds.outcome.scope.value}"
    yield (
        f"  for all clients that are {class_text(clients.L, clients.mu)}, "
        f"{heterogeneity_text(clients.heterogeneity)}{_noise_text(clients)}"
    )
    # Without server steps, it is plain FedAvg.
    server = f", q = {fraction_text(played.q)}" if played.assist_lr else ""
    yield (
        f"  m = {played.participants} of {played.n_eligible} eligible clients, "
        f"{played.n_excluded} excluded, K = {played.local_steps}{server}, "
        f"eta_c = {played.client_lr}" + (f", eta_s = {played.assist_lr}" if server else "")
    )
    yield f"  one round, {audit.form.one_round}: {_finding(audit.one_round)}"
    yield f"  all rounds, {audit.form.all_rounds}: {_finding(audit.all_rounds)}"
    if audit.unconditional is not None:
        yield f"  one round, without the condition on q: {_finding(audit.unconditional)}"
    for hypothesis, holds in audit.hypotheses.items():
        if holds is not True:
            supposed = audit.supposed
            used = supposed is not None and audit.all_rounds.given and supposed.name == hypothesis
            undecided = (
                "assumed for the run; the proof for all rounds uses it"
                if used
                else ("not decided by these numbers; no proof used it")
            )
            fate = "fails here" if holds is False else undecided
            yield f"  hypothesis '{hypothesis}': {fate}"
    yield "  the paper's bound vs the best provable by one round:"
    yield from _comparison(audit)
    findings = (audit.one_round, audit.all_rounds, audit.unconditional)
    witnesses = (item.witness for item in findings if item is not None)
    # The same clients often break both the claim on one round and that on all rounds.
    for lines in dict.fromkeys(one.lines for one in witnesses if one is not None):
        yield "  clients that violate it:"
        yield from (f"    {line}" for line in lines)


def _noise_text(clients: AnyClass) -> str:
    levels = {"sigma": clients.sigma, "sigma_s": clients.server_sigma}
    noisy = [f"{name} = {level}" for name, level in levels.items() if level]
    return f", gradient noise {', '.join(noisy)}" if noisy else ", exact gradients"


def _verdict(audit: Audit) -> str:
    """Return the verdict on the theorem itself; a refutation must meet all of its hypotheses."""
    outcome = audit.all_rounds.outcome
    if outcome is ClassOutcome.PROVED:
        assert audit.all_rounds.certificate is not None
        of_runs = ""
        if audit.all_rounds.given and audit.supposed is not None:
            of_runs = f", for runs that meet '{audit.supposed.name}'"
        return f"PROVED at these parameters, for every client loss{of_runs}"
    if outcome is ClassOutcome.REFUTED and all(audit.hypotheses.values()):
        return "REFUTED"
    if audit.failed:
        verb = "fails" if len(audit.failed) == 1 else "fail"
        return f"INAPPLICABLE: {', '.join(audit.failed)} {verb}"
    return "UNDECIDED: not proved without the hypotheses that these numbers cannot decide"


def _finding(finding: AuditFinding) -> str:
    return f"{finding.outcome.name}, {finding.outcome.value}"


def _comparison(audit: Audit) -> Iterator[str]:
    paper, speed = audit.paper, audit.form.measure.speed
    yield f"    residual at the same {speed} {_pair(paper, audit.same_speed, 'residual')}"
    if audit.unconditional is not None and not math.isnan(audit.unconditional_ratio):
        yield (
            f"    without the condition on q the paper's is {audit.unconditional_ratio:.4g} times "
            "as large as the best"
        )
    if audit.supposed is not None and audit.given_residual is not None:
        yield (
            f"    for runs that meet '{audit.supposed.name}' the smallest residual is "
            f"{audit.given_residual:.4g}{_times(paper.residual, audit.given_residual)}"
        )
    yield f"    floor {_pair(paper, audit.least_floor, 'floor')}"
    if math.isnan(audit.best_speed):
        yield f"    {speed} {_near_one(paper.speed)}; no provable one was found"
        return
    slower = audit.rate_ratio
    times = "" if math.isnan(slower) else f", {slower:.3g} times as many rounds"
    yield f"    {speed} {_near_one(paper.speed)} vs {_near_one(audit.best_speed)}{times}"


def _near_one(rate: float) -> str:
    """Return a rate as text, as its distance from 1 if six digits would round it to 1."""
    return f"1 - {1 - rate:.4g}" if 0.99999 < rate < 1 else f"{rate:.6g}"


def _pair(paper: Bound, best: Bound | None, name: str) -> str:
    mine = getattr(paper, name)
    if best is None:
        return f"{mine:.4g}; no provable one was found"
    other = getattr(best, name)
    return f"{mine:.4g} vs {other:.4g}{_times(mine, other)}"


def _times(mine: float, other: float) -> str:
    return f", {mine / other:.4g} times as large" if 0 < other < math.inf else ""
