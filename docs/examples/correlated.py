"""Write the tables of docs/correlated.md: proved bounds for clients that come and go in bursts.

Run from the repository's root: ``python docs/examples/correlated.py``.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np

from fltheory.algorithms import Constant, Harmonic, Scheduled, WeightedFedAvg
from fltheory.engines import Setting, stationary
from fltheory.participation import MarkovOnOff
from fltheory.problems import QuadraticProblem
from fltheory.theorems.ca_fed.regimes import four_clients
from fltheory.worst_case import ClientClass, best_bound, certificate
from fltheory.worst_case.audits.run_audit import audit_run
from fltheory.worst_case.correlated.bound import (
    CorrelatedCertificate,
    best_correlated_bound,
    best_step,
    correlated_certificate,
)
from fltheory.worst_case.correlated.phases import (
    PhasesCertificate,
    best_two_phases,
    phases_certificate,
)
from fltheory.worst_case.correlated.polynomial import polynomial_bound, polynomial_certificate
from fltheory.worst_case.correlated.rich import richer_bound
from fltheory.worst_case.rounds.one_round import (
    AvailabilityGroup,
    Averaging,
    AveragingRound,
)

PAGE = Path(__file__).parents[1] / "correlated.md"
CLIENTS = ClientClass(1, "1/10")
CORRELATIONS = ("0", "1/2", "9/10", "19/20", "99/100")
# Correlation, local steps, step, rounds: of CA-Fed's four clients at pi = 1/2, exact gradients.
CA_FED = (
    (0.0, 1, 0.1, 300),
    (0.5, 1, 0.1, 300),
    (0.9, 1, 0.1, 300),
    (0.99, 1, 0.1, 300),
    (0.9, 2, 0.05, 300),
    (0.9, 1, 0.001, 300),
)


def on_off(
    sizes: Sequence[tuple[int, str]],
    correlation: str,
    client_lr: str,
    local_steps: int = 1,
    averaging: Averaging = "weights",
) -> AveragingRound:
    """Return a round of clients in groups, (size, pi), with weights 1/(N pi) or averaged."""
    n = sum(size for size, _ in sizes)
    groups = []
    for size, text in sizes:
        p = Fraction(text)
        weight = Fraction(1) if averaging == "present" else 1 / (n * p)
        groups.append(AvailabilityGroup(size, p, Fraction(1, n), weight, Fraction(correlation)))
    return AveragingRound(tuple(groups), averaging, local_steps, Fraction(client_lr), Fraction(1))


def proved_floor(a_round: AveragingRound) -> str:
    """Return a proved floor; if no certificate is found, the solver's in brackets."""
    bound = best_correlated_bound(a_round, CLIENTS)
    try:
        return f"{float(correlated_certificate(bound).floor):.4g}"
    except ArithmeticError:
        return f"({bound.floor:.4g})"


def proved_rich_floor(a_round: AveragingRound) -> str:
    """Return the same for a function of gradients, at the first margin that is proved."""
    bound = richer_bound(best_correlated_bound(a_round, CLIENTS))
    for margin in (1e-6, 1e-5, 1e-4):
        with contextlib.suppress(ArithmeticError):
            made = certificate(bound, margin)
            assert isinstance(made, CorrelatedCertificate)
            return f"{float(made.floor):.4g}"
    return f"({bound.floor:.4g})"


def rule(n: int, p: float, correlation: float, client_lr: float, local_steps: int = 1) -> float:
    """Return ``eta K (1 - pi)(1 + lambda)/(2 mu N pi (1 - lambda))``."""
    odds = (1 - p) / p * (1 + correlation) / (1 - correlation)
    return client_lr * local_steps * odds / (2 * 0.1 * n)


