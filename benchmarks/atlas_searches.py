"""Search for a refutation of every statement of the atlas, and keep the results.

    python benchmarks/atlas_searches.py [--settings 1000] [ID ...]

Searches use `falsify` in each statement's family. It cannot refute a claimed order with hidden
constants, which is judged on members of its family instead; the ratio is how much more than claimed
the truth changes over a decade. If the truth needs a run of many single steps,
`atlas_plain_runs.py` searches as well, which shares nothing with the package and is hundreds of
times as fast. `atlas_searches.csv` beside this file, which the atlas page shows, keeps the last
search of each reading. The exit status is 1 if a statement recorded as holding is refuted, or one
recorded as refuted is not.
"""

from __future__ import annotations

import argparse
import csv
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fltheory import theorems
from fltheory.claims.statement import Statement
from fltheory.theorems import atlas
from fltheory.verify import Outcome, check, falsify

HERE = Path(__file__).parent
KEPT = HERE / "atlas_searches.csv"
COLUMNS = ("theorem", "reading", "by", "applied", "largest_ratio", "refuted")
PLAIN_SETTINGS = 40_000
_MOST_SEEDS = 5
Row = dict[str, str]


def by_falsify(statement: Statement, settings: int) -> Row:
    """Search so many settings, and with other seeds as many as did not meet every hypothesis."""
    applied, largest, refuted = 0, 0.0, False
    for seed in range(_MOST_SEEDS):
        found = falsify(statement, max(settings - applied, 2), seed)
        applied += found.settings_applicable
        largest = max(largest, found.best_ratio)
        refuted |= found.witness is not None
        if applied >= settings:
            break
    return _row(statement, "falsify", applied, largest, refuted)


def by_orders(statement: Statement, settings: int) -> Row:
    """Judge a claimed order on random members of its theorem's family."""
    family: Any = statement.basis.family
    rng = np.random.default_rng(0)
    applied, largest, refuted = 0, 0.0, False
    while applied < settings:
        numbers = {one.name: one.drawn(rng) for one in family.parameters}
        verdict = check(statement, family.setting(**numbers))
        if verdict.outcome is Outcome.INAPPLICABLE:
            continue
        applied += 1
        largest = max(largest, 10 ** (verdict.truth - verdict.bound))
        refuted |= verdict.outcome is Outcome.REFUTED
    return _row(statement, "verdicts", applied, largest, refuted)


def by_plain_runs(statement: Statement) -> Iterator[Row]:
    plain = runpy.run_path(str(HERE / "atlas_plain_runs.py"))
    ratio = plain["SEARCHED"].get((statement.id, statement.reading))
    if ratio is not None:
        largest = plain["largest_ratio"](ratio, PLAIN_SETTINGS)
        broken = largest > 1 + plain["ROUNDING"]
        yield _row(statement, "plain runs", PLAIN_SETTINGS, largest, broken)


def _row(statement: Statement, by: str, applied: int, ratio: float, refuted: bool) -> Row:
    values = (statement.id, statement.reading, by, applied, f"{ratio:.6g}", int(refuted))
    return dict(zip(COLUMNS, map(str, values), strict=True))


def main(beginnings: list[str], settings: int) -> int:
    kept = {}
    if KEPT.exists():
        with KEPT.open(encoding="utf-8", newline="") as file:
            kept = {
                (row["theorem"], row["reading"], row["by"]): row for row in csv.DictReader(file)
            }
    surprises = 0
    for statement in theorems.registered(*beginnings):
        if statement not in atlas.STATEMENTS:
            continue
        rows = list(by_plain_runs(statement))
        if settings:
            search = by_orders if statement.why_not_searched else by_falsify
            rows.append(search(statement, settings))
        for row in rows:
            surprises += (row["refuted"] == "1") != bool(statement.refutations)
            print(", ".join(row.values()), flush=True)
            kept[row["theorem"], row["reading"], row["by"]] = row
    with KEPT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept[key] for key in sorted(kept))
    return int(surprises > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--settings", type=int, default=1000, help="by falsify; 0 for none")
    arguments = parser.parse_args()
    sys.exit(main(arguments.ids, arguments.settings))
