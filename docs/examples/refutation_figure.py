"""The README's figure: SA-FL's Theorem 5 as printed, on the stored witness and around it."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from fltheory import report, theorems, verify

ROOT = Path(__file__).parents[2]
WITNESS = verify.read_certificate(ROOT / "verification" / "witnesses" / "sa-fl-5.json").setting


def at(q):
    """Return the witness with probability ``q`` of a client round."""
    return replace(WITNESS, algorithm=replace(WITNESS.algorithm, q=q))


curve = verify.curve(
    theorems.get("sa-fl/5"),
    at,
    np.arange(1, 20, 2) / 20,
    variable="$q$, the probability of a client round",
    replicas=200,
)
TITLE = "four clients, two of them never online, 1,000 rounds"

if __name__ == "__main__":
    figure = report.figure(curve, title=TITLE, log_x=False)
    report.write_figure(figure, Path(sys.argv[1]))
