"""Run a typed command line: a command of fltheory, or a script of docs/scripts/."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from fltheory import cli


def run_typed(words: Sequence[object]) -> None:
    """Run ``fltheory WORDS`` or, if the first is ``NAME.py``, that script with the others."""
    typed = [str(word) for word in words]
    if typed and typed[0].endswith(".py"):
        sys.argv = [f"docs/scripts/{typed[0]}", *typed[1:]]
        cli.run_script(import_module(f"docs.scripts.{Path(typed[0]).stem}").command)
    sys.argv = ["fltheory", *typed]
    cli.main()
