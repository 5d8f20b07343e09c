"""The table of algorithms by name, used by training, biases, certificates and shared tests.

A new algorithm is one file in this folder and one line in `ALGORITHMS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, Signature, signature
from typing import Any

from fltheory.algorithms.adafed import AdaFed
from fltheory.algorithms.ca_fed import CAFed
from fltheory.algorithms.cluster_fedvarp import ClusterFedVarp
from fltheory.algorithms.contract import Algorithm
from fltheory.algorithms.f3ast import F3ast
from fltheory.algorithms.fedar import FedAR
from fltheory.algorithms.fedau import FedAU
from fltheory.algorithms.fedavg import FedAvg
from fltheory.algorithms.fedavg_is import FedAvgIS
from fltheory.algorithms.fedawe import FedAWE
from fltheory.algorithms.fednova import FedNova
from fltheory.algorithms.fedprox import FedProx
from fltheory.algorithms.fedvarp import FedVarp
from fltheory.algorithms.local_sgd import LocalSgd
from fltheory.algorithms.mifa import Mifa
from fltheory.algorithms.proxskip import ProxSkip
from fltheory.algorithms.safari import Safari
from fltheory.algorithms.scaffold import Scaffold
from fltheory.algorithms.shared.inactivity_weights import CappedLinear
from fltheory.algorithms.shared.step_sizes import Constant, Harmonic
from fltheory.algorithms.unbiased import Unbiased
from fltheory.algorithms.weighted_fedavg import WeightedFedAvg
from fltheory.algorithms.wrapped import (
    AveragedIterate,
    Projected,
    Scheduled,
    ServerMomentum,
    WarmStarted,
)

STEPS = ("client_lr", "assist_lr", "local_steps")
FACTS = ("target_weights", "aggregation_weights", "availability", "correlation")
"""The facts that an algorithm may know about its clients."""


def _no_options(n_clients: int) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class Listed:
    """An entry of the table; calling it with hyper-parameters makes the algorithm.

    The hyper-parameters are read from the signature of the class.

    Parameters
    ----------
    algorithm : class
    title : str
        The name as papers write it.
    paper : str
    example : callable, optional
        Takes a number of clients and returns values for the options without defaults, with which to
        try the algorithm.
    parts : mapping of str to class, optional
        Classes of those hyper-parameters that are objects; their parameters become hyper-parameters
        of the entry.

    Examples
    --------
    >>> fedar = ALGORITHMS["fedar"]
    >>> fedar.options
    ('growth', 'largest', 'cutoff', 'server_lr')
    >>> fedar(client_lr=0.1, local_steps=2, largest=3.0).weight
    CappedLinear(growth=0.05, largest=3.0)
    """

    algorithm: Callable[..., Algorithm]
    title: str
    paper: str
    example: Callable[[int], Mapping[str, Any]] = _no_options
    parts: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @property
    def __signature__(self) -> Signature:
        """Hyper-parameters by name, including those of the parts."""
        found: dict[str, Parameter] = {}
        for name, parameter in signature(self.algorithm).parameters.items():
            found |= signature(self.parts[name]).parameters if name in self.parts else {
                name: parameter
            }  # fmt: skip
        return Signature([p.replace(kind=Parameter.KEYWORD_ONLY) for p in found.values()])

    @property
    def told(self) -> tuple[str, ...]:
        """Names of the step sizes and client facts that come from the circumstances."""
        return tuple(n for n in self.__signature__.parameters if n in (*STEPS, *FACTS))

    @property
    def facts_required(self) -> tuple[str, ...]:
        """Names of the facts about clients' presence that the algorithm requires."""
        parameters = self.__signature__.parameters
        coming = ("availability", "correlation")
        return tuple(
            n for n in self.told if n in coming and parameters[n].default is Parameter.empty
        )

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the algorithm's other hyper-parameters, which the user may choose."""
        return tuple(n for n in self.__signature__.parameters if n not in (*STEPS, *FACTS))

    def __call__(self, **given: Any) -> Algorithm:
        """Return the algorithm; any ValueError or TypeError is raised by its class."""
        for name, part in self.parts.items():
            if name not in given:
                its = [n for n in signature(part).parameters if n in given]
                given[name] = part(**{n: given.pop(n) for n in its})
        return self.algorithm(**given)

    def among(self, circumstances: Mapping[str, Any], **options: Any) -> Algorithm:
        """Return the algorithm with the circumstances that it takes.

        Parameters
        ----------
        circumstances : mapping
            Step sizes and facts about clients by name (`STEPS`, `FACTS`).
        **options
            Hyper-parameters that override circumstances.
        """
        told = {name: circumstances[name] for name in self.told if name in circumstances}
        return self(**{**told, **options})

    def tried(self, n_clients: int, circumstances: Mapping[str, Any]) -> Algorithm:
        """Return the algorithm with the options of its example."""
        return self.among(circumstances, **self.example(n_clients))


