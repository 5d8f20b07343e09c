"""Settings as certificates hold them: every algorithm, every kind of participation."""

from __future__ import annotations

from typing import Any

DENSE = [[["2", "1/2"], ["1/2", "1"]], [["1", "0"], ["0", "3"]], [["1", "-1/3"], ["-1/3", "1/2"]]]
FLAT = [[["2", "0"], ["0", "1/2"]], [["1", "0"], ["0", "3"]], [["1/2", "0"], ["0", "1"]]]
LINE = [[["2"]], [["1/2"]], [["1"]]]
IN_PLANE: dict[str, Any] = {
    "hessians": DENSE, "optima": [["1", "0"], ["-2", "1"], ["0", "4"]], "sigma": "3",
    "server_sigma": "1/5", "target_weights": ["1/2", "1/3", "1/6"],
}  # fmt: skip
FLAT_CLIENTS = {**IN_PLANE, "hessians": FLAT}
ON_LINE = {**IN_PLANE, "hessians": LINE, "optima": [["1"], ["-2"], ["1/3"]]}
LOCAL: dict[str, Any] = {"client_lr": "1/5", "local_steps": 2}
SERVED: dict[str, Any] = {**LOCAL, "server_lr": "3/2"}
ALGORITHMS: dict[str, Any] = {
    "FedAvg": SERVED,
    "WeightedFedAvg": {**SERVED, "aggregation_weights": ["1/3", "0", "2"]},
    "FedAvgIS": {**SERVED, "availability": ["1/3", "1", "1/2"]},
    "Unbiased": {
        **SERVED, "target_weights": ["1/2", "1/3", "1/6"], "availability": ["1/3", "1", "1/2"],
    },
    "AdaFed": {
        **SERVED, "target_weights": ["1/2", "1/3", "1/6"], "availability": ["1/3", "1", "1/2"],
    },
    "FedAU": {**SERVED, "cutoff": 2},
    "FedAR": {
        **SERVED, "cutoff": 1,
        "weight": {"name": "CappedLinear", "growth": "1/3", "largest": "5/4"},
    },
    "Mifa": {**SERVED, "start": "wait"},
    "FedVarp": SERVED,
    "ClusterFedVarp": {**SERVED, "clusters": [0, 1, 0]},
    "Scaffold": {**SERVED, "option": 2},
    "Safari": {**LOCAL, "q": "3/4", "assist_lr": "1/7"},
    "FedProx": {**SERVED, "proximal": "2/3", "client_weights": ["1", "0", "3"]},
    "FedNova": {**SERVED, "local_steps": [2, 1, 3], "client_weights": ["1", "2", "3"]},
    "F3ast": {
        **SERVED, "target_weights": ["1/2", "1/3", "1/6"], "size": 1, "smoothing": "1/4",
        "availability": None,
    },
    "LocalSgd": {
        "step_sizes": {"name": "Harmonic", "scale": "1/2", "offset": "3/2"}, "local_steps": 2,
        "aggregation_weights": ["1/2", "1/3", "1/6"],
    },
}  # fmt: skip
PARTICIPATION: dict[str, Any] = {
    "two of three": {"name": "UniformSubset", "size": 2, "excluded": []},
    "one of two": {"name": "UniformSubset", "size": 1, "excluded": [1]},
    "independent": {"name": "Bernoulli", "availability": ["1/2", "1/3", "1"]},
    "on and off": {
        "name": "MarkovOnOff", "availability": ["1/2", "1", "1/3"],
        "correlation": ["1/2", "0", "-1/4"], "start": None,
    },
    "all off at first": {
        "name": "MarkovOnOff", "availability": ["1/2", "1", "1/3"],
        "correlation": ["1/2", "0", "1/4"], "start": [0, 1, 0],
    },
    "a chain": {
        "name": "FiniteChain", "transition": [["1/2", "1/2", "0"], ["0", "1/3", "2/3"],
        ["1", "0", "0"]], "sets": [[0], [0, 1], [2]], "start": None,
    },
    "waiting": {"name": "WaitingSubset", "availability": ["1/2", "1/3", "1"], "size": 2},
    "cycles": {"name": "Cyclic", "periods": [1, 2, 3], "offsets": [0, 1, 1], "active": [1, 1, 2]},
}  # fmt: skip


def method(name: str, **changes: Any) -> dict[str, Any]:
    """Return an algorithm."""
    return {"name": name, **ALGORITHMS[name], **changes}


HARMONIC = {"name": "Harmonic", "scale": "1/2", "offset": "3/2"}
SCHEDULED = {
    "name": "Scheduled", "step_sizes": HARMONIC, "algorithm": method("WeightedFedAvg"),
}  # fmt: skip
METHODS: dict[str, Any] = {
    **{name: method(name) for name in ALGORITHMS},
    "MIFA from zero": method("Mifa", start="zero"),
    "SCAFFOLD, option 1": method("Scaffold", option=1),
    "warm": {"name": "WarmStarted", "scaffold": method("Scaffold")},
    "FedAR uncut": method("FedAR", cutoff=None),
    "FedAU uncut": method("FedAU", cutoff=None),
    "FedProx, alike": method("FedProx", client_weights=None),
    "FedNova, alike": method("FedNova", local_steps=2, client_weights=None),
    "F3AST with an oracle": method("F3ast", size=2, availability=["1/3", "1", "1/2"]),
    "single steps, never averaged": method("LocalSgd", local_steps=9),
    "momentum": {"name": "ServerMomentum", "momentum": "1/3", "algorithm": method("FedAvg")},
    "scheduled": SCHEDULED,
    "averaged": {"name": "AveragedIterate", "weights": HARMONIC, "algorithm": SCHEDULED},
    "plain average": {
        "name": "AveragedIterate", "weights": {"name": "Constant", "value": "1"},
        "algorithm": method("FedVarp"),
    },
}  # fmt: skip


def setting(
    algorithm: Any, participation: str = "two of three", rounds: int = 2, problem: Any = ON_LINE
) -> dict[str, Any]:
    """Return a setting of a method by its name, or itself."""
    found = METHODS[algorithm] if isinstance(algorithm, str) else algorithm
    x0 = ["3", "-1/2"][: len(problem["optima"][0])]
    return {
        "algorithm": found, "problem": problem, "participation": PARTICIPATION[participation],
        "rounds": rounds, "x0": x0,
    }  # fmt: skip
