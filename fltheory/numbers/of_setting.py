"""Numbers of a setting by name, which are the values of the symbols in statements.

If the setting's numbers are exact, so are these: they are fractions, or balls where a root is not a
fraction. The checker of certificates computes the same names independently of this code, on
purpose.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cached_property, lru_cache
from types import CodeType
from typing import Any

import numpy as np

from fltheory.algorithms import Constant
from fltheory.content import cached_by_content
from fltheory.engines import Setting
from fltheory.exact_or_float import largest, log, number, root
from fltheory.numbers.projected_averaging import ProjectedAveraging
from fltheory.numbers.step_sums import StepSums, endless_squares, inverse_squares
from fltheory.participation.base import mean_size
from fltheory.participation.process import Process, process_of
from fltheory.participation.uniformity import distance_from_uniform
from fltheory.problems.base import gradients_at
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray


class SettingView(ReadOnlyArrays):
    """The named numbers of a setting, and values that they share, computed when first used.

    Parameters
    ----------
    setting : Setting

    Examples
    --------
    >>> from fltheory.theorems import get
    >>> view = SettingView(get("sa-fl/5").regimes["q = 0"].setting)
    >>> view["local_steps"], view.start.shape
    (5, (5,))
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def __getitem__(self, name: str) -> Any:
        """Return a number by its name in `NUMBERS`."""
        return NUMBERS[name][1](self)

    @property
    def problem(self) -> Any:
        """The clients."""
        return self.setting.problem

    @cached_property
    def averaging(self) -> ProjectedAveraging:
        """The setting in CA-Fed's terms; raises ValueError if it is not of CA-Fed's kind."""
        return ProjectedAveraging(self.setting)

    def parameter(self, name: str) -> Any:
        """Return a hyper-parameter of the algorithm, or of the algorithm that it wraps.

        Raises
        ------
        ValueError
            If none of the algorithms has it.
        """
        part: Any = self.setting.algorithm
        while part is not None:
            if hasattr(part, name):
                return getattr(part, name)
            part = getattr(part, "algorithm", None) or getattr(part, "scaffold", None)
        raise ValueError(f"algorithm must have {name}, got {self.setting.algorithm!r}")

    @cached_property
    def start(self) -> FloatArray:
        """``x_0 - x*``, (d,)."""
        return np.asarray(self.setting.x0 - self.problem.x_star)

    @cached_property
    def process(self) -> Process:
        """The participation process, completed with defaults where the user's own lacks methods."""
        return process_of(self.setting.participation)

    @property
    def absence(self) -> FloatArray:
        """(N,) long-run share of rounds in which a client does not take part."""
        return np.asarray(1 - self.process.marginals)

    @cached_property
    def gradients_at_optimum(self) -> FloatArray:
        """The clients' gradients at ``x*``, (N, d)."""
        return gradients_at(self.problem, self.problem.x_star)


def _squared(vector: FloatArray) -> Any:
    return number((vector * vector).sum())


def _control_gap(view: SettingView) -> Any:
    return number((view.gradients_at_optimum**2).sum(axis=1).mean())


def _dependence(view: SettingView) -> Any:
    """Return the largest change that the past can make to a client's participation probability."""
    p = view.process.marginals
    swing = np.maximum(p, 1 - p) * (p < 1)
    chains = view.process.client_chains
    return largest(swing if chains is None else swing * np.abs(chains.correlation))


def _harmonic_sum(view: SettingView) -> Any:
    p = view.process.marginals
    one = p[0] / p[0]  # in the setting's own numbers
    return number((one / np.arange(1, view.setting.rounds)).sum())


def _tightest_biased_excess(view: SettingView) -> Any:
    of = view.averaging
    factor = 2 * (of.problem.L / of.problem.mu) ** 2
    return number(of.objective.excess_loss(of.tightest_point(factor)))


def _weight_multiplier(view: SettingView) -> Any:
    found = view.averaging.fastest
    return math.nan if found is None else found[1]


def _cited_sums(view: SettingView) -> StepSums:
    of = view.averaging
    return of.endless(of.participation.cited_factor.of_eigenbasis)


def _mean_squared_weight(of: ProjectedAveraging) -> Any:
    shares = of.problem.noise_shares
    q = of.q if shares is None else of.q * shares
    return number(of.pi @ q**2)


def _averaging(number_of: Callable[[ProjectedAveraging], Any]) -> Callable[[SettingView], Any]:
    return lambda view: number_of(view.averaging)


def _of_problem(name: str) -> Callable[[SettingView], Any]:
    return lambda view: getattr(view.problem, name)


def _of_algorithm(name: str) -> Callable[[SettingView], Any]:
    return lambda view: view.parameter(name)


