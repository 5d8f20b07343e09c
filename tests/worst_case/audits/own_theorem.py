"""The theorem that ``fltheory new theorem`` writes, as it stands and with slips."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import fltheory.commands
from fltheory.theorems import Theorem

TEMPLATE = Path(fltheory.commands.__file__).parent / "templates" / "theorem.txt"
PARTS: dict[str, Any] = runpy.run_path(str(TEMPLATE))
MINE: Theorem = PARTS["THEOREM"]
