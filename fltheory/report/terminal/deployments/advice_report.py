"""What a log says of the algorithms, in three sentences and a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from fltheory.advice import Advice, Bias
    from fltheory.advice.measured_clients import MeasuredClients
    from fltheory.advice.on_digits import Trained

_NAMES_SHOWN = 3
_NO_BIAS = 1e-9
_TIMES = (0.1, 1.0, 10.0)


def sentences(advice: Advice) -> tuple[str, str, str]:
    """Return which algorithm to use, where plain FedAvg ends, and who never appears."""
    return _use(advice), _fedavg(advice), _never(advice)


def _use(advice: Advice) -> str:
    best, fallback = advice.best, advice.fallback
    if not math.isfinite(best.error):
        return "No algorithm settles at any step size that was tried."
    ends = (
        f"its error late in the log is {best.usual_error:.2g} if what clients want has nothing to "
        f"do with when they are online, and about {best.error:.2g} at worst"
    )
    if best is fallback:
        return f"Use {best.called}, which needs {best.needs}: {ends}."
    return (
        f"Use {best.called} if you can provide what it needs, {best.needs}: {ends}; else "
        f"{fallback.called} ({fallback.usual_error:.2g} and {fallback.error:.2g})."
    )


def _fedavg(advice: Advice) -> str:
    found = advice.named("fedavg")
    parts = advice.fedavg_parts
    rare, never = advice.rare, advice.population.never
    if found.process.at_worst < _NO_BIAS:
        return "Plain FedAvg has no bias here: all clients count in it as they should."
    whose = []
    if rare.size:
        whose.append(
            f"{parts[rare].sum():.2g} from the {_clients(rare.size)} "
            f"({rare.size / parts.size:.0%}) online less than {advice.rare_below:.1%} of the time, "
            "half the mean"
        )
    if never.size:
        whose.append(f"{parts[never].sum():.2g} from those who never appear")
    again = ""
    if (
        found.whole
        and abs(found.log.at_worst - found.process.at_worst) > 0.1 * found.process.at_worst
    ):
        again = f" (along this very log {_range(found.log)})"
    of_that = f"; of these {found.process.at_worst:.2g}, {' and '.join(whose)}" if whose else ""
    return (
        f"Plain FedAvg ends {found.process.unrelated:.2g} from the optimum if what clients want "
        f"has nothing to do with when they are online, and up to {found.process.at_worst:.2g} if "
        f"it has{again}{of_that}."
    )


def _never(advice: Advice) -> str:
    population = advice.population
    never = population.never
    if not never.size:
        return "Every client appears in the log: nobody is left out for good."
    names = [population.log.clients[client] for client in never[:_NAMES_SHOWN]]
    named = ", ".join(names) + (", ..." if never.size > _NAMES_SHOWN else "")
    lost = float(population.importance[never].sum())
    safari = advice.named("safari")
    return (
        f"{_clients(never.size)} never appear{'s' if never.size == 1 else ''} ({named}; "
        f"{lost:.2g} of the target): no algorithm "
        f"without server data ends nearer than {_range(advice.exclusion)}; with data like all "
        f"clients' on the server one can train there alone without bias, and SAFARI, every other "
        f"round of which is the server's, ends at {_range(safari.process)}."
    )


def _clients(count: int) -> str:
    return f"{count} client{'' if count == 1 else 's'}"


def _range(bias: Bias) -> str:
    return f"{bias.unrelated:.2g} (unrelated) to {bias.at_worst:.2g} (at worst)"


def advice_table(advice: Advice) -> Table:
    """Return a line an algorithm."""
    table = Table()
    for name in ("algorithm", "needs"):
        table.add_column(name)
    for name in (
        "step",
        "bias, process",
        "at worst",
        "bias, log",
        "at worst",
        "sway",
        "noise",
        "error",
        f"rounds to {advice.within:g}",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    beyond = f"> {len(advice.population.recorded)}"
    for found in advice.algorithms:
        mark = "" if found.closed_form else "~"
        table.add_row(
            found.called,
            str(found.needs),
            f"{found.step:.3g}",
            mark + _uncertain(found.process),
            mark + _number(found.process.at_worst),
            _uncertain(found.log),
            *map(_number, (found.log.at_worst, found.sway, found.noise)),
            _number(found.error),
            beyond if found.rounds is None else str(found.rounds),
        )
    return table


def _uncertain(bias: Bias) -> str:
    """Return a bias, with its standard error if that is worth telling."""
    told = _number(bias.unrelated)
    return f"{told} ± {bias.error:.1g}" if bias.error > bias.unrelated / 10 else told


def _number(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "diverges"


def check_table(trained: Sequence[Trained]) -> Table:
    """Return what was predicted beside late accuracies on the digits, a line an algorithm."""
    table = Table(
        title="digits under this log, as few classes a client as there can be; three seeds"
    )
    table.add_column("algorithm")
    for name in (
        "bias, unrelated",
        "at worst",
        "late accuracy, %",
        "lost to everybody there, %",
    ):
        table.add_column(name, justify="right")
    for one in trained:
        bias = one.advice.process
        table.add_row(
            one.advice.called,
            _number(bias.unrelated),
            _number(bias.at_worst),
            *(
                f"{values.mean():.2f} ± {values.std(ddof=1):.2f}"
                for values in (one.accuracy, one.lost)
            ),
        )
    return table


def assumptions(advice: Advice, total_size: float | None) -> str:
    """Return what the figures rest on, a line each."""
    population, training = advice.population, advice.population.training
    log = population.log
    targets = (
        "equal, as no --sizes are given"
        if total_size is None
        else f"sizes divided by their sum, {total_size:g}"
    )
    followed, grouping = "", list[str]()
    if advice.grouping_error is not None:
        followed = f"{population.shown.size} groups stand for {population.ever.size} clients and "
        grouping.append(
            "groups: each has the availability of its middle client, which would change biases "
            f"with a closed form by up to {100 * advice.grouping_error:.2g}% of the largest; those "
            "above are of all clients"
        )
    last = len(population.recorded)
    rounds = (
        f"all {last} rounds"
        if last == log.n_rounds
        else f"the last {last} rounds, whose bias does not count"
    )
    measured = () if advice.measured is None else (_measurement(advice.measured),)
    return "\n".join(
        (
            f"targets: {targets}",
            *measured,
            "unit: ||w_0 - w*||, and L for slopes; process: a two-state chain a client, "
            "independent of the others; log: "
            f"{followed}{rounds}, over and over",
            "bias: root mean square over optima in unrelated directions; at worst: over all "
            "optima; ~ drawn, else in closed form",
            *grouping,
            "sway, noise: what coming and going, and gradients, move the model about its mean; "
            "error: all three, bias at its worst, and what is left of the start late in the log",
            f"assumed: quadratic clients, {training.local_steps} local steps; dissimilarity "
            f"{training.dissimilarity:g}, noise {training.noise:g}, condition "
            f"{training.condition:g}; of steps 1, 1/2, ..., 1/64 of {training.step:.3g}/L the one "
            "with the least error late in the log",
            f"if unsure: {_sensitivity(advice)}",
        )
    )


def _measurement(measured: MeasuredClients) -> str:
    """Say what gradients gave, with 95% intervals."""
    smoothness = measured.smoothness
    curved = (
        "no curvature, which takes models at two points"
        if measured.condition is None or smoothness is None
        else f"L {smoothness:.3g}, so that a step of 1/L is {1 / smoothness:.3g}, condition "
        f"{measured.condition}"
    )
    return (
        f"measured on {_clients(measured.clients)} at {measured.points} "
        f"point{'' if measured.points == 1 else 's'}: sigma {measured.sigma:.3g} and sigma_G "
        f"{measured.sigma_G:.3g} where F's gradient at the start is {measured.start_slope:.3g}; "
        f"{curved}\n"
        f"so dissimilarity {measured.dissimilarity}, noise {measured.noise}; in brackets intervals "
        "of 95%, by leaving out a client at a time"
    )


def _sensitivity(advice: Advice) -> str:
    """Say what would be advised for other clients: errors are sums of known multiples."""
    training = advice.population.training
    other: dict[str, list[str]] = {}
    for far in _times(advice, "dissimilarity"):
        for noisy in _times(advice, "noise"):
            found = advice.best_if(math.sqrt(far), noisy)
            if found is not advice.best:
                what = [f"dissimilarity {far * training.dissimilarity:.2g}"] * (far != 1)
                what += [f"noise {noisy * training.noise:.2g}"] * (noisy != 1)
                other.setdefault(found.called, []).append(" with ".join(what))
    scale = "bias and sway grow with the root of dissimilarity, noise with noise"
    over = "a tenth and ten times of either" if advice.measured is None else "their intervals"
    told = "; ".join(f"{name} for {', '.join(cases)}" for name, cases in other.items())
    unlike = f"another would be {told}" if other else f"the advice is the same for {over}"
    return f"{scale}; {unlike}{_if_steeper(advice)}"


def _if_steeper(advice: Advice) -> str:
    """Say what would be advised if curvatures differed more."""
    steeper, best = advice.steeper, advice.best
    if steeper is None:
        return ""
    condition = steeper.population.training.condition
    again = steeper.named(best.name)
    then = f"its error {_number(again.error)} instead of {_number(best.error)}"
    if steeper.best.name == best.name:
        return f"; with condition {condition:.3g} the same, {then}"
    return (
        f"; with condition {condition:.3g} {steeper.best.called}, as {best.called} has {then} "
        f"and {steeper.best.called} {_number(steeper.best.error)}"
    )


def _times(advice: Advice, name: str) -> tuple[float, ...]:
    """Return by how much an assumption may be off: its interval, if it is as measured."""
    assumed = getattr(advice.population.training, name)
    found = None if advice.measured is None else getattr(advice.measured, name)
    if found is None or found.value != assumed:
        return _TIMES
    return (found.low / assumed, 1.0, found.high / assumed) if assumed else (1.0,)
