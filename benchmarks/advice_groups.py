"""The loss of accuracy from grouping clients in `fltheory advise`.

    PYTHONPATH=. python benchmarks/advice_groups.py [CLIENTS [ROUNDS]]

Advice on a made-up log in three time zones is computed with a group for each client, and with fewer
groups. Differences are relative to the largest bias with all clients; another seed shows how much
of them is chance.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from fltheory.advice import Advice, advise
from fltheory.logs import AvailabilityLog

_HOURS_AHEAD = (0, 6, 9)


def made_log(count: int, rounds: int) -> AvailabilityLog:
    """Return a log of clients that are online mostly at night, one in twenty of them never."""
    rng = np.random.default_rng(0)
    hours = np.arange(rounds)[:, None] + np.array(_HOURS_AHEAD)[np.arange(count) % 3]
    night = (hours % 24 >= 20) | (hours % 24 < 6)
    online = rng.random(night.shape) < rng.beta(2, 3, count) * np.where(night, 0.9, 0.1)
    online[:, rng.permutation(count)[: count // 20]] = False
    return AvailabilityLog.from_masks(online)


def differences(found: Advice, full: Advice) -> dict[str, float]:
    """Return the largest differences over algorithms, relative to the largest bias."""
    largest = max(one.log.at_worst for one in full.algorithms)

    def most(of) -> float:
        return max(abs(of(found.named(one.name)) - of(one)) for one in full.algorithms) / largest

    return {
        "closed forms, were they of groups": found.grouping_error or 0.0,
        "bias along the log, unrelated": most(lambda one: one.log.unrelated),
        "bias along the log, at worst": most(lambda one: one.log.at_worst),
        "noise": most(lambda one: one.noise),
        "sway": most(lambda one: one.sway),
        "error": most(lambda one: one.error),
        "error of the advised": abs(found.best.error - full.named(found.best.name).error) / largest,
    }


def main(count: int = 200, rounds: int = 600) -> None:
    """Print the differences, one line per number of groups."""
    log = made_log(count, rounds)
    full = advise(log, most_groups=count)
    print(f"{count} groups: {full.best.called}, else {full.fallback.called}", flush=True)
    for groups, seed in ((count, 1), (count // 2, 0), (count // 4, 0), (count // 10, 0)):
        began = time.perf_counter()
        found = advise(log, most_groups=groups, seed=seed)
        seconds = time.perf_counter() - began
        said = ", ".join(f"{name} {part:.2%}" for name, part in differences(found, full).items())
        print(
            f"{found.population.shown.size} groups, seed {seed}: {found.best.called}, else "
            f"{found.fallback.called}; {said}; {seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
