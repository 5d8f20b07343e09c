"""Logistic clients that run minibatch SGD on their own samples."""

from __future__ import annotations

import numpy as np

from fltheory import validation
from fltheory.algorithms.contract import Clients
from fltheory.participation.base import Masks
from fltheory.problems.regression.logistic_problem import LogisticProblem
from fltheory.validation import ClientIndices, FloatArray


class LogisticClients(Clients):
    """The Clients contract on a `LogisticProblem`, in NumPy, all participants at once.

    A step draws a batch from the client's own samples, with replacement, so that its mean
    gradient is unbiased and independent of the other steps'. CA-Fed (Section II) asks for
    a random batch and does not say how it is drawn.

    Parameters
    ----------
    problem : LogisticProblem
    rng : numpy.random.Generator
        Draws the batches.
    batch_size : int, optional
        B; by default all samples are used, and nothing is random.
    momentum : float
        Heavy-ball momentum of local SGD, in [0, 1), at rest when a round begins.

    Raises
    ------
    ValueError
        If ``batch_size`` is below 1 or ``momentum`` out of range.
    """

    def __init__(
        self,
        problem: LogisticProblem,
        rng: np.random.Generator,
        batch_size: int | None = None,
        momentum: float = 0.0,
    ) -> None:
        if batch_size is not None:
            batch_size = validation.whole_number("batch_size", batch_size, at_least=1)
        validation.real_number("momentum", momentum, "in [0, 1)", lambda m: 0 <= m < 1)
        self._momentum = momentum
        self._problem = problem
        self._rng = rng
        self._batch_size = batch_size
        # A sample times its sign is all that the loss sees of it.
        self._signed = problem.samples * problem.signs[:, None]

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        return self._problem.n_clients

    def local_sgd(
        self,
        x: FloatArray,
        who: Masks,
        *,
        steps: int,
        lr: float,
        correction: FloatArray | None = None,
        proximal: float = 0,
    ) -> FloatArray:
        """Return each client's change, (replicas, n_clients, dim), zero where absent."""
        rows, clients = np.nonzero(who)
        start = x[rows]
        y = start.copy()
        push = 0.0 if correction is None else correction[rows, clients]
        velocity = np.zeros_like(y)
        for _ in range(steps):
            velocity = self._momentum * velocity + self._gradients(y, clients) + push
            if proximal:
                velocity += proximal * (y - start)
            y -= lr * velocity
        change = np.zeros((*who.shape, x.shape[1]))
        change[rows, clients] = y - start
        return change

    def loss(self, x: FloatArray, who: Masks) -> FloatArray:
        """Return each client's loss on a batch at its replica's model, zero where absent.

        CA-Fed, Section IV-A: clients report the loss of one batch. The penalty is included.
        """
        if self._batch_size is None:
            return np.where(who, self._problem.client_losses(x), 0.0)
        rows, clients = np.nonzero(who)
        margins = np.einsum("tba,ta->tb", self._batches(clients, self._batch_size), x[rows])
        penalty = 0.5 * self._problem.ridge * np.square(x[rows]).sum(axis=1)
        losses = np.zeros(who.shape)
        losses[rows, clients] = np.logaddexp(0.0, -margins).mean(axis=1) + penalty
        return losses

    def server_gradient(self, x: FloatArray) -> FloatArray:
        """Return the gradient of F, exactly: the server has no samples of its own."""
        return self._problem.gradient(x)

    def _gradients(self, y: FloatArray, clients: ClientIndices) -> FloatArray:
        from scipy.special import expit

        if self._batch_size is None:
            return self._problem.client_gradients(y, clients)
        batches = self._batches(clients, self._batch_size)
        margins = np.matmul(batches, y[:, :, None])
        pull = np.matmul(expit(-margins).swapaxes(1, 2), batches)[:, 0]
        return self._problem.ridge * y - pull / self._batch_size

    def _batches(self, clients: ClientIndices, batch_size: int) -> FloatArray:
        """Draw a batch for each row: signed samples, (rows, batch_size, dim)."""
        sizes, starts = self._problem.sizes[clients], self._problem.starts[clients]
        drawn = (self._rng.random((clients.size, batch_size)) * sizes[:, None]).astype(np.intp)
        return np.take(self._signed, drawn + starts[:, None], axis=0)