NUMBERS: Mapping[str, tuple[str, Callable[[SettingView], Any]]] = {
    "L": ("smoothness of every client", _of_problem("L")),
    "mu": ("strong convexity of every client", _of_problem("mu")),
    "sigma": ("noise of a client's gradient", _of_problem("sigma")),
    "least_sigma": (
        "the smallest noise of any client's gradient",
        lambda view: number(view.problem.client_sigmas.min()),
    ),
    "server_sigma": ("noise of the server's gradient", _of_problem("server_sigma")),
    "sigma_G": ("gradient dissimilarity", _of_problem("sigma_G")),
    "Gamma": ("max_k F_k(x*) - F_k*", _of_problem("Gamma")),
    "n_clients": ("clients", _of_problem("n_clients")),
    "squared_distance": ("||x_0 - x*||^2", lambda view: _squared(view.start)),
    "excess_loss": (
        "F(x_0) - F*",
        lambda view: number(view.problem.excess_loss(view.setting.x0)),
    ),
    "control_gap": ("1/N sum_i ||grad F_i(x*)||^2", _control_gap),
    "rounds": ("rounds", lambda view: view.setting.rounds),
    "local_steps": ("local steps in a round", _of_algorithm("local_steps")),
    "client_lr": ("step size of local SGD", _of_algorithm("client_lr")),
    "server_lr": ("factor on the aggregated update", _of_algorithm("server_lr")),
    "assist_lr": ("step size of the server's own step", _of_algorithm("assist_lr")),
    "q": ("probability of a client round", _of_algorithm("q")),
    "cutoff": ("cut-off of counts", _of_algorithm("cutoff")),
    "option": ("how SCAFFOLD renews its controls, 1 or 2", _of_algorithm("option")),
    "is_warm": (
        "1 if controls are computed in a separate round, else 0",
        lambda view: int(hasattr(view.setting.algorithm, "scaffold")),
    ),
    "participants": (
        "expected participants of a round",
        lambda view: mean_size(view.setting.participation),
    ),
    "least_availability": (
        "the smallest probability with which a client takes part",
        lambda view: -largest(-view.setting.participation.marginals),
    ),
    "largest_availability": (
        "the largest probability with which a client takes part",
        lambda view: largest(view.setting.participation.marginals),
    ),
    "distance_from_uniform": (
        "total variation between a round's participants and a uniform draw of equally many",
        lambda view: distance_from_uniform(view.setting.participation),
    ),
    "has_memory": (
        "1 if who takes part depends on the past, else 0",
        lambda view: int(not view.setting.participation.independent),
    ),
    "dependence": (
        "how much the past can change the probability that a client takes part",
        _dependence,
    ),
    "mean_absence": ("1/N sum_n (1 - p_n)", lambda view: number(view.absence.mean())),
    "mean_squared_absence": (
        "1/N sum_n (1 - p_n)^2",
        lambda view: number((view.absence**2).mean()),
    ),
    "mean_lasting_absence": (
        "1/N sum_n (1 - p_n)^(2K), K the cut-off",
        lambda view: number((view.absence ** (2 * view["cutoff"])).mean()),
    ),
    "total_weight": ("sum_k q_k", _averaging(lambda of: of.total)),
    "least_weight": ("min_k q_k", _averaging(lambda of: number(of.q.min()))),
    "mean_weight": ("sum_k pi_k q_k", _averaging(lambda of: of.pi_q)),
    "mean_squared_weight": (
        "sum_k pi_k q_k^2 sigma_k^2 divided by sigma^2, the largest sigma_k^2",
        _averaging(_mean_squared_weight),
    ),
    "biased_squared_distance": (
        "||x_0 - w_B*||^2, w_B* the minimiser of F_B",
        _averaging(lambda of: _squared(of.x0 - of.objective.minimiser)),
    ),
    "biased_Gamma": ("max_k F_k(w_B*) - F_k*", _averaging(lambda of: of.Gamma_B)),
    "chi_square": (
        "chi^2 of the target importance against the biased one",
        _averaging(lambda of: of.chi_square),
    ),
    "total_variation": ("total variation between them", _averaging(lambda of: of.total_variation)),
    "chain_states": ("states of the chain", _averaging(lambda of: of.states)),
    "chain_rate": (
        "lambda in |[P^t]_ij - pi_j| <= C lambda^t for t >= onset",
        _averaging(lambda of: of.participation.mixing.rate),
    ),
    "chain_factor": ("C of the same", _averaging(lambda of: of.participation.mixing.factor)),
    "chain_onset": ("onset of the same", _averaging(lambda of: of.participation.mixing.onset)),
    "cited_chain_factor": (
        "C by an eigenbasis of the chain",
        _averaging(lambda of: of.participation.cited_factor.of_eigenbasis),
    ),
    "start_distance": (
        "total variation between the first round's law and the limit",
        _averaging(lambda of: of.start_distance),
    ),
    "radius": (
        "radius of the ball that models are projected onto",
        _averaging(lambda of: of.ball.radius),
    ),
    "reach_of_optima": (
        "largest distance of a client's minimiser from its centre",
        _averaging(lambda of: of.from_centre(of.problem.optima)),
    ),
    "reach_of_minimisers": (
        "largest distance of any minimiser from its centre",
        _averaging(lambda of: of.reach_of_minimisers),
    ),
    "reach_of_start": (
        "distance of x_0 from its centre",
        _averaging(lambda of: of.from_centre(of.x0[None])),
    ),
    "largest_gradient": (
        "sup over the ball and clients of ||grad F_k||",
        _averaging(lambda of: of.largest_gradient),
    ),
    "largest_loss_change": (
        "sup over the ball and clients of |F_k(w) - F_k(w_B*)|",
        _averaging(lambda of: of.largest_loss_change),
    ),
    "first_step": ("step size of the first round", _averaging(lambda of: of.steps.at(1))),
    "step_decay": (
        "1 for step sizes of order 1/t, 0 for constant ones",
        _averaging(lambda of: 0 if isinstance(of.steps, Constant) else 1),
    ),
    "step_sum": ("sum of eta_t over the run", _averaging(lambda of: of.finite.steps)),
    "step_square_sum": (
        "sum of eta_t^2 over all t",
        _averaging(lambda of: endless_squares(of.steps)),
    ),
    "inverse_square_sum": (
        "sum of 1/t^2 over all t",
        _averaging(lambda of: inverse_squares(of.steps)),
    ),
    "delayed_square_sum": (
        "sum of eta_{t-J_t}^2 over all t",
        _averaging(lambda of: of.endless().delayed),
    ),
    "delayed_log_sum": (
        "sum of ln(t) eta_{t-J_t}^2 over all t",
        _averaging(lambda of: of.endless().delayed_logs),
    ),
    "run_square_sum": ("sum of eta_t^2 over the run", _averaging(lambda of: of.finite.squares)),
    "run_unmixed_sum": (
        "sum of eta_t C lambda^J_t over rounds of the run with J_t < t - 1",
        _averaging(lambda of: of.finite.unmixed),
    ),
    "run_delay_sum": (
        "sum of J_t eta_{t-J_t}^2 over the run",
        _averaging(lambda of: of.finite.delays),
    ),
    "cited_delayed_square_sum": (
        "delayed_square_sum with cited_chain_factor",
        lambda view: _cited_sums(view).delayed,
    ),
    "cited_delayed_log_sum": (
        "delayed_log_sum with cited_chain_factor",
        lambda view: _cited_sums(view).delayed_logs,
    ),
    "tightest_biased_excess": (
        "F_B(w) - F_B* where CA-Fed's (4) is tightest",
        _tightest_biased_excess,
    ),
    "weight_multiplier": ("theta* of CA-Fed's (26)", _weight_multiplier),
    "harmonic_sum": ("1 + 1/2 + ... + 1/(rounds - 1)", _harmonic_sum),
}
"""The meaning of each name, and the function that computes it."""

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sqrt": root,
    "log": log,
    "Max": lambda *values: largest(list(values)),
    "Min": lambda *values: -largest([-value for value in values]),
}


