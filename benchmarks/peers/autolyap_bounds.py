"""The rate of one FedAvg step of all clients by AutoLyap, by bisection."""

from __future__ import annotations

from typing import Any

import numpy as np
from autolyap import IterationIndependent, SolverOptions
from autolyap.algorithms import Algorithm
from autolyap.problemclass import InclusionProblem, SmoothStronglyConvex
from serving import Case, instances, serve


class OneStepOfAll(Algorithm):
    """``x+ = x - lr/N sum_i grad F_i(x)``."""

    def __init__(self, n_clients: int, lr: float) -> None:
        everyone = list(range(1, n_clients + 1))
        super().__init__(n=1, m=n_clients, m_bar_is=[1] * n_clients, I_func=everyone, I_op=[])
        self._pull = -lr / n_clients

    def get_ABCD(self, k: int) -> Any:
        """Return the matrices of AutoLyap's representation."""
        one = np.ones((1, self.m))
        return np.eye(1), self._pull * one, one.T, np.zeros((self.m, self.m))


def rate(of: dict[str, Any], n_clients: int) -> Case:
    """Return the least contraction of the squared distance, to 1e-7."""

    def run() -> dict[str, Any]:
        algorithm = OneStepOfAll(n_clients, of["bound_lr"])
        problem = InclusionProblem([SmoothStronglyConvex(of["bound_mu"], 1.0)] * n_clients)
        P, p, T, t = IterationIndependent.LinearConvergence.get_parameters_distance_to_solution(
            algorithm
        )
        try:
            found = IterationIndependent.LinearConvergence.bisection_search_rho(
                problem,
                algorithm,
                P,
                T,
                p,
                t,
                Q_equals_P=True,
                S_equals_T=True,
                q_equals_p=True,
                s_equals_t=True,
                remove_C2=True,
                remove_C3=True,
                tol=1e-7,
                solver_options=SolverOptions(backend="cvxpy", cvxpy_solver="CLARABEL"),
                verbosity=0,
            )
        except BaseException as error:
            # Clarabel's Rust panics are no `Exception`.
            if type(error).__name__ != "PanicException":
                raise
            found = {"rho": None}
        value = found["rho"]
        # The step's program: the state, two evaluations of each component, and the solution's.
        return {"value": np.nan if value is None else value, "rows": T.shape[0]}

    return run


if __name__ == "__main__":
    of = instances()
    sizes = of["bound_sizes"].astype(int).tolist()
    cases = {f"one step {n_clients}": rate(of, n_clients) for n_clients in sizes}
    serve(cases, "autolyap", "cvxpy", "clarabel")
