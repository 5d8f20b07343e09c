"""Attack what stands in the place of refuted statements: corrected, derived and repaired readings.

    python benchmarks/attack_corrections.py --settings 10000 [ID ...]

Each reading is searched until so many settings have met all of its hypotheses, or a search adds
none: random ones of its family or of SAFARI's extremal instances, and its regimes with numbers
changed, one client or participant, weights near zero, other units; claimed orders under constant
steps as well. Exit status 1 if one is broken. What no setting can refute says why.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fltheory import theorems
from fltheory.claims.statement import Statement
from fltheory.verify import falsify

PRINTED = ("printed", "any C_P", "any constant", "bounded absence", "same data", "uniform in Q")
ROUND = 500


@dataclass(frozen=True)
class Attack:
    """What a reading has withstood."""

    name: str
    tried: int
    applicable: int
    largest_ratio: float
    broken_by: str
    why_not: str = ""

    @property
    def line(self) -> str:
        """All of it in a line."""
        if self.why_not:
            return f"{self.name}: cannot be attacked, {self.why_not}"
        met = f"{self.applicable:,} of {self.tried:,} settings met every hypothesis"
        end = f"BROKEN by {self.broken_by}" if self.broken_by else "none broke it"
        return f"{self.name}: {met}, largest ratio {self.largest_ratio:.4g}, {end}"


def readings_under_attack(*beginnings: str) -> Iterator[Statement]:
    """Yield every reading that claims to be true."""
    for statement in theorems.registered(*beginnings):
        if statement.reading not in PRINTED and not statement.refutations:
            yield statement


def attacked(statement: Statement, wanted: int, most: int, seed: int = 0) -> Attack:
    """Search a reading until ``wanted`` settings have met its hypotheses, or ``most`` are tried."""
    if statement.why_not_searched:
        return Attack(statement.name, 0, 0, 0.0, "", statement.why_not_searched)
    tried = applicable = 0
    largest, broken_by = float("-inf"), ""
    while applicable < wanted and tried < most and not broken_by:
        found = falsify(statement, min(ROUND, most - tried), seed)
        tried, seed = tried + found.settings_tried, seed + 1
        applicable += found.settings_applicable
        largest = max(largest, found.best_ratio)
        broken_by = "; ".join(found.witness.lines) if found.witness else ""
    return Attack(statement.name, tried, applicable, largest, broken_by)


def main(arguments: Iterable[str] | None = None) -> int:
    """Attack, and print a line for each reading."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--settings", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(None if arguments is None else list(arguments))
    broken = 0
    for statement in readings_under_attack(*options.ids):
        attack = attacked(statement, options.settings, 10 * options.settings, options.seed)
        broken += bool(attack.broken_by)
        print(attack.line, flush=True)
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
