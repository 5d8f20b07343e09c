"""Exact engine: SAFARI with uniform sampling, N = 100, m = 10, d = 20, R = 1,000."""

from __future__ import annotations

import numpy as np
from cases import clients
from measure import in_fresh_processes, report

from fltheory.algorithms import Safari
from fltheory.engines import Setting, exact
from fltheory.participation import UniformSubset


def run(*, shared: bool) -> None:
    exact(
        Setting(
            Safari(0.6, 0.02, 0.1, 5),
            clients(100, 20, shared=shared),
            UniformSubset(100, 10),
            rounds=1000,
            x0=np.ones(20),
        )
    )


CASES = {
    "one shared Hessian": lambda: run(shared=True),
    "one Hessian per client": lambda: run(shared=False),
}

if __name__ == "__main__":
    rows = []
    for name, result in in_fresh_processes(__file__, CASES).items():
        rows.append((name, f"{result['seconds']:.2f} s", "under 1 s"))
        rows.append((name, f"{result['megabytes']:.0f} MB", "under 200 MB"))
    report("Exact engine, with everything it imports", rows)
