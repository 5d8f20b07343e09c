"""One client whose loss and gradient are known exactly, and the local steps it takes."""

from __future__ import annotations

from typing import Protocol

from fltheory.validation import FloatArray


class LossClient(Protocol):
    """A client whose loss and gradient are known exactly."""

    @property
    def n_samples(self) -> int:
        """How much data the client has; may be 0."""
        ...

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return the exact gradient of the client's loss at ``x`` (d,), a new array."""
        ...

    def loss(self, x: FloatArray) -> float:
        """Return the client's loss at ``x``."""
        ...


def descended(
    client: LossClient,
    start: FloatArray,
    *,
    steps: int,
    lr: float,
    correction: FloatArray | None = None,
    proximal: float = 0.0,
) -> FloatArray:
    """Return where ``steps`` steps of gradient descent lead from ``start``, both (d,).

    Every gradient gets ``correction`` and ``proximal (y - start)`` added.
    """
    push = 0.0 if correction is None else correction
    y = start.copy()
    for _ in range(steps):
        y = y - lr * (client.gradient(y) + push + proximal * (y - start))
    return y
