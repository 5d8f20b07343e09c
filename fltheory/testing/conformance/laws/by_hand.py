"""Rounds worked out by hand: numbers that owe nothing to any implementation.

All clients have ``F_k(x) = (x - c_k)^2 / 2`` in one dimension, and ``client_lr`` is 1/2: a local
step goes half the way to c_k, two steps three quarters of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fltheory.testing.conformance.cases.case import Case
from fltheory.testing.conformance.cases.clients import QuadraticClient
from fltheory.validation import FloatArray


@dataclass(frozen=True)
class Worked:
    """An example with its arithmetic.

    Attributes
    ----------
    optima : tuple of float
        c, one a client.
    sizes : tuple of int
    present : tuple of tuple of int
        Who is there, round by round.
    models : tuple of float
        x0 and the models after each round.
    words : tuple of str
        The arithmetic of each round.
    x0 : float
    options : mapping
    local_steps : int or tuple of int
    server_lr : float
    """

    models: tuple[float, ...]
    words: tuple[str, ...]
    present: tuple[tuple[int, ...], ...]
    optima: tuple[float, ...] = (0.0, 8.0)
    sizes: tuple[int, ...] = (1, 3)
    options: Mapping[str, Any] = field(default_factory=dict)
    local_steps: int | tuple[int, ...] = 2
    server_lr: float = 1.0

    @property
    def case(self) -> Case:
        """What ``run`` is given."""
        trace = np.zeros((len(self.present), len(self.optima)), dtype=bool)
        for t, who in enumerate(self.present):
            trace[t, list(who)] = True
        clients = tuple(
            QuadraticClient(np.eye(1), np.array([c]), size)
            for c, size in zip(self.optima, self.sizes, strict=True)
        )
        return Case(
            clients,
            np.array([self.models[0]]),
            trace,
            client_lr=0.5,
            local_steps=self.local_steps,
            server_lr=self.server_lr,
            options=dict(self.options),
        )

    @property
    def expected(self) -> FloatArray:
        """The models, (rounds + 1, 1)."""
        return np.array(self.models)[:, None]


_BOTH, _FIRST, _SECOND, _NOBODY = (0, 1), (0,), (1,), ()

WORKED: Mapping[str, tuple[Worked, ...]] = {
    "fedavg": (
        Worked(
            models=(4.0, 5.5, 1.375, 1.375, 6.34375),
            words=(
                "client 0: 4, 2, 1, change -3; client 1: 4, 6, 7, change 3; 4 + (-3 + 3*3)/4",
                "client 0 alone: 5.5, 2.75, 1.375",
                "nobody: the model stays",
                "client 1 alone: 1.375, 4.6875, 6.34375",
            ),
            present=(_BOTH, _FIRST, _NOBODY, _SECOND),
            options={"weighting": "n_samples"},
        ),
        Worked(
            models=(4.0, 4.0, 2.5, 3.0625),
            words=(
                "changes -3 and 3, plain mean 0",
                "client 0 alone: change -3, halved by server_lr",
                "changes -1.875 and 4.125, plain mean 1.125, halved by server_lr",
            ),
            present=(_BOTH, _FIRST, _BOTH),
            options={"weighting": "uniform"},
            server_lr=0.5,
        ),
    ),
    "fedprox": (
        Worked(
            models=(4.0, 5.25, 1.96875, 1.96875),
            words=(
                "a step is y/4 + c/2 + x/4, two change x by 5/8 (c - x): -2.5 and 2.5; "
                "4 + (-2.5 + 3*2.5)/4",
                "client 0 alone: 5.25 - 5/8 5.25",
                "nobody: the model stays",
            ),
            present=(_BOTH, _FIRST, _NOBODY),
            options={"proximal": 0.5, "weighting": "n_samples"},
        ),
    ),
    "fednova": (
        Worked(
            models=(4.0, 4.9375, 2.46875, 2.46875, 7.30859375),
            words=(
                "client 0 changes by -2 in 1 step, client 1 by 3.5 in 3; p = 1/4, 3/4, "
                "tau_eff = 1/4 + 9/4; 4 + 2.5 (-2/4 + 3/4 3.5/3)",
                "client 0 alone: p = 1, tau_eff = 1, change -2.46875",
                "nobody: the model stays",
                "client 1 alone: p = 1, tau_eff = 3, change 7/8 5.53125",
            ),
            present=(_BOTH, _FIRST, _NOBODY, _SECOND),
            local_steps=(1, 3),
        ),
    ),
    "scaffold": (
        Worked(
            models=(4.0, 4.0, 3.25, 4.28125, 4.0703125),
            words=(
                "changes -3 and 3, mean 0; c_0 = 3, c_1 = -3 (K client_lr = 1), c = 0",
                "c - c_0 = -3, so change 3/4 (0 + 3 - 4) = -0.75; c_0 = 3.75, c = 0.75/N = 0.375",
                "c - c_1 = 3.375, so change 3/4 (8 - 3.375 - 3.25) = 1.03125; "
                "c_1 = -3 - 0.375 - 1.03125 = -4.40625, c = 0.375 - 1.40625/2 = -0.328125",
                "changes 3/4 (4.078125 - 4.28125) and 3/4 (8 - 4.078125 - 4.28125), "
                "mean -0.2109375",
            ),
            present=(_BOTH, _FIRST, _SECOND, _BOTH),
            options={"option": 2},
        ),
        Worked(
            models=(6.0, 4.5, 4.125, 4.59375, 4.59375),
            words=(
                "changes -4.5 and 1.5, mean -1.5; gradients at 6: c_0 = 6, c_1 = -2, c = 2",
                "c - c_0 = -4, so change 3/4 (0 + 4 - 4.5) = -0.375; c_0 = 4.5, c = 2 - 1.5/2",
                "c - c_1 = 3.25, so change 3/4 (8 - 3.25 - 4.125) = 0.46875",
                "nobody: the model stays",
            ),
            present=(_BOTH, _FIRST, _SECOND, _NOBODY),
            options={"option": 1},
        ),
    ),
    "fedvarp": (
        Worked(
            models=(6.0, 4.5, 4.125, 4.125, 4.59375),
            words=(
                "changes -4.5 and 1.5, mean -1.5; both are remembered",
                "client 0: change -3.375, surprise 1.125, memory's mean -1.5",
                "nobody: the model stays",
                "client 1: change 2.90625, surprise 1.40625, memory's mean (-3.375 + 1.5)/2",
            ),
            present=(_BOTH, _FIRST, _NOBODY, _SECOND),
        ),
    ),
    "mifa": (
        Worked(
            models=(6.0, 3.75, 1.5, 1.6875, 3.4921875),
            words=(
                "client 0: change -4.5; the table's mean is -4.5/2",
                "nobody: the table's mean is -4.5/2 still",
                "client 1: change 4.875; the mean is (-4.5 + 4.875)/2",
                "client 0: change -1.265625; the mean is (-1.265625 + 4.875)/2",
            ),
            present=(_FIRST, _NOBODY, _SECOND, _FIRST),
            options={"start": "zero"},
        ),
        Worked(
            models=(6.0, 6.0, 6.0, 4.5, 3.0),
            words=(
                "client 0: change -4.5; client 1 has not appeared: the model waits",
                "nobody: the model waits",
                "client 1: change 1.5; all have appeared: the mean is (-4.5 + 1.5)/2",
                "nobody: the table's mean is -1.5 still",
            ),
            present=(_FIRST, _NOBODY, _SECOND, _NOBODY),
            options={"start": "wait"},
        ),
    ),
    "fedau": (
        Worked(
            models=(6.0, 3.75, 3.75, 5.53125, 6.919921875),
            words=(
                "client 0: change -4.5, omega 1, divided by N = 2",
                "nobody: client 1's interval reaches the cut-off: its omega is 2 from now on",
                "changes -2.8125 and 3.1875 with omega 1 and 2: (-2.8125 + 6.375)/2",
                "client 1: intervals 2 and 1, so omega 1.5: 1.5 * 1.8515625 / 2",
            ),
            present=(_FIRST, _NOBODY, _BOTH, _SECOND),
            options={"cutoff": 2},
        ),
        Worked(
            models=(6.0, 3.75, 3.75, 3.9375, 6.29296875),
            words=(
                "client 0: change -4.5, omega 1, divided by N = 2",
                "nobody: the model stays",
                "no interval of client 1 has ended, so omega 1 and 1: (-2.8125 + 3.1875)/2",
                "omega 1.5 (intervals 1 and 2) and 3: (-1.5*2.953125 + 3*3.046875)/2",
            ),
            present=(_FIRST, _NOBODY, _BOTH, _BOTH),
            options={"cutoff": 5},
        ),
    ),
    "fedar": (
        Worked(
            models=(6.0, 1.5, -4.125, -2.953125, 5.26171875),
            words=(
                "client 0: change -4.5, age 0, weight 1, N_t = 1",
                "nobody: client 0 is of age 1, weight 1.25, N_t = 1: -5.625",
                "client 1: change 9.09375; client 0 of age 2, weight 1.5, still counts: "
                "(9.09375 - 1.5*4.5)/2",
                "client 1: change 8.21484375; client 0 of age 3 is beyond the cut-off: N_t = 1",
            ),
            present=(_FIRST, _NOBODY, _SECOND, _SECOND),
            options={"growth": 0.25, "largest": 1.5, "cutoff": 2},
        ),
    ),
    "fedavg-is": (
        Worked(
            models=(6.0, 2.5, 2.5, 5.25),
            words=(
                "changes -4.5 and 1.5: (-4.5/0.5 + 1.5/0.75)/N, N = 2",
                "nobody: the model stays",
                "client 1: change 4.125; 4.125/0.75/2",
            ),
            present=(_BOTH, _NOBODY, _SECOND),
            options={"availability": (0.5, 0.75)},
        ),
    ),
    "adafed": (
        Worked(
            models=(6.0, 5.5, 1.375, 1.375),
            words=(
                "changes -4.5 and 1.5; alpha/pi = 0.5 and 1, renormalised 1/3 and 2/3",
                "client 0 alone: weight 1, change -4.125",
                "nobody: the model stays",
            ),
            present=(_BOTH, _FIRST, _NOBODY),
            options={"target_weights": (0.25, 0.75), "availability": (0.5, 0.75)},
        ),
    ),
    "f3ast": (
        Worked(
            models=(6.0, 51 / 7, 153 / 28),
            words=(
                "r = 0.75, 0.875: client 1 has the larger alpha/r, 6/7; 6 + 6/7 1.5",
                "client 0 alone: alpha/r = 1/3; 51/7 - 3/4 51/7 / 3",
            ),
            present=(_BOTH, _FIRST),
            options={
                "target_weights": (0.25, 0.75),
                "availability": (0.5, 0.75),
                "smoothing": 0.5,
                "size": 1,
            },
        ),
        Worked(
            models=(6.0, 4.2, 4.2 + 34.2 / 11, 4.2 + 34.2 / 11, (4.2 + 34.2 / 11) * 25 / 37),
            words=(
                "client 0: r = 0.25 becomes 0.625, weight 0.4; r of client 1 falls to 0.375",
                "alpha/r = 0.4 and 2: client 1 is chosen, r = 0.6875, weight 12/11, change 2.85",
                "nobody: the model stays, r falls by half to 0.15625 and 0.34375",
                "client 0: r = 0.578125, weight 16/37, change -3/4 of the model",
            ),
            present=(_FIRST, _BOTH, _NOBODY, _FIRST),
            options={"target_weights": (0.25, 0.75), "smoothing": 0.5, "size": 1},
        ),
    ),
    "ca-fed": (
        Worked(
            models=(6.0, 5.25, 3.28125, 2.05078125),
            words=(
                "first reports, no gaps, nobody is excluded; alpha/pi = 0.5 and 1: -4.5*0.5 + 1.5",
                "smoothed losses 15.890625 and 2.890625, gaps 0 and 0.890625; without client 1 "
                "epsilon falls from 0.668 to 0.501: it is excluded; -3.9375*0.5",
                "client 0 reports again, gaps 0 and 0.890625: client 1 is still excluded",
            ),
            present=(_BOTH, _BOTH, _FIRST),
            options={
                "target_weights": (0.25, 0.75),
                "availability": (0.5, 0.75),
                "correlation": (0.2, 0.1),
                "loss_smoothing": 0.5,
                "threshold": 0.0,
                "kappa_bar": 1.0,
            },
        ),
        Worked(
            models=(6.0, 4.3125, 7.3828125),
            words=(
                "client 0: pi_hat = (1 + 1)/(1 + 2), weight 0.375, change -4.5",
                "pi_hat = 3/4 and 1/2, no gaps: -3.234375/3 + 1.5*2.765625",
            ),
            present=(_FIRST, _BOTH),
            options={
                "target_weights": (0.25, 0.75),
                "loss_smoothing": 0.5,
                "threshold": 0.0,
                "kappa_bar": 1.0,
                "prior": (1.0, 1.0),
            },
        ),
    ),
}
"""Worked examples by algorithm."""