def worst_quadratic(n: int, p: float, correlation: float, client_lr: float) -> float:
    """Return the largest stationary truth per heterogeneity over several shared curvatures."""
    optima = np.arange(n)[:, None] - (n - 1) / 2
    found = []
    for curvature in (0.1, 0.2, 0.5, 1.0):
        problem = QuadraticProblem([[curvature]], optima / curvature)
        method = WeightedFedAvg([1 / (n * p)] * n, client_lr, 1)
        chains = MarkovOnOff([p] * n, correlation)
        truth = stationary(Setting(method, problem, chains, 1, [0.0])).squared_distance
        found.append(float(truth) / float(np.mean(optima**2)))
    return max(found)


def floors() -> Iterator[tuple[str, ...]]:
    """Yield floors for several correlations, N = 6."""
    truth = "exact truth, worst shared quadratics tried"
    yield "lambda", "proved floor", "proved, rich function", truth, "rule"
    for text in CORRELATIONS:
        value, a_round = float(Fraction(text)), on_off([(6, "1/2")], text, "1/10")
        yield (
            f"{value:g}",
            proved_floor(a_round),
            proved_rich_floor(a_round),
            f"{worst_quadratic(6, 0.5, value, 0.1):.4g}",
            f"{rule(6, 0.5, value, 0.1):.4g}",
        )


def small_steps() -> Iterator[tuple[str, ...]]:
    """Yield ratios of proved floors to the rule as the step vanishes, N = 10."""
    steps = ("1/10", "1/100", "1/1000", "1/10000")
    yield "lambda, K", *(f"eta K = {float(Fraction(step)):g}" for step in steps)
    for text, local_steps in (("1/2", 1), ("9/10", 1), ("99/100", 1), ("9/10", 2)):
        row = []
        for step in steps:
            each = str(Fraction(step) / local_steps)
            value = proved_floor(on_off([(10, "1/2")], text, each, local_steps))
            over = rule(10, 0.5, float(Fraction(text)), float(Fraction(each)), local_steps)
            shown = f"{float(value.strip('()')) / over:.4f}"
            row.append(shown if value[0] != "(" else f"({shown})")
        yield f"{float(Fraction(text)):g}, {local_steps}", *row


def ca_fed() -> Iterator[tuple[str, ...]]:
    """Yield the bound of CA-Fed's Theorem 2, the proved bound, and the truth."""
    yield "lambda", "E", "eta", "T", "CA-Fed", "proved", "truth", "CA-Fed over proved"
    for correlation, local_steps, step, rounds in CA_FED:
        setting = four_clients(
            [0.5] * 4, correlation, steps=Constant(step), local_steps=local_steps, rounds=rounds
        )
        found = audit_run("ca-fed/2", setting)
        value = found.proved.value
        proved = f"{value:.4g}" if found.proved.proofs else f"({value:.4g})"
        yield (
            f"{correlation:g}",
            str(local_steps),
            f"{step:g}",
            str(rounds),
            f"{found.paper:,.0f}",
            proved,
            f"{found.truth:.4g}",
            f"{found.paper / value:,.0f}",
        )


def bias() -> Iterator[tuple[str, ...]]:
    """Yield floors for two groups, averaged over those present and weighted."""
    steps = ("1/10", "1/100", "1/1000")
    yield "lambda, averaging", *(f"eta = {float(Fraction(step)):g}" for step in steps)
    two = [(2, "9/10"), (2, "3/10")]
    for text in ("1/2", "9/10"):
        for averaging, name in (("present", "over those present"), ("weights", "1/(N pi)")):
            row = [proved_floor(on_off(two, text, step, 1, averaging)) for step in steps]
            yield f"{float(Fraction(text)):g}, {name}", *row


def price() -> Iterator[tuple[str, ...]]:
    """Yield the best proved bound after T rounds, and its step."""
    yield "lambda", "T = 300", "its step", "T = 3,000", "its step"
    for text in ("0", "1/2", "9/10", "99/100"):
        row = [f"{float(Fraction(text)):g}"]
        for rounds in (300, 3000):
            a_round = on_off([(10, "1/2")], text, "1")
            found = best_step(a_round, CLIENTS, rounds=rounds, distance=10)
            made = correlated_certificate(found).proof.bound
            first = made["start"] * 100 + made["start_heterogeneity"]
            value = float(first / rounds + made["heterogeneity"])
            row += [f"{value:.3g}", f"{float(found.round.client_lr):.3g}"]
        yield tuple(row)


