"""Advice from a log, for a terminal: cautions, three sentences and a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from fltheory.algorithms.table import ALGORITHMS
from fltheory.decimals import how_many
from fltheory.report.terminal.log_report import doubts, first_names

if TYPE_CHECKING:
    from fltheory.advice import Advice, AlgorithmAdvice, Bias
    from fltheory.advice.measured_clients import MeasuredClients
    from fltheory.advice.on_digits import Trained
    from fltheory.logs.description import LogDescription

_UNRELATED = "if clients' data are unrelated to when they are online"
_NO_BIAS = 1e-9
_TIMES = (0.1, 1.0, 10.0)


def cautions(found: LogDescription) -> list[str]:
    """Return the doubts that the log's own tests raise about the advice; they are printed first."""
    return doubts(
        found,
        drift="Everything below is about its last quarter, and holds as long as clients behave as "
        "they did then.",
        chains="The table's errors come from the log's own rounds and do not assume it; its column "
        '"bias, chains" and what is proved do.',
    )


def unfollowed(advice: Advice) -> list[str]:
    """Return a note if some rounds of a long log are not followed."""
    followed, rounds = len(advice.population.recorded), advice.population.log.n_rounds
    if followed == rounds:
        return []
    return [
        f"Caution: {followed} of the log's {rounds} rounds are followed, in stretches from its "
        f"beginning to its end; steps and errors are those after {followed} rounds."
    ]


def sentences(advice: Advice) -> tuple[str, str, str]:
    """Return sentences on the algorithm to use, FedAvg's limit, and clients never seen."""
    return _use(advice), _fedavg(advice), _never(advice)


def _use(advice: Advice) -> str:
    best, fallback = advice.best, advice.fallback
    if not math.isfinite(best.error):
        return "No algorithm converges at any step size that was tried."
    interval = _interval(best)
    ends = (
        f"its error late in the log is {best.usual_error:.2g} {_UNRELATED}, and at worst "
        f"{best.error:.{_digits(best)}g}" + (f" ({interval} at 95%)" if interval else "")
    )
    if best is fallback:
        return f"Use {best.called}, which needs {best.needs}: {ends}."
    verb = "provide" if best.needs.facts else "store"
    return (
        f"Use {best.called} if you can {verb} {best.needs}: {ends}. Otherwise use "
        f"{fallback.called} ({fallback.usual_error:.2g}, and at worst {fallback.error:.2g})."
    )


def _fedavg(advice: Advice) -> str:
    found = advice.named("fedavg")
    worst = f"{found.log.at_worst:.2g}"
    if found.log.at_worst < _NO_BIAS:
        return "Plain FedAvg has no bias here: all clients count in it as they should."
    of_rare, of_never = advice.fedavg_parts
    whose = []
    if advice.rare.size:
        whose.append(
            f"{of_rare:.2g} comes from the {how_many(advice.rare.size, 'client')} online less than "
            f"{advice.rare_below:.1%} of the time (half the clients' mean)"
        )
    if advice.population.never.size:
        whose.append(f"{of_never:.2g} {'' if whose else 'comes '}from clients never seen")
    weighted = ", weighted by data," if advice.population.weighted else ""
    return (
        f"Plain FedAvg{weighted} ends {found.log.unrelated:.2g} from the optimum {_UNRELATED}, and "
        f"at worst {worst}." + (f" Of that {worst}, {' and '.join(whose)}." if whose else "")
    )


def _never(advice: Advice) -> str:
    population = advice.population
    never = population.never
    if not never.size:
        return (
            "Every client that the log names is online at some time. Clients that it does not "
            "name are in none of these figures: if some were never online, list them in --sizes."
        )
    named = first_names([population.log.clients[client] for client in never])
    lost = float(population.importance[never].sum())
    return (
        f"{how_many(never.size, 'client')} never appear{'s' if never.size == 1 else ''} ({named}; "
        f"{lost:.2g} of the target): without server data no algorithm ends nearer than "
        f"{_range(advice.exclusion)}. With representative data on the server, one can train "
        "there alone without bias; SAFARI, with every other round on the server, ends at "
        f"{_range(advice.named('safari').log)}."
    )


def _range(bias: Bias) -> str:
    return f"{bias.unrelated:.2g} (unrelated) to {bias.at_worst:.2g} (at worst)"


def _interval(found: AlgorithmAdvice) -> str:
    """Return an error's interval as text; empty if its ends equal the error to four digits."""
    error, low, high = (f"{value:.{_digits(found)}g}" for value in (found.error, *found.interval))
    return "" if low == error == high else f"{low} to {high}"


def _digits(found: AlgorithmAdvice) -> int:
    """Return the number of digits, 2 to 4, that separate an error from its interval's ends."""
    for digits in (2, 3):
        error, low, high = (f"{value:.{digits}g}" for value in (found.error, *found.interval))
        if low != error != high:
            return digits
    return 4


