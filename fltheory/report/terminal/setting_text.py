"""A setting in a few lines: what anyone needs to recognise it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from fltheory.engines import Setting
from fltheory.learnability.system import LearningSetting

_MOST_NUMBERS = 6
_MOST_LETTERS = 200


def setting_lines(setting: Setting | LearningSetting) -> Mapping[str, str]:
    """Return algorithm, problem, participation, rounds and start, each in a line.

    Of a setting of learning, return its fields.
    """
    if not isinstance(setting, Setting):
        return {item.name: brief(getattr(setting, item.name)) for item in fields(setting)}
    return {
        "algorithm": brief(setting.algorithm),
        "problem": brief(setting.problem),
        "participation": brief(setting.participation),
        "rounds": str(setting.rounds),
        "start": brief(setting.x0),
    }


def brief(value: Any) -> str:
    """Return an object in a line, arrays beyond six numbers as their shape and range.

    Examples
    --------
    >>> brief(np.arange(12.0).reshape(3, 4))
    '3 x 4 numbers, 0 to 11'
    """
    if is_dataclass(value) and not isinstance(value, type):
        return _of_dataclass(value)
    if isinstance(value, np.ndarray):
        return _of_array(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple | list):
        return f"({_some([brief(item) for item in value])})"
    return _cut(" ".join(repr(value).split()))


def _of_dataclass(value: Any) -> str:
    shown = ((item.name, getattr(value, item.name)) for item in fields(value))
    inside = ", ".join(f"{name} = {brief(held)}" for name, held in shown if held is not None)
    return f"{type(value).__name__}({inside})"


def _of_array(value: np.ndarray[Any, Any]) -> str:
    if value.size <= _MOST_NUMBERS and value.ndim == 1:
        return f"({', '.join(f'{item:.6g}' for item in value.tolist())})"
    shape = " x ".join(str(size) for size in value.shape)
    return f"{shape} numbers, {value.min():.6g} to {value.max():.6g}" if value.size else "()"


def _some(texts: list[str]) -> str:
    if len(texts) <= _MOST_NUMBERS:
        return ", ".join(texts)
    return f"{', '.join(texts[: _MOST_NUMBERS - 1])}, ... {len(texts)} in all"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."
