"""The algorithms as Flower strategies, clients for them, and in-process runs of any strategy.

This package needs the optional extra ``flower``, which nothing else in fltheory imports.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fltheory.flower.algorithm_strategy import AlgorithmStrategy
    from fltheory.flower.local_clients import local_client_app
    from fltheory.flower.strategy_runs import run_of

__all__ = [
    "AlgorithmStrategy",
    "local_client_app",
    "run_of",
]

_HOMES = {
    "AlgorithmStrategy": "algorithm_strategy",
    "local_client_app": "local_clients",
    "run_of": "strategy_runs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_HOMES[name]}")
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "flwr":
            raise
        raise ImportError(
            f"{__name__}.{name} needs Flower, an optional extra: pip install 'fltheory[flower]'"
        ) from error
    return getattr(module, name)
