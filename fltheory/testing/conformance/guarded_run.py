"""Guarded calls of an implementation, which report any fault other than wrong numbers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np

from fltheory.files.user_file import said_by
from fltheory.read_only import read_only_copy
from fltheory.testing.conformance.case import Case, CountedClient
from fltheory.testing.conformance.own_runs import Run
from fltheory.validation import FloatArray

NOT_FINITE = "not finite"


class Misconduct(Exception):  # noqa: N818
    """A call that returned no models to compare; the message says what the call did.

    Parameters
    ----------
    kind : str
        The kind of fault, in a word or two. It is the same for cases that fail in the same way.
    message : str
    case : Case
    """

    def __init__(self, kind: str, message: str, case: Case) -> None:
        super().__init__(message)
        self.kind, self.case = kind, case


@dataclass(eq=False)
class GuardedRun:
    """An implementation that is monitored and gets read-only inputs.

    Attributes
    ----------
    run : callable
    seconds : float
        Time spent inside the implementation.
    calls : int
    known : dict
        The models of cases, by `Case.key`; each case is run only once.
    asked_absent : int
        Number of gradients requested from clients that were never present, for information.
    coarse : str
        The number type of the models, if it has less than double precision.
    """

    run: Run
    seconds: float = 0.0
    calls: int = 0
    known: dict[tuple[object, ...], tuple[Case, FloatArray]] = field(default_factory=dict)
    asked_absent: int = 0
    coarse: str = ""

    def models(self, case: Case) -> FloatArray:
        """Return the models after every round, (rounds + 1, d).

        Raises
        ------
        Misconduct
            If the call does not return these models.
        """
        if case.key not in self.known:
            self.known[case.key] = case, self.fresh(case)
        return self.known[case.key][1]

    def fresh(self, case: Case) -> FloatArray:
        """Return the models of a new call."""
        key = case.key
        x0, trace = read_only_copy(np.array(case.x0)), read_only_copy(np.array(case.trace))
        clients = tuple(CountedClient(client) for client in case.clients)
        sequence = list(clients)
        begun = time.perf_counter()
        try:
            given = self.run(x0, sequence, trace, **case.keywords)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _raised(error, case) from error
        finally:
            self.seconds += time.perf_counter() - begun
            self.calls += 1
        _check_inputs(case, x0, trace, sequence, clients)
        if case.key != key:
            raise _changes(": the numbers inside the clients", case)
        never = ~case.trace.any(axis=0)
        self.asked_absent += sum(len(clients[k].gradients) for k in np.flatnonzero(never))
        models = _checked_models(given, case)
        kind = np.asarray(given).dtype
        if kind.kind == "f" and kind.itemsize < models.itemsize:
            self.coarse = kind.name
        return models


def check_signature(run: Run, case: Case) -> None:
    """Raise ValueError if ``run`` does not accept the arguments that every law will use."""
    try:
        taken = signature(run)
    except (TypeError, ValueError):  # compiled functions may have no signature
        return
    try:
        taken.bind(case.x0, case.clients, case.trace, **case.keywords)
    except TypeError as error:
        names = ", ".join(case.keywords)
        raise ValueError(
            f"run must take x0, clients, trace and the keyword arguments {names} (it need not use "
            f"them), got {taken}: {error}"
        ) from error


def _changes(what: str, case: Case) -> Misconduct:
    return Misconduct("changes its inputs", f"run changes its inputs{what}", case)


def _raised(error: BaseException, case: Case) -> Misconduct:
    said = said_by(error)
    text = f"{type(error).__name__}: {said}".strip().rstrip(":")
    place = _place(error)
    if "read-only" in said or type(error).__name__ == "FrozenInstanceError":
        return _changes(f", which are read-only (copy them first): {text}{place}", case)
    return Misconduct(f"raises {type(error).__name__}", f"run raises {text}{place}", case)


def _place(error: BaseException) -> str:
    """Return the last line of the traceback outside this package."""
    place, at = "", error.__traceback__
    while at is not None:
        name = at.tb_frame.f_code.co_filename
        if "fltheory" not in name.replace("\\", "/").split("/")[-4:-1] and name != __file__:
            place = f" ({name}, line {at.tb_lineno})"
        at = at.tb_next
    return place


def _check_inputs(
    case: Case,
    x0: FloatArray,
    trace: np.ndarray,
    sequence: Sequence[CountedClient],
    clients: Sequence[CountedClient],
) -> None:
    differing = {
        "x0": x0.tobytes() != case.x0.tobytes(),
        "trace": trace.tobytes() != case.trace.tobytes(),
        "clients": list(map(id, sequence)) != list(map(id, clients)),
    }
    if changed := [name for name, differs in differing.items() if differs]:
        raise _changes(f": {' and '.join(changed)}", case)


def _checked_models(given: Any, case: Case) -> FloatArray:
    wanted = (case.rounds + 1, case.dim)

    def refused(kind: str, what: str) -> Misconduct:
        return Misconduct(kind, f"run must return {what}", case)

    if given is None:
        raise refused("returns None", f"models of shape {wanted}, got None")
    try:
        kind = np.asarray(given).dtype.kind
        if kind in "cSU":
            what = "complex numbers" if kind == "c" else "text"
            raise TypeError(f"models must be real numbers, not {what}")
        if kind in "biu":
            raise TypeError("models must be floating-point numbers, not integers or booleans")
        models = np.array(given, dtype=np.float64)
    except Exception as error:
        got = f"got {type(given).__name__}, which is not one: {said_by(error)}"
        raise refused("returns no array", f"an array of shape {wanted}, {got}") from error
    if models.shape != wanted:
        hint = _shape_hint(models.shape, case)
        shape = f"models of shape (rounds + 1, d) = {wanted}, got {models.shape}{hint}"
        raise refused("wrong shape", shape)
    if not np.isfinite(models).all():
        row = int(np.flatnonzero(~np.isfinite(models).all(axis=1))[0])
        raise refused(NOT_FINITE, f"finite models, got {models[row]} after round {row}")
    return models


def _shape_hint(shape: tuple[int, ...], case: Case) -> str:
    if shape == (case.rounds, case.dim):
        return ": the first row must be x0, before any round"
    if shape == (case.dim,):
        return ": return the model after every round, not only the last one"
    if shape == (case.dim, case.rounds + 1):
        return ": return one row per round"
    return ""
