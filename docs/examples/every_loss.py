"""Write the tables and figures of docs/every-loss.md: bounds proved for every client loss.

Run from the repository's root: ``python docs/examples/every_loss.py``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fltheory import theorems
from fltheory.algorithms import FedAvg, FedVarp, Mifa, Safari, Scaffold, WeightedFedAvg
from fltheory.engines import Setting, exact
from fltheory.participation import Bernoulli, MarkovOnOff, UniformSubset
from fltheory.problems import QuadraticProblem
from fltheory.report.figures.figure_axes import write_figure
from fltheory.weights import for_setting, optimal
from fltheory.worst_case import (
    ClientClass,
    SafariRound,
    SmoothClass,
    audit,
    best_settings,
)
from fltheory.worst_case.audits.audit import Audit, Parameter, judge, threshold
from fltheory.worst_case.audits.run_audit import RUN_AUDITS, audit_run
from fltheory.worst_case.audits.theorem_form import DISTANCE_FORM
from fltheory.worst_case.memory import MemoryRound, lyapunov_bound_of
from fltheory.worst_case.rounds.best_settings import SettingTried, least_floor_weights
from fltheory.worst_case.rounds.bound import Bound, best_bound_of
from fltheory.worst_case.rounds.certificate import certificate as round_certificate
from fltheory.worst_case.rounds.one_round import AveragingRound

DOCS = Path(__file__).parents[1]
PAGE, MAP = DOCS / "every-loss.md", DOCS / "every-loss-map.svg"
FLOORS = DOCS / "every-loss-weights.svg"
BOUNDS = DOCS / "every-loss-bounds.svg"
MARKS = "<!-- {}: begin -->", "<!-- {}: end -->"
READINGS = {name: theorems.get("sa-fl/5", name) for name in ("printed", "derived", "repaired")}
DERIVED = READINGS["derived"]
DERIVED_4 = theorems.get("sa-fl/4", "derived")
EVERYWHERE = ClientClass(1, "1/10", "everywhere")
BASE = SafariRound(eligible=10, participants=4, local_steps=5, q="1/2", client_lr="1/40")
SETTINGS: dict[str, tuple[dict[str, Any], ClientClass]] = {
    "ten clients, none excluded": ({}, EVERYWHERE),
    "q = 1, FedAvg": ({"q": 1}, EVERYWHERE),
    "one local step": ({"local_steps": 1, "client_lr": "1/8"}, EVERYWHERE),
    "smaller steps": ({"client_lr": "1/400"}, EVERYWHERE),
    "condition 1,000": ({}, ClientClass(1, "1/1000", "everywhere")),
    "a million clients, m = 100": ({"eligible": 10**6, "participants": 100}, EVERYWHERE),
    "everybody takes part": ({"participants": 10}, EVERYWHERE),
    "noise of clients and server": (
        {}, ClientClass(1, "1/10", "everywhere", sigma=1, server_sigma=1)
    ),
    "one of ten excluded": ({"eligible": 9, "excluded": 1}, EVERYWHERE),
    "two of ten excluded": ({"eligible": 8, "excluded": 2}, EVERYWHERE),
    "six of ten excluded": ({"eligible": 4, "excluded": 6}, EVERYWHERE),
    "two of ten excluded, q = 1/20": ({"eligible": 8, "excluded": 2, "q": "1/20"}, EVERYWHERE),
    "one excluded, steps of 1/400, q = 1/20": (
        {"eligible": 9, "excluded": 1, "q": "1/20", "client_lr": "1/400"}, EVERYWHERE
    ),
    "one excluded, steps of 1/400, q = 1/2": (
        {"eligible": 9, "excluded": 1, "client_lr": "1/400"}, EVERYWHERE
    ),
}  # fmt: skip
FIRST = next(iter(SETTINGS))
SMOOTH = SmoothClass(1)
BASE_4 = replace(BASE, client_lr="1/60")
SETTINGS_4: dict[str, tuple[dict[str, Any], SmoothClass]] = {
    "ten clients, none excluded": ({}, SMOOTH),
    "q = 1, FedAvg": ({"q": 1}, SMOOTH),
    "one local step": ({"local_steps": 1, "client_lr": "1/12"}, SMOOTH),
    "smaller steps": ({"client_lr": "1/600"}, SMOOTH),
    "a million clients, m = 100": ({"eligible": 10**6, "participants": 100}, SMOOTH),
    "everybody takes part": ({"participants": 10}, SMOOTH),
    "noise of clients and server": ({}, SmoothClass(1, 1, 1)),
    "two of ten excluded": ({"eligible": 8, "excluded": 2}, SMOOTH),
    "two of ten excluded, q = 1/20": ({"eligible": 8, "excluded": 2, "q": "1/20"}, SMOOTH),
    "two of ten excluded, steps of 1/2000": (
        {"eligible": 8, "excluded": 2, "client_lr": "1/2000"}, SMOOTH
    ),
    "half of ten excluded, q = 1, steps of 1/150": (
        {"eligible": 5, "excluded": 5, "q": 1, "client_lr": "1/150"}, SMOOTH
    ),
}  # fmt: skip
RANGES: dict[Parameter, tuple[str, str, str]] = {
    "q": ("0", "1", "1/512"),
    "client_lr": ("1/400", "4", "1/256"),
}
THRESHOLDS: dict[str, tuple[int, Parameter, str]] = {
    "none excluded, steps of 1/400": (0, "q", "1/2"),
    "one of ten excluded, steps of 1/400": (1, "q", "1/2"),
    "two of ten excluded, steps of 1/400": (2, "q", "1/2"),
    "none excluded, q = 1": (0, "client_lr", "1"),
    "none excluded, q = 1/2": (0, "client_lr", "1/2"),
    "one of ten excluded, q = 1/20": (1, "client_lr", "1/20"),
}
OFTEN, RARELY = [0.9] * 5, [0.1] * 5
TARGETS = [0.1] * 10
STEP, LOCAL_STEPS, TOTAL = 0.05, 2, 2.0
STRONG = ClientClass(1, "1/10")
SHARES = [k / 40 for k in range(2, 34)] + [k / 400 for k in range(340, 390, 2)]
ONE = {"client_lr": 1.0, "local_steps": 1}
TEN, HUNDRED, MILLION = (UniformSubset(n, m) for n, m in ((10, 1), (100, 1), (10**6, 100)))
MEMORY: dict[str, tuple[MemoryRound, str, str, Fraction | None]] = {
    # Published: Defazio, Bach and Lacoste-Julien (2014); Schmidt, Le Roux and Bach (2017).
    "SAGA (FedVARP, m = 1), N = 10": (
        MemoryRound.of(FedVarp(**ONE), TEN), "1/3", "1/10", Fraction(39, 40)
    ),
    "SAGA, N = 100": (
        MemoryRound.of(FedVarp(**ONE), HUNDRED), "1/3", "1/100", Fraction(399, 400)
    ),
    "SAG (MIFA, m = 1), N = 10": (
        MemoryRound.of(Mifa(**ONE, start="zero"), TEN), "1/16", "1/10", Fraction(159, 160)
    ),
    "SAG, N = 10, a longer step": (
        MemoryRound.of(Mifa(**ONE, start="zero"), TEN), "1/3", "1/10", None
    ),
    "FedVARP and SCAFFOLD, m = 4 of 10": (
        MemoryRound.of(Scaffold(**ONE), UniformSubset(10, 4)), "1/3", "1/10", None
    ),
    "FedVARP and SCAFFOLD, m = 100 of a million": (
        MemoryRound.of(FedVarp(**ONE), MILLION), "1/3", "1/10", None
    ),
    "MIFA, m = 4 of 10": (
        MemoryRound.of(Mifa(**ONE, start="zero"), UniformSubset(10, 4)), "1/3", "1/10", None
    ),
    "MIFA with a waiting start, each of 10 present with probability 2/5": (
        MemoryRound.of(Mifa(**ONE), Bernoulli([0.4] * 10)), "1/3", "1/10", None
    ),
    "MIFA, m = 4 of 10, steps of 1/L": (
        MemoryRound.of(Mifa(**ONE, start="zero"), UniformSubset(10, 4)), "1", "1/10", None
    ),
    "MIFA, m = 4 of 10, steps of 3/L": (
        MemoryRound.of(Mifa(**ONE, start="zero"), UniformSubset(10, 4)), "3", "1/10", None
    ),
}  # fmt: skip
NOISY = ClientClass(1, "1/10", "everywhere", sigma=1, server_sigma=4, dissimilarity=2)
COSTS = {"communication": 10, "local_step": "1/10", "server_sample": 4}
QS = [Fraction(k, 40) for k in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40)]
STEPS = [Fraction(1, d) for d in (1600, 800, 400, 200, 100, 66, 50, 40, 30, 20)]


def lines(names: list[str], rows: list[list[str]]) -> str:
    head = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows)])


def verdicts(found: Audit) -> list[str]:
    return [item.outcome.name for item in (found.one_round, found.all_rounds)]


def times(*ratios: float) -> list[str]:
    return [f"{ratio:.3g}" for ratio in ratios]


@cache
def audited(name: str, reading: str) -> Audit:
    """Return the audit of a reading of Theorem 5 in a setting."""
    changed, clients = SETTINGS[name]
    return audit(READINGS[reading], clients, replace(BASE, **changed))


def table() -> str:
    rows = []
    for name in SETTINGS:
        found = audited(name, "derived")
        ratios = times(found.residual_ratio, found.floor_ratio, found.rate_ratio)
        rows.append([name, *verdicts(found), *ratios])
    return lines(["setting", "one round", "all rounds", "residual", "floor", "rounds"], rows)


def table_of_readings() -> str:
    """Return a table of all readings: whether the bound is proved for all rounds, and its floor."""
    rows = []
    for name in SETTINGS:
        row = [name]
        for reading in READINGS:
            found = audited(name, reading)
            row += [verdicts(found)[1], *times(found.floor_ratio)]
        rows.append(row)
    return lines(["setting", *(n for reading in READINGS for n in (reading, "floor"))], rows)


def table_of_thresholds() -> str:
    """Return a table of the range in which the derived reading's one-round inequality is proved."""
    rows = []
    for name, (excluded, parameter, q) in THRESHOLDS.items():
        played = replace(BASE, eligible=10 - excluded, excluded=excluded, q=q, client_lr="1/400")
        first, last, precision = RANGES[parameter]
        found = threshold(
            DERIVED, EVERYWHERE, played, parameter, first=first, last=last, precision=precision
        )
        ends = [
            "" if value is None else f"{float(value):.4f}"
            for value in (found.proved, found.refuted)
        ]
        rows.append([name, parameter, *ends])
    return lines(["setting", "varied", "proved up to", "refuted from"], rows)


