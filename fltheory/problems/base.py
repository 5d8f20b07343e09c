"""What the engines and theorems ask of a problem."""

from __future__ import annotations

from typing import Protocol

from fltheory.validation import ClientIndices, FloatArray


class Problem(Protocol):
    """Analytic client losses F_i, their average F, and exact constants.

    ``sigma`` and ``server_sigma`` are the noise levels of the clients' and the server's
    stochastic gradients: ``E||noise||^2`` is their square, exactly.

    Examples
    --------
    Whatever the losses, a problem knows its constants and its optimum:

    >>> import fltheory as fl
    >>> problem: Problem = fl.problems.QuadraticProblem([[2.0]], [[-1.0], [3.0]])
    >>> problem.L, problem.x_star.tolist(), problem.sigma_G
    (2.0, [1.0], 4.0)
    """

    @property
    def n_clients(self) -> int:
        """N, the number of clients."""
        ...

    @property
    def dim(self) -> int:
        """d, the dimension of the model."""
        ...

    @property
    def sigma(self) -> float:
        """Noise level of the clients' gradients."""
        ...

    @property
    def server_sigma(self) -> float:
        """Noise level of the server's own gradient."""
        ...

    @property
    def alpha(self) -> FloatArray:
        """(N,) target weights."""
        ...

    @property
    def L(self) -> float:
        """Smoothness of every client."""
        ...

    @property
    def mu(self) -> float:
        """The smallest curvature of any client."""
        ...

    @property
    def sigma_G(self) -> float:
        """Gradient dissimilarity."""
        ...

    @property
    def x_star(self) -> FloatArray:
        """(d,) global minimiser of F."""
        ...

    @property
    def F_star(self) -> float:
        """The minimum of F."""
        ...

    def loss(self, x: FloatArray) -> FloatArray:
        """F at points (..., d)."""
        ...

    def excess_loss(self, x: FloatArray) -> FloatArray:
        """``F(x) - F*`` at points (..., d)."""
        ...

    def gradient(self, x: FloatArray) -> FloatArray:
        """``grad F`` at points (..., d)."""
        ...

    def client_gradients(self, x: FloatArray, clients: ClientIndices) -> FloatArray:
        """``grad F_i(x_t)`` with ``i = clients[t]``, for points (T, d)."""
        ...

    def client_losses(self, x: FloatArray) -> FloatArray:
        """``F_i(x)`` of every client, (..., N), at points (..., d)."""
        ...
