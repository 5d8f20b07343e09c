"""Modules that a developer's machine has, and installing the package does not bring."""

from __future__ import annotations

import os
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


class Refusing:
    """Finds no module of these names, as if it were not installed."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"no dependency of the wheel brings {name}", name=name)


def refuse_undeclared() -> None:
    """Refuse what neither is a declared dependency nor comes with one, from now on."""
    # It loads whatever is installed and says that it is a plugin.
    os.environ["HYPOTHESIS_NO_PLUGINS"] = "1"
    sys.meta_path.insert(0, Refusing(undeclared()))


def undeclared() -> frozenset[str]:
    """Return the modules that are installed here, but would not be by ``pip install .``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    brought = {canonicalize_name(project["name"])}
    waiting = list(map(Requirement, project["dependencies"]))
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name not in brought and (one.marker is None or one.marker.evaluate({"extra": ""})):
            brought.add(name)
            waiting += map(Requirement, requires(name) or ())
    return frozenset(
        module
        for module, homes in packages_distributions().items()
        if brought.isdisjoint(map(canonicalize_name, homes))
    )
