"""A setting in rational numbers, which can be printed and certified.

Clients share a diagonal Hessian and have equal weights; SAFARI runs on uniform subsets. All numbers
are fractions, so the engines can run the witness in float64, and it can also be replayed without
rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fltheory.algorithms import Safari
from fltheory.engines import Setting
from fltheory.participation import UniformSubset
from fltheory.problems import QuadraticProblem


@dataclass(frozen=True)
class Witness:
    """SAFARI on quadratic clients, in fractions.

    Attributes
    ----------
    curvatures : tuple of Fraction, (d,)
        Diagonal of the Hessian that all clients share.
    optima : tuple of tuples, (N, d)
        The clients' minimisers.
    x0 : tuple of Fraction, (d,)
        Initial model.
    sigma, server_sigma : Fraction
        Noise of the clients' and of the server's gradients.
    participants : int
        m, the number of clients in a client round.
    excluded : tuple of int
        Clients that never take part.
    q, client_lr, assist_lr : Fraction
    local_steps, rounds : int
        SAFARI's hyper-parameters and the number of rounds R.
    """

    curvatures: tuple[Fraction, ...]
    optima: tuple[tuple[Fraction, ...], ...]
    x0: tuple[Fraction, ...]
    sigma: Fraction
    server_sigma: Fraction
    participants: int
    excluded: tuple[int, ...]
    q: Fraction
    client_lr: Fraction
    assist_lr: Fraction
    local_steps: int
    rounds: int

    def setting(self) -> Setting:
        """Return the setting in float64, for the engines."""
        problem = QuadraticProblem(
            np.diag(np.array(self.curvatures, dtype=np.float64)),
            np.array(self.optima, dtype=np.float64),
            sigma=float(self.sigma),
            server_sigma=float(self.server_sigma),
        )
        return Setting(
            Safari(float(self.q), float(self.client_lr), float(self.assist_lr), self.local_steps),
            problem,
            UniformSubset(len(self.optima), self.participants, excluded=self.excluded),
            self.rounds,
            np.array(self.x0, dtype=np.float64),
        )

    def setting_text(self) -> dict[str, Any]:
        """Return the setting in the format of certificates, without rounding."""
        d, n = len(self.curvatures), len(self.optima)
        hessian = [
            [str(h) if i == j else "0" for j in range(d)] for i, h in enumerate(self.curvatures)
        ]
        return {
            "algorithm": {
                "name": "Safari",
                "q": str(self.q),
                "client_lr": str(self.client_lr),
                "assist_lr": str(self.assist_lr),
                "local_steps": self.local_steps,
            },
            "problem": {
                "hessians": [hessian] * n,
                "optima": [[str(c) for c in point] for point in self.optima],
                "sigma": str(self.sigma),
                "server_sigma": str(self.server_sigma),
                "target_weights": [str(Fraction(1, n))] * n,
            },
            "participation": {
                "name": "UniformSubset",
                "size": self.participants,
                "excluded": list(self.excluded),
            },
            "rounds": self.rounds,
            "x0": [str(c) for c in self.x0],
        }

    @property
    def lines(self) -> tuple[str, str, str]:
        """The witness in three lines: problem, participation and start, algorithm."""
        optima = ", ".join(_point(optimum) for optimum in self.optima)
        excluded = f", {list(self.excluded)} excluded" if self.excluded else ""
        return (
            f"Hessian diag{_point(self.curvatures)}, optima {optima}, "
            f"sigma = {self.sigma}, sigma_s = {self.server_sigma}",
            f"m = {self.participants} of {len(self.optima)} clients{excluded}, "
            f"x0 = {_point(self.x0)}, R = {self.rounds}",
            f"q = {self.q}, K = {self.local_steps}, eta_c = {self.client_lr}, "
            f"eta_s = {self.assist_lr}",
        )


def _point(point: tuple[Fraction, ...]) -> str:
    return f"({', '.join(str(coordinate) for coordinate in point)})"