def advice_table(advice: Advice) -> Table:
    """Return a table with one line per algorithm."""
    table = Table()
    for name in ("algorithm", "needs"):
        table.add_column(name)
    for name in (
        "step",
        "bias, chains",
        "at worst",
        "bias, log",
        "at worst",
        "sway",
        "noise",
        "error",
        "at 95%",
        f"rounds to {advice.within:g}",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    beyond = f"> {len(advice.population.recorded)}"
    for found in advice.algorithms:
        chains = (
            ("-", "-")
            if found.process is None
            else (_number(found.process.unrelated), _number(found.process.at_worst))
        )
        log = (found.log.unrelated, found.log.at_worst, found.sway_at_worst, found.noise)
        table.add_row(
            found.called,
            str(found.needs),
            f"{found.step:.3g}",
            *chains,
            *map(_number, (*log, found.error)),
            _interval(found),
            beyond if found.rounds is None else str(found.rounds),
        )
    return table


def _number(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "diverges"


def check_table(trained: Sequence[Trained]) -> Table:
    """Return predictions and late accuracies on the digits data, with one line per algorithm."""
    table = Table(
        title="digits under this log, each client with as few classes as possible; three seeds"
    )
    table.add_column("algorithm")
    for name in (
        "bias, unrelated",
        "at worst",
        "late accuracy, %",
        "lost to everybody present, %",
    ):
        table.add_column(name, justify="right")
    for one in trained:
        bias = one.advice.log
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
    """Return the assumptions behind the figures, one per line."""
    population, training = advice.population, advice.population.training
    targets = (
        "equal, as no --sizes are given"
        if total_size is None
        else f"sizes divided by their sum, {total_size:g}; FedAvg weights participants by size; "
        "for algorithms that weight clients equally, each loss is multiplied by the client's share"
    )
    groups = list[str]()
    if advice.grouping_error is not None:
        groups.append(
            f"groups: {population.shown.size} groups stand for {population.ever.size} clients, "
            "each with the rounds of its middle client; that would change biases with a formula by "
            f"up to {100 * advice.grouping_error:.2g}% of the largest"
        )
    measured = () if advice.measured is None else (_measurement(advice.measured),)
    return "\n".join(
        (
            f"targets: {targets}",
            *measured,
            "unit: ||w_0 - w*||, the distance at the start; steps are in units of 1/L",
            "bias, chains: by formula, if each client came and went as a two-state chain, "
            f"independently of the others; bias, log: along {len(population.recorded)} rounds of "
            "the log",
            "bias: root mean square over clients' optima in unrelated directions; at worst: the "
            "largest for any optima",
            *groups,
            "sway: how far the model moves around its mean as clients come and go, for the worst "
            "optima; noise: how far gradients' noise moves it; error: worst-case bias, sway, noise "
            "and what remains of the start, late in the log; known availability is estimated from "
            "this log, and its error is included",
            f"assumed: quadratic clients, {how_many(training.local_steps, 'local step')}, "
            f"dissimilarity {training.dissimilarity:g}, noise {training.noise:g}, condition "
            f"number {training.condition:g}; step size: the best of 1, 1/2, ..., 1/64 times "
            f"{training.step:.3g}/L, by error late in the log",
            f"if unsure: {_sensitivity(advice)}",
        )
    )


def next_steps(advice: Advice) -> list[str]:
    """Return where the advised algorithm is defined and how to check an implementation."""
    best = advice.best
    if not math.isfinite(best.error):
        return []
    return [
        f"Next: {best.title} is that of {ALGORITHMS[best.name].paper}; "
        f"`fltheory conformance my_code.py:run {best.name}` checks your implementation."
    ]


def _measurement(measured: MeasuredClients) -> str:
    """Return the results of measured gradients, with 95% intervals."""
    smoothness = measured.smoothness
    curved = (
        "no curvature, which needs models at two points"
        if measured.condition is None or smoothness is None
        else f"L {smoothness:.3g}, so that a step of 1/L is {1 / smoothness:.3g}, condition "
        f"number {measured.condition}"
    )
    return (
        f"measured on {how_many(measured.clients, 'client')} at "
        f"{how_many(measured.points, 'point')}: sigma {measured.sigma:.3g} and sigma_G "
        f"{measured.sigma_G:.3g} where F's gradient at the start is {measured.start_slope:.3g}; "
        f"{curved}\n"
        f"so dissimilarity {measured.dissimilarity}, noise {measured.noise}; in brackets 95% "
        "intervals, by leaving out one client at a time"
    )


def _sensitivity(advice: Advice) -> str:
    """Return the advice for other clients, using that errors are sums of known multiples."""
    training = advice.population.training
    other: dict[str, list[str]] = {}
    for far in _times(advice, "dissimilarity"):
        for noisy in _times(advice, "noise"):
            found = advice.best_if(math.sqrt(far), noisy)
            if found is not advice.best:
                pair = f"({far * training.dissimilarity:.2g}, {noisy * training.noise:.2g})"
                other.setdefault(found.called, []).append(pair)
    scale = "bias and sway grow with the root of dissimilarity, noise with noise"
    over = (
        "a tenth of either and ten times either" if advice.measured is None else "their intervals"
    )
    told = "; ".join(f"{name} at {', '.join(pairs)}" for name, pairs in other.items())
    unlike = (
        f"at some (dissimilarity, noise) another algorithm is best: {told}"
        if other
        else f"the advice is the same for {over}"
    )
    return f"{scale}; {unlike}{_if_steeper(advice)}"


def _if_steeper(advice: Advice) -> str:
    """Return the advice if curvatures differed more."""
    steeper, best = advice.steeper, advice.best
    if steeper is None:
        return ""
    condition = steeper.population.training.condition
    again = steeper.named(best.name)
    then = f"an error of {_number(again.error)} instead of {_number(best.error)}"
    if steeper.best.name == best.name:
        return f"; with condition number {condition:.3g} the same, with {then}"
    return (
        f"; with condition number {condition:.3g} {steeper.best.called} is best, with an error of "
        f"{_number(steeper.best.error)}: {best.called} then has {then}"
    )


def _times(advice: Advice, name: str) -> tuple[float, ...]:
    """Return the factors by which an assumption may be off, or its interval if it was measured."""
    assumed = getattr(advice.population.training, name)
    found = None if advice.measured is None else getattr(advice.measured, name)
    if found is None or found.value != assumed:
        return _TIMES
    return (found.low / assumed, 1.0, found.high / assumed) if assumed else (1.0,)
