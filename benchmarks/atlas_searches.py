"""Search for a refutation of every statement of the atlas: `falsify`, 1,000 settings of its family.

    python benchmarks/atlas_searches.py [--settings 1000] [ID ...]

A line for each reading: how many settings were tried and met every hypothesis, and the largest
truth/bound. Exit status 1 if a statement that is said to hold is refuted, or one that is said to
be refuted is not.
"""

from __future__ import annotations

import argparse
import sys

from fltheory import theorems
from fltheory.theorems import atlas
from fltheory.verify import falsify


def main(beginnings: list[str], settings: int) -> int:
    chosen = [one for one in theorems.registered(*beginnings) if one in atlas.STATEMENTS]
    surprises = 0
    # Those that cost least come first.
    for statement in sorted(chosen, key=lambda one: bool(one.fields_of_run())):
        found = falsify(statement, settings)
        surprises += (found.witness is not None) != bool(statement.refutations)
        outcome = "not refuted" if found.witness is None else "REFUTED"
        print(f"{statement.name}: {outcome}; {found.effort}", flush=True)
    return int(surprises > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--settings", type=int, default=1000)
    arguments = parser.parse_args()
    sys.exit(main(arguments.ids, arguments.settings))
