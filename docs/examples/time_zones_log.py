"""Make a log of 200 clients in three time zones, 5% of whom are never online.

A round is an hour; six weeks have 1,008. A client is online mostly from 8 in the evening to 6 in
the morning in its own zone, when its phone is charging: python time_zones_log.py log.csv
"""

from __future__ import annotations

import sys

import numpy as np

from fltheory.logs import AvailabilityLog, write_log

HOURS = 6 * 7 * 24
ZONES = {"Lisbon": 0, "Delhi": 6, "Tokyo": 9}  # hours ahead, rounded


def time_zones_log(seed: int = 0, clients: int = 200, rounds: int = HOURS) -> AvailabilityLog:
    """Return the log."""
    rng = np.random.default_rng(seed)
    zones = [list(ZONES)[number % len(ZONES)] for number in range(clients)]
    hours = np.arange(rounds)[:, None] + [ZONES[zone] for zone in zones]
    night = (hours % 24 >= 20) | (hours % 24 < 6)
    habit = rng.beta(2, 3, size=clients)  # some are online most nights, some rarely
    online = rng.random(night.shape) < habit * np.where(night, 0.9, 0.1)
    online[:, rng.permutation(clients)[: clients // 20]] = False
    names = [f"{zone}-{number:03d}" for number, zone in enumerate(zones)]
    return AvailabilityLog.from_masks(online, names)


if __name__ == "__main__":
    write_log(sys.argv[1], time_zones_log())
