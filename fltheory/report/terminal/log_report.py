"""A log of who was online, in words and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from fltheory.decimals import how_many

if TYPE_CHECKING:
    from fltheory.logs.description import LogDescription
    from fltheory.validation import FloatArray

_NAMES_SHOWN = 5
_ROWS_AT_EITHER_END = 20


def log_summary(found: LogDescription) -> str:
    """Return the description, with one fact per line."""
    log = found.log
    rare = int(np.count_nonzero((found.marginals[:, 0] > 0) & (found.marginals[:, 0] < 0.01)))
    low, middle, high = np.quantile(found.marginals[:, 0], (0.1, 0.5, 0.9))
    widest = float((found.marginals[:, 2] - found.marginals[:, 1]).max() / 2)
    lines = [
        f"clients          {log.n_clients}, {how_many(log.n_rounds, 'round')}, "
        f"{how_many(log.who.size, 'stay')}"
        + (
            f"; {log.between_rounds} more that fall between two rounds"
            if log.between_rounds
            else ""
        ),
        f"online           {low:.3g} / {middle:.3g} / {high:.3g} of rounds (10th, 50th and 90th "
        f"percentile of clients); 95% intervals are +-{widest:.2g} at most",
        f"never online     {_listed(found.never_there)}{_of_named(found)}",
        f"online below 1%  {rare}",
        f"always online    {_listed(found.always_there)}",
        f"stays            {_lengths(found.stays)}",
        f"absences         {_lengths(found.gaps)}",
        f"memory           {_eigenvalue(found.largest_eigenvalue)}",
        f"pairs            {_pairs(found)}",
        f"clusters         {_clusters(found)}",
        f"cycle            {_cycle(found)}",
        f"halves           {_halves(found)}",
    ]
    return "\n".join(lines)


def doubts(found: LogDescription, *, drift: str, chains: str = "") -> list[str]:
    """Return the doubts that the log's own tests raise about an answer, one sentence each.

    Parameters
    ----------
    found : LogDescription
    drift : str
        The consequence for the answer if availability changes along the log.
    chains : str
        The consequence, if any, for the answer if clients are not independent two-state chains.
    """
    said = []
    if found.drifts:
        said.append(
            "Caution: availability changes along this log (its halves differ, p = "
            f"{found.halves_p_value:.2g}; {found.changed} of {found.log.n_clients} clients "
            f"changed). {drift}"
        )
    if chains and found.rejects("on-off Markov"):
        (fit,) = (fit for fit in found.fits if fit.model == "on-off Markov")
        said.append(
            "Caution: these clients do not come and go independently of each other, each as a "
            f"two-state chain (rejected, p = {fit.corrected:.2g}). {chains}"
        )
    return said


def first_and_last(count: int) -> Iterator[int | None]:
    """Yield client indices for a table; if many, the first and last, with None between them."""
    skipped = range(_ROWS_AT_EITHER_END, count - _ROWS_AT_EITHER_END)
    for place in range(count):
        if place not in skipped:
            yield place
        elif place == skipped.start:
            yield None


def fits_table(found: LogDescription) -> Table:
    """Return a table of how well the models fit."""
    clients, rounds = found.sampled
    table = Table(
        title=f"Models, on {how_many(clients, 'client')} and {how_many(rounds, 'round')}",
        title_justify="left",
    )
    for name in ("model", "p-value", "corrected (Holm)", "at 5%"):
        table.add_column(name)
    for fit in found.fits:
        outcome = "rejected" if fit.rejected else "not rejected"
        table.add_row(fit.model, f"{fit.p_value:.3g}", f"{fit.corrected:.3g}", outcome)
    return table


def _of_named(found: LogDescription) -> str:
    """Return a qualification for logs that cannot list clients that were never present."""
    return "" if found.never_there else " of those that the log names"


def _listed(names: tuple[str, ...]) -> str:
    return f"{len(names)}: {first_names(names, _NAMES_SHOWN)}" if names else "0"


def first_names(names: Sequence[str], most: int = 3) -> str:
    """Return the first few of some names, with dots if there are more."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def _lengths(quantiles: FloatArray) -> str:
    if np.isnan(quantiles).any():
        return "none that begins and ends within the log"
    return "{:.4g} / {:.4g} / {:.4g} rounds (percentiles as above), {:.4g} at most".format(
        *quantiles
    )


def _eigenvalue(largest: FloatArray) -> str:
    if np.isnan(largest).any():
        return "not known: no client came or went 20 times"
    return (
        "second eigenvalue {:.3g} (95% interval {:.3g} to {:.3g}) of the client with the longest "
        "memory".format(*largest)
    )


def _pairs(found: LogDescription) -> str:
    if np.isnan(found.pairs).any():
        return "no two clients that come and go"
    low, middle, high = found.pairs
    return (
        f"correlations {low:.2f} / {middle:.2f} / {high:.2f} (5th, 50th and 95th percentile) among "
        f"{found.sampled[0]} clients"
    )


def _clusters(found: LogDescription) -> str:
    if len(found.cluster_sizes) < 2:
        return "none found"
    return f"{len(found.cluster_sizes)}, of {', '.join(map(str, found.cluster_sizes))} clients"


def _cycle(found: LogDescription) -> str:
    if found.period is None:
        unsaid = np.isnan(found.period_p_value)
        return "log too short for one" if unsaid else f"none (p = {found.period_p_value:.2g})"
    given = np.isnan(found.period_p_value)
    return f"{found.period:.4g} rounds " + (
        "(given)" if given else f"(p = {found.period_p_value:.2g})"
    )


def _halves(found: LogDescription) -> str:
    if np.isnan(found.halves_p_value):
        return "cannot be compared"
    alike = "differ" if found.halves_p_value < 0.05 else "alike"
    return f"{alike} (p = {found.halves_p_value:.2g}); {found.changed} clients changed"


def next_steps(found: LogDescription, log: str) -> str:
    """Return possible next steps with the log, given its tests; ``log`` is its argument."""
    recent = " once you have cut it to recent rounds: availability changes" if found.drifts else ""
    drawn = "draws more logs like it"
    if found.rejects("on-off Markov"):
        drawn = "would draw clients that come independently of each other, as these do not"
    return (
        f"Next: `fltheory advise {log}` says which algorithm suits this log{recent}.\n"
        f"`fltheory trace sample {log} --rounds 1000 --out more.csv` {drawn}."
    )