@cached_by_content(64)
def view_of(setting: Setting) -> SettingView:
    """Return the setting's view; recent views are cached because symbols share values."""
    return SettingView(setting)


def value_in(formula: str, setting: Setting | SettingView) -> Any:
    """Return the value of a formula in `NUMBERS` on a setting or its view.

    Raises
    ------
    ValueError
        If the setting has no such number.

    Examples
    --------
    >>> from fltheory.theorems import get
    >>> value_in("sqrt(4*local_steps + 5)", get("sa-fl/5").regimes["q = 0"].setting)
    5.0
    """
    view = setting if isinstance(setting, SettingView) else view_of(setting)
    names = {name: view[name] for name in names_in(formula)}
    # `check_formula` has made sure that all names and functions are in the two tables.
    return eval(_compiled(formula), {"__builtins__": {}, **_FUNCTIONS}, names)


@lru_cache(maxsize=1024)
def _compiled(formula: str) -> CodeType:
    return compile(formula, "<number of a setting>", "eval")


@lru_cache(maxsize=1024)
def names_in(formula: str) -> tuple[str, ...]:
    """Return the names of the numbers in a formula.

    Raises
    ------
    ValueError
        If the text is not a formula, or contains an unknown name; the message suggests the nearest
        name.
    """
    try:
        tree = ast.parse(formula, mode="eval")
    except (SyntaxError, ValueError) as error:
        raise ValueError(
            f"number must be a formula, e.g. 'sqrt(squared_distance)', got {formula!r}"
        ) from error
    used = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
    for name in used:
        if name not in NUMBERS and name not in _FUNCTIONS:
            near = get_close_matches(name, (*NUMBERS, *_FUNCTIONS), n=1, cutoff=0.6)
            nearest = f" (nearest: {near[0]})" if near else ""
            raise ValueError(
                f"number must be made of the names in fltheory.numbers, got {name!r} in "
                f"{formula!r}{nearest}"
            )
    return tuple(name for name in used if name in NUMBERS)