def table_4() -> str:
    rows = []
    for name, (changed, clients) in SETTINGS_4.items():
        found = audit(DERIVED_4, clients, replace(BASE_4, **changed))
        without = found.unconditional
        assert without is not None
        residuals = times(found.residual_ratio, found.unconditional_ratio)
        others = times(found.floor_ratio, found.rate_ratio)
        rows.append([name, *verdicts(found), without.outcome.name, *residuals, *others])
    names = "setting, one round, all rounds, no condition, residual, no condition, floor, rounds"
    return lines(names.split(", "), rows)


def runs_table() -> str:
    """Return a table of bounds on whole runs, each on the default setting of `fltheory prove`."""
    rows = []
    for name in sorted(RUN_AUDITS):
        found = audit_run(name)
        values = [f"{value:.4g}" for value in (found.paper, found.proved.value, found.truth)]
        values[1] = values[1] if found.proved.proofs else f"({values[1]})"
        ratio = f"{found.paper / found.proved.value:.3g}"
        rows.append([f"`{name}`", str(found.setting.rounds), *values, ratio])
    return lines(["theorem", "rounds", "printed", "proved", "truth", "printed over proved"], rows)


def averaged(share: float) -> AveragingRound:
    """Return the round in which rarely available clients have a given share of all weights."""
    weights = [TOTAL * (1 - share) / 5] * 5 + [TOTAL * share / 5] * 5
    algorithm = WeightedFedAvg(tuple(weights), STEP, LOCAL_STEPS)
    return AveragingRound.of(algorithm, Bernoulli(OFTEN + RARELY), TARGETS)


