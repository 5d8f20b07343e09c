"""Arguments and options that several commands have: each is one that several have."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

from fltheory.cli import COMMANDS, module_name
from fltheory.commands import options

ROOT = Path(__file__).parents[2]
SHARED = [name for name, value in vars(options).items() if get_args(value) and name[0].isupper()]


def test_there_are_some() -> None:
    assert {"TheoremId", "FigureFile", "Check"} <= set(SHARED)


@pytest.mark.parametrize("name", SHARED)
def test_several_commands_have_it(name: str) -> None:
    modules = [import_module(f"fltheory.commands.{module_name(words)}") for words in COMMANDS]
    having = [module for module in modules if name in module.command.__annotations__.values()]
    assert len(having) > 1


@pytest.mark.parametrize("folder", [options.WITNESSES, options.CERTIFICATES], ids=str)
def test_the_usual_folders_hold_certificates(folder: Path) -> None:
    assert list((ROOT / folder).glob("*.json"))