def two_phases() -> Iterator[tuple[str, ...]]:
    """Yield the best proved bounds of two phases, beside those of a constant step."""
    yield "lambda, T", "constant step, all rounds", "two phases, the second", "first", "second"
    for text in ("0", "9/10"):
        for rounds in (300, 3000):
            a_round = on_off([(10, "1/2")], text, "1")
            constant = best_step(a_round, CLIENTS, rounds=rounds, distance=10)
            found = best_two_phases(constant.round, CLIENTS, rounds=rounds, distance=10)
            made = phases_certificate(found, 1e-4).proof.bound
            yield (
                f"{float(Fraction(text)):g}, {rounds:,}",
                f"{constant.after(rounds, 10):.3g}",
                f"{float(made['start'] * 100 + made['heterogeneity']):.3g}",
                *(f"{own.rounds:,} of {float(own.client_lr):g}" for own in found.phases),
            )


def falling_steps() -> Iterator[tuple[str, ...]]:
    """Yield bounds on the last model for steps that decrease from round to round."""
    yield "steps", "T = 10", "T = 20", "T = 40"
    method = WeightedFedAvg((0.5,) * 4, 0.2, 1)
    schedules = (Constant(0.2), Harmonic(2.0, offset=9.0), Harmonic(0.8, offset=3.0))
    for steps, name in zip(schedules, ("0.2", "2/(t + 9)", "0.8/(t + 3)"), strict=True):
        row = []
        for rounds in (10, 20, 40):
            found = best_bound(
                Scheduled(method, steps),
                MarkovOnOff([0.5] * 4, 0.9),
                CLIENTS,
                measure="last",
                rounds=rounds,
                start_distance=10,
            )
            proof = certificate(found, 1e-3)
            assert isinstance(proof, PhasesCertificate)
            bound = proof.proof.bound
            row.append(f"{float(bound['start'] * 100 + bound['heterogeneity']):.3g}")
        yield name, *row


def many_clients() -> Iterator[tuple[str, ...]]:
    """Yield proved floors and times for one group, by polynomials in the number present."""
    yield "N", "proved floor", "with a block per number", "rule", "solve", "prove", "check"
    for n in (50, 100, 1_000, 10_000, 100_000):
        played = on_off([(n, "1/2")], "9/10", "1/10")
        clock = [time.perf_counter()]
        bound = polynomial_bound(played, CLIENTS)
        clock.append(time.perf_counter())
        made = polynomial_certificate(bound)
        clock.append(time.perf_counter())
        made.verify()
        clock.append(time.perf_counter())
        yield (
            f"{n:,}",
            f"{float(made.floor):.4g}",
            proved_floor(played) if n <= 100 else "",
            f"{rule(n, 0.5, 0.9, 0.1):.4g}",
            *(f"{after - before:.1f} s" for before, after in pairwise(clock)),
        )


TABLES: dict[str, Callable[[], Iterator[tuple[str, ...]]]] = {
    "floors": floors,
    "small steps": small_steps,
    "ca-fed": ca_fed,
    "bias": bias,
    "price": price,
    "two phases": two_phases,
    "falling steps": falling_steps,
    "many clients": many_clients,
}


def main() -> None:
    """Write all tables, or those named, into the page."""
    text = PAGE.read_text(encoding="utf-8")
    for name in sys.argv[1:] or TABLES:
        rows = TABLES[name]
        head, *body = rows()
        lines = [head, ("---",) * len(head), *body]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, after = text.split(begin)[0], text.split(end)[1]
        text = f"{before}{begin}\n{table}\n{end}{after}"
        PAGE.write_text(text, encoding="utf-8")
        print(table, flush=True)


if __name__ == "__main__":
    main()