def of_ca_fed(rounds: int) -> float:
    """Return the share of rarely available clients in CA-Fed's optimal weights.

    The clients share a Hessian and have gradients of length one at the optimum.
    """
    tilts = np.repeat([[0.0, 1.0], [0.0, -1.0]], 5, axis=0)
    problem = QuadraticProblem(np.diag([1.0, 0.1]), -tilts / [1.0, 0.1])
    chain = MarkovOnOff(OFTEN + RARELY, 0.0)
    trade_off = for_setting(
        problem, chain, [STEP] * rounds, local_steps=LOCAL_STEPS, x0=[10.0, 0.0], total=TOTAL
    )
    return float(optimal(trade_off).q[5:].sum() / TOTAL)


def table_of_weights() -> tuple[str, dict[str, tuple[float, Bound]]]:
    best = least_floor_weights(averaged(0.9), STRONG)
    rules = {
        "equal": averaged(0.5),
        "target over availability, Unbiased": averaged(0.9),
        **{f"CA-Fed's optimum for {t} rounds": averaged(of_ca_fed(t)) for t in (100, 1000, 10**5)},
        "those with the smallest certified floor": best,
    }
    found = {name: best_bound_of(played, STRONG) for name, played in rules.items()}
    shares = {
        name: float(5 * played.groups[1].weight / played.total_weight)
        for name, played in rules.items()
    }
    present = AveragingRound.of(FedAvg(STEP, LOCAL_STEPS), Bernoulli(OFTEN + RARELY))
    rows = []
    for name, bound in found.items():
        floor = round_certificate(bound).floor
        rows.append([name, f"{shares[name]:.3f}", f"{bound.rate:.4f}", f"{float(floor):.4g}"])
    of_present = best_bound_of(present, STRONG)
    floor = round_certificate(of_present).floor
    rows.append(
        ["mean of those present, FedAvg", "", f"{of_present.rate:.4f}", f"{float(floor):.4g}"]
    )
    marked = {name: (shares[name], bound) for name, bound in found.items()}
    return lines(["weights", "share of the rare clients", "rate", "certified floor"], rows), marked