def _two_clusters(n_clients: int) -> Mapping[str, Any]:
    return {"clusters": tuple(2 * client // (n_clients + 1) for client in range(n_clients))}


def _at_most_half(n_clients: int) -> Mapping[str, Any]:
    return {"size": (n_clients + 1) // 2}


_WEIGHTED = "Rodio, Faticanti, Marfoq, Neglia and Leonardi, INFOCOM 2023"
_VARP = "Jhunjhunwala, Sharma, Nagarkatti and Joshi, UAI 2022"

ALGORITHMS: dict[str, Listed] = {
    "fedavg": Listed(FedAvg, "FedAvg", "McMahan et al., AISTATS 2017"),
    "weighted-fedavg": Listed(WeightedFedAvg, "weighted FedAvg", _WEIGHTED),
    "fedavg-is": Listed(FedAvgIS, "FedAvg-IS", "Gu et al., NeurIPS 2021, a baseline"),
    "unbiased": Listed(Unbiased, "Unbiased", _WEIGHTED),
    "adafed": Listed(AdaFed, "AdaFed", f"{_WEIGHTED}, a baseline"),
    "f3ast": Listed(F3ast, "F3AST", "Ribero, Vikalo and de Veciana, 2022", _at_most_half),
    "ca-fed": Listed(CAFed, "CA-Fed", _WEIGHTED),
    "fedau": Listed(FedAU, "FedAU", "Wang and Ji, ICLR 2024"),
    "mifa": Listed(Mifa, "MIFA", "Gu et al., NeurIPS 2021"),
    "fedprox": Listed(
        FedProx, "FedProx", "Li et al., MLSys 2020", lambda n_clients: {"proximal": 0.5}
    ),
    "fednova": Listed(FedNova, "FedNova", "Wang et al., NeurIPS 2020"),
    "fedvarp": Listed(FedVarp, "FedVARP", _VARP),
    "cluster-fedvarp": Listed(ClusterFedVarp, "ClusterFedVARP", _VARP, _two_clusters),
    "scaffold": Listed(Scaffold, "SCAFFOLD", "Karimireddy et al., ICML 2020"),
    "fedar": Listed(
        FedAR,
        "FedAR",
        "Jiang, Zhou, Zhang and Chakraborty, 2024",
        parts={"weight": CappedLinear},
    ),
    "fedawe": Listed(FedAWE, "FedAWE", "Xiang et al., NeurIPS 2024"),
    "safari": Listed(Safari, "SAFARI", "SA-FL, ICML 2024", lambda n_clients: {"q": 0.5}),
}
"""The algorithms by the names that users type; add your own to train and certify it."""

_ALSO = {"average all": "weighted-fedavg"}

PARTS: tuple[Callable[..., Any], ...] = (
    AveragedIterate,
    CappedLinear,
    Constant,
    Harmonic,
    LocalSgd,
    Projected,
    ProxSkip,
    Scheduled,
    ServerMomentum,
    WarmStarted,
)
"""The classes that wrap algorithms or are parts of them."""


def listed(name: str) -> Listed:
    """Return an algorithm's entry by its name, ignoring case.

    Raises
    ------
    ValueError
        If the name is unknown; the message lists the known names.

    Examples
    --------
    >>> listed("FedAvg-IS").told
    ('availability', 'client_lr', 'local_steps')
    """
    known = name.lower() if isinstance(name, str) else name
    known = _ALSO.get(known, known)
    if known not in ALGORITHMS:
        raise ValueError(f"name must be one of {', '.join(ALGORITHMS)}, got {name!r}")
    return ALGORITHMS[known]


def class_named(name: str) -> Callable[..., Any]:
    """Return the class of an algorithm or of a part by the name of the class.

    Raises
    ------
    ValueError
        If no algorithm or part has a class of that name.
    """
    classes = (*(entry.algorithm for entry in ALGORITHMS.values()), *PARTS)
    for found in classes:
        if found.__name__ == name:
            return found
    known = ", ".join(found.__name__ for found in classes)
    raise ValueError(f"name of an algorithm must be one of {known}, got {name!r}")
