"""The checker of certificates, loaded once from its file, with no package around it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "fltheory" / "verify" / "certificates" / "certificate_checker.py"


def _loaded() -> Any:
    spec = importlib.util.spec_from_file_location("checker_alone", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["checker_alone"] = module
    spec.loader.exec_module(module)
    return module


checker = _loaded()
