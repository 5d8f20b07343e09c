"""A complete run with checkpoints, and the figures that papers report."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite, isnan
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import fltheory
from fltheory.algorithms.contract import State
from fltheory.engines.simulation import simulate
from fltheory.hardware.gradients import FlatModel, cross_entropy
from fltheory.hardware.training.checkpoint import (
    Checkpoint,
    fingerprint,
    read_checkpoint,
    write_checkpoint,
)
from fltheory.hardware.training.prepared import Prepared, images, prepared
from fltheory.hardware.training.settings import RunSettings
from fltheory.participation.base import Masks
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

RoundDone = Callable[[int], None]
_DEFAULT_EVERY = 25


@dataclass(frozen=True, eq=False)
class Finished:
    """A finished run.

    Attributes
    ----------
    curve : Curve
    model : Tensor, (dim,)
        The final parameters.
    about : dict of str to str
        Data set, device and versions of the run.
    """

    curve: Curve
    model: Tensor
    about: dict[str, str]


def identity(settings: RunSettings, seed: int, folder: Path | None = None) -> str:
    """Return a name for everything that determines a run: settings, seed, code, libraries, images.

    If the files need not be the published ones, the images are identified by their content, so the
    files in ``folder`` are read.
    """
    name = f"{settings.key(seed)}-{fingerprint()}"
    if settings.data.published:
        return name
    return f"{name}-{images(settings.data, folder, 'cpu').data.digest}"


def train(
    settings: RunSettings,
    seed: int,
    *,
    file: Path | None = None,
    folder: Path | None = None,
    device: str = "cpu",
    checkpoint_every: int = _DEFAULT_EVERY,
    round_done: RoundDone | None = None,
) -> Finished:
    """Run an experiment's cell with one seed, or resume it from its checkpoint.

    Parameters
    ----------
    settings : RunSettings
    seed : int
    file : path, optional
        File of the checkpoint, which also stores the result; by default, nothing is stored.
    folder : path, optional
        Folder of the data set's files.
    device : str
    checkpoint_every : int
        Rounds between checkpoints; one is also written when something interrupts the run.
    round_done : callable, optional
        Called with the number of rounds done, starting with those of the checkpoint.

    Raises
    ------
    ValueError
        If `prepared` refuses the settings; if the checkpoint is damaged, or belongs to another run
        or to other code; or if a model or loss becomes NaN or infinite. In the last case, the
        checkpoint left is that of the last finite round.
    """
    key = identity(settings, seed, folder) if file is not None else "kept nowhere"
    before = read_checkpoint(file, key) if file is not None else None
    if before is not None and before.done == settings.training.rounds:
        if round_done is not None:
            round_done(before.done)
        return _finished(before)
    ready = prepared(settings, seed, folder=folder, device=device)
    kept = before or _at_start(key, ready)
    ready.clients.randomness = kept.randomness
    written = kept.done
    try:
        for after in _rounds(settings, ready, kept):
            kept = _checked(after, kept, seed, settings, file)
            if round_done is not None:
                round_done(kept.done)
            if file is not None and kept.done - written >= checkpoint_every:
                write_checkpoint(file, kept)
                written = kept.done
    finally:
        if file is not None and kept.done > written:
            write_checkpoint(file, kept)
    return _finished(kept)


def _rounds(settings: RunSettings, ready: Prepared, begun: Checkpoint) -> Iterator[Checkpoint]:
    """Yield the checkpoint after each round."""
    rounds, every = settings.training.rounds, settings.training.evaluate_every
    device = ready.start.device
    drawn = list(islice(ready.participation.masks(ready.participants_rng, 1), rounds))
    # All measurements are copied at once, so that no round waits for a copy.
    on_device = torch.from_numpy(np.stack(drawn)).to(device)
    to_come = iter(on_device[begun.done :])

    def to_backend(who: Masks) -> Tensor:
        if device.type != "cpu":
            ready.clients.expect(int(who.sum()))
        return next(to_come)

    states = simulate(
        ready.algorithm,
        ready.clients,
        _DrawnParticipation(drawn),  # type: ignore[arg-type]
        ready.start,
        participation_rng=ready.participants_rng,
        branch_rng=ready.branches_rng,
        masks_to_backend=to_backend,
        begun=(begun.done, {name: array.to(device) for name, array in begun.state.items()})
        if begun.state
        else None,
    )
    curve = begun.curve
    for done, (state, _) in zip(
        range(begun.done + 1, rounds + 1), islice(states, 1, None), strict=False
    ):
        if done % every == 0 or done == rounds:
            accuracy, loss = evaluated(
                ready.clients.model, state["x"][0], ready.test_inputs, ready.test_labels
            )
            row = torch.tensor([[done, accuracy, loss]], dtype=torch.float64)
            curve = torch.cat([curve, row])
        yield Checkpoint(
            begun.settings, done, dict(state), ready.clients.randomness, curve, begun.about
        )


class _DrawnParticipation:
    """Participation that replays participants drawn beforehand."""

    def __init__(self, masks: list[Masks]) -> None:
        self._masks = masks

    def masks(self, rng: np.random.Generator, replicas: int) -> Iterator[Masks]:
        yield from self._masks
        # The loop asks for one round beyond the last, and that round is not run.
        yield self._masks[-1]


def _checked(
    after: Checkpoint, before: Checkpoint, seed: int, settings: RunSettings, file: Path | None
) -> Checkpoint:
    """Return ``after`` if model and loss are finite; else raise an error that names ``before``."""
    x = after.state["x"]
    model = bool(torch.isfinite(x).all())
    loss = float(after.curve[-1, 2])
    if model and isfinite(loss):
        return after
    nan = isnan(loss) if model else bool(torch.isnan(x).any())
    kept = "nothing was kept"
    if file is not None and before.done:
        kept = f"the checkpoint of round {before.done} is in {file}"
    raise ValueError(
        f"{'loss' if model else 'model'} must stay finite, got {'NaN' if nan else 'infinity'} "
        f"in round {after.done} of {settings.method.name}, seed {seed}, with "
        f"client_lr = {settings.training.client_lr:g}: {kept}"
    )


def _at_start(key: str, ready: Prepared) -> Checkpoint:
    device = ready.start.device
    about = {
        "data": ready.data_name,
        "device": "cpu" if device.type == "cpu" else torch.cuda.get_device_name(device),
        "fltheory": fltheory.__version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    before = evaluated(ready.clients.model, ready.start[0], ready.test_inputs, ready.test_labels)
    curve = torch.tensor([[0, *before]], dtype=torch.float64)
    state: State = {}
    return Checkpoint(key, 0, state, ready.clients.randomness, curve, about)


def _finished(checkpoint: Checkpoint) -> Finished:
    rounds, accuracy, loss = checkpoint.curve.numpy().T
    model = checkpoint.state["x"][0]
    return Finished(Curve(rounds, accuracy, loss), model, dict(checkpoint.about))


_CHUNK = 1000


@dataclass(frozen=True, eq=False)
class Curve(ReadOnlyArrays):
    """Measurements on the test images.

    Attributes
    ----------
    rounds : array of int, (n,)
        Number of rounds before each measurement; the first, 0, is before training.
    accuracy : array, (n,)
        In percent.
    loss : array, (n,)
        Mean cross-entropy.
    """

    rounds: FloatArray
    accuracy: FloatArray
    loss: FloatArray

    def at(self, rounds: Sequence[int] | None) -> Curve:
        """Return measurements after the given rounds, or all but the one before training if None.

        Raises
        ------
        ValueError
            If there is no measurement after one of the rounds.
        """
        if rounds is None:
            chosen = np.flatnonzero(self.rounds > 0)
        else:
            missing = [number for number in rounds if number not in self.rounds]
            if missing:
                raise ValueError(
                    f"rounds must be ones that were measured, got {missing[0]}, which was not"
                )
            chosen = np.flatnonzero(np.isin(self.rounds, rounds))
        return Curve(self.rounds[chosen], self.accuracy[chosen], self.loss[chosen])


def evaluated(model: FlatModel, x: Tensor, inputs: Tensor, labels: Tensor) -> tuple[float, float]:
    """Return accuracy in percent and mean loss of a model, (dim,), on test images."""
    right = torch.zeros((), dtype=torch.long, device=x.device)
    loss = torch.zeros((), dtype=torch.float64, device=x.device)
    with torch.no_grad():
        for first in range(0, len(labels), _CHUNK):
            target = labels[first : first + _CHUNK]
            outputs = model(x, inputs[first : first + _CHUNK])
            right += (outputs.argmax(1) == target).sum()
            loss += cross_entropy(outputs, target).sum()
    return 100 * right.item() / len(labels), loss.item() / len(labels)


def _late(curve: Curve) -> FloatArray:
    """Return the accuracies of the second half of the rounds."""
    return curve.accuracy[curve.rounds > curve.rounds[-1] / 2]


FIGURES: dict[str, Callable[[Curve], float]] = {
    "last": lambda curve: float(curve.accuracy[-1]),
    "best": lambda curve: float(curve.accuracy.max()),
    "late": lambda curve: float(_late(curve).mean()),
    "time-average": lambda curve: float(curve.accuracy.mean()),
    "deviation": lambda curve: float(np.std(_late(curve))),
    "last loss": lambda curve: float(curve.loss[-1]),
}
"""Figures of a run: test accuracy after the last round, the highest, its mean and standard
deviation over the second half of the rounds, its mean over all; and the last test loss."""
