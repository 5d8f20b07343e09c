"""The figure in the README: SA-FL's Theorem 5 as printed, on one client and one round."""

import sys
from pathlib import Path

import numpy as np

from fltheory import report, theorems, verify
from fltheory.algorithms import Safari
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem

SMOOTHNESS = 1000.0
ONE_CLIENT = QuadraticProblem([[SMOOTHNESS]], [[0.0]])


def one_round(step):
    """Tie the server's step to the clients' as the theorem asks; ``step`` is eta_c L."""
    client_lr = step / SMOOTHNESS
    safari = Safari(q=0.1, client_lr=client_lr, assist_lr=client_lr / 2, local_steps=1)
    return Setting(safari, ONE_CLIENT, UniformSubset(1, 1), 1, [-1.0])


curve = verify.sweep_curve(
    theorems.get("sa-fl/5"),
    one_round,
    np.arange(1, 45) / 20,
    variable=r"$\eta_c L$, the clients' step size",
    replicas=2000,
)
TITLE = "one client, one round, q = 1/10"

if __name__ == "__main__":
    report.write_bound(curve, Path(sys.argv[1]), title=TITLE, log_x=False)