def figure_of_weights(marked: dict[str, tuple[float, Bound]]) -> None:
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    floors = [best_bound_of(averaged(share), STRONG).floor for share in SHARES]
    axes.semilogy(SHARES, floors, color="black", label="least provable floor")
    for (name, (share, bound)), marker in zip(marked.items(), "osv^<*", strict=True):
        axes.plot(share, bound.floor, marker, ms=9, label=name)
    axes.set_xlabel("share of all weights that the five rarely available clients have")
    axes.set_ylabel("squared distance left, in sigma_*^2")
    axes.legend(fontsize="small")
    write_figure(lambda: figure, FLOORS)


def worst_found(distance: float, rounds: int) -> np.ndarray:
    """Return the largest error after every round over quadratics that share a curvature.

    Half of the clients pull to one side, half to the other, with a dissimilarity of 1.
    """
    step = float(BASE.client_lr)
    safari = Safari(
        q=float(BASE.q),
        client_lr=step,
        assist_lr=float(audited(FIRST, "derived").round.assist_lr),
        local_steps=BASE.local_steps,
    )
    who = UniformSubset(BASE.eligible, BASE.participants)
    sides = np.tile([1.0, -1.0], BASE.eligible // 2)[:, None]
    errors = [
        exact(
            Setting(safari, QuadraticProblem([[h]], sides / h), who, rounds, [distance])
        ).squared_distance
        for h in np.geomspace(float(EVERYWHERE.mu), float(EVERYWHERE.L), 9)
    ]
    return np.max(errors, axis=0)


def figure_of_theorem_5(distance: float = 10.0, rounds: int = 3000) -> Figure:
    """Draw the paper's bound, the best provable one and the worst instance found, over rounds."""
    found = audited(FIRST, "derived")
    grid = np.unique(np.geomspace(1, rounds, 60).astype(int))
    provable = [bound for bound in (found.same_speed, found.least_floor) if bound is not None]
    best = [min(bound.after(int(r), distance) for bound in provable) for r in grid]
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    paper = [found.paper.after(int(r), distance) for r in grid]
    axes.loglog(grid, paper, color="0.0", label="the paper's bound, proved for every loss")
    axes.loglog(grid, best, "--", color="0.35", label="best provable bound")
    axes.loglog(
        grid, worst_found(distance, rounds)[grid], ":", color="0.35", label="worst instance found"
    )
    axes.set_xlabel("rounds R")
    axes.set_ylabel("E||x_R - x*||^2")
    axes.set_title(
        "SA-FL, Theorem 5 (derived), ten clients of whom four take part", fontsize="medium"
    )
    axes.legend(fontsize="small")
    return figure


def memory_row(name: str, case: tuple[MemoryRound, str, str, Fraction | None]) -> str:
    played, step, mu, published = case
    found = lyapunov_bound_of(replace(played, step=Fraction(step)), ClientClass(1, mu))
    shown = "" if published is None else f"{float(published):.6g}"
    if found.rate is None or found.start is None or found.heterogeneity is None:
        return f"| {name} | {step} | {mu} | UNDECIDED | {shown} | | | |"
    slower = "" if published is None else f"{math.log(found.rate) / math.log(published):.3g}"
    return (
        f"| {name} | {step} | {mu} | {float(found.rate):.7g} | {shown} | {slower} | "
        f"{float(found.start):.4g} | {float(found.heterogeneity):.3g} |"
    )


def memory_table() -> str:
    names = ["method", "step", "mu", "rate", "published", "rounds", "start", "heterogeneity"]
    head = f"| {' | '.join(names)} |\n{'|---' * len(names)}|"
    return "\n".join([head, *(memory_row(name, case) for name, case in MEMORY.items())])


def settings_row(found: SettingTried) -> str:
    played = found.round
    local = (str(played.local_steps), f"{float(played.client_lr):.3g}") if played.q else ("", "")
    own = f"{float(played.assist_lr):.3g}" if played.q < 1 else ""
    return (
        f"| {played.q} | {local[0]} | {local[1]} | {own} | {float(found.cost):.3g} | "
        f"{found.rounds} | {found.error:.4g} |"
    )


def settings_table() -> str:
    names = ["q", "K", "client_lr", "assist_lr", "cost", "rounds", "error"]
    head = f"| {' | '.join(names)} |\n{'|---' * len(names)}|"
    found = best_settings(
        NOISY,
        **COSTS,
        eligible=9,
        excluded=1,
        participants=5,
        budget=1000,
        distance=10,
        local_steps=[1, 2, 5],
        q=[0, "1/4", "1/2", 1],
    )
    return "\n".join([head, *(settings_row(item) for item in found.tried)])


def paper_limit(step: Fraction) -> float:
    """Return the largest q that (81) allows if G_4 = 0."""
    L, mu, bar = 1.0, 0.1, float(step) * 5 * 0.1 / 2
    drift = 1 + 30 * L * bar / mu * (1 + 2 * L * bar / mu)
    server = 1 / (L * mu) - (L + mu) ** 2 * bar / (4 * L**2 * mu**2)
    return server / (server + 16 * bar / mu**2 * drift)


def region_map() -> None:
    colours = {"PROVED": 0, "UNDECIDED": 1, "REFUTED": 2}
    cells = np.empty((len(STEPS), len(QS)))
    for i, step in enumerate(STEPS):
        for j, q in enumerate(QS):
            setting = replace(BASE, eligible=9, excluded=1, q=q, client_lr=step)
            played = setting.coupled(DERIVED, EVERYWHERE)
            found = judge(played, EVERYWHERE, DISTANCE_FORM.claim(DERIVED, EVERYWHERE, played))
            cells[i, j] = colours[found.outcome.name]
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    shades = ["#2b8a3e", "#dee2e6", "#c92a2a"]
    axes.imshow(cells, origin="lower", cmap=ListedColormap(shades), vmin=0, vmax=2, aspect="auto")
    axes.set_xticks(range(len(QS)), [f"{float(q):g}" for q in QS])
    axes.set_yticks(range(len(STEPS)), [f"1/{1 / step}" for step in STEPS])
    limits = [np.interp(paper_limit(s), [float(q) for q in QS], range(len(QS))) for s in STEPS]
    (line,) = axes.plot(limits, range(len(STEPS)), color="black", marker="o", ms=3)
    axes.axhline(STEPS.index(Fraction(1, 40)), color="black", linestyle=":")
    axes.set_xlabel("q")
    axes.set_ylabel("client_lr (dotted: the limit 1/(8LK))")
    patches = [
        Patch(color=shade, label=name.lower()) for name, shade in zip(colours, shades, strict=True)
    ]
    line.set_label("condition (81) on q where G_4 = 0")
    axes.legend(handles=[*patches, line], fontsize="small", loc="upper right")
    write_figure(lambda: figure, MAP)


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    weights, marked = table_of_weights()
    texts = {"table": table(), "readings": table_of_readings(), "table 4": table_4()}
    texts |= {"thresholds": table_of_thresholds(), "weights": weights}
    texts |= {"memory": memory_table(), "settings": settings_table(), "runs": runs_table()}
    for name, text in texts.items():
        begin, end = (mark.format(name) for mark in MARKS)
        before, rest = page.split(begin)
        page = f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}"
    PAGE.write_text(page, encoding="utf-8")
    region_map()
    figure_of_weights(marked)
    write_figure(figure_of_theorem_5, BOUNDS)


if __name__ == "__main__":
    main()
