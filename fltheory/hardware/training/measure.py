"""Carrying out all runs of an experiment, and computing the figures in its cells."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.files.whole_file import remove_leftovers, writable
from fltheory.hardware.training.experiment import Experiment, ExperimentCell
from fltheory.hardware.training.prepared import checked_device, prepared
from fltheory.hardware.training.run import FIGURES, Finished, identity, train
from fltheory.hardware.training.settings import RunSettings
from fltheory.long_work.progress import Progress
from fltheory.validation import FloatArray


@dataclass(frozen=True, eq=False)
class Measured:
    """An experiment with all its runs.

    Attributes
    ----------
    experiment : Experiment
    runs : dict of (str, int) to Finished
        Finished runs by `RunSettings.key` and seed.
    """

    experiment: Experiment
    runs: dict[str, Finished]

    def values(self, cell: ExperimentCell, figure: str | None = None) -> FloatArray:
        """Return a cell's figure for every seed, (seeds,), minus the baseline's if it has one."""
        wanted = FIGURES[figure or cell.figure]

        def of(settings: RunSettings) -> FloatArray:
            seeds = self.experiment.seeds
            curves = (self.runs[settings.key(seed)].curve for seed in seeds)
            return np.array([wanted(curve.at(cell.rounds)) for curve in curves])

        return of(cell.settings) - (of(cell.baseline) if cell.baseline else 0.0)


@checks_kinds
def measure(
    experiments: Sequence[Experiment],
    out: Path | str,
    *,
    folder: Path | str | None = None,
    device: str = "cpu",
    checkpoint_every: int = 25,
    progress: Progress | None = None,
    notice: Callable[[str], None] | None = None,
) -> list[Measured]:
    """Carry out the runs that experiments need, or read them from ``out`` if they exist.

    Every run has its own file in ``out``, named after everything that determines it, so experiments
    share runs and an interrupted run resumes. Files made by other code, by another version of torch
    or NumPy, or from other images are neither used nor removed.

    Parameters
    ----------
    experiments : sequence of Experiment
    out : path
        Folder of checkpoints and results.
    folder : path, optional
        Folder of the data set's files.
    device : str
    checkpoint_every : int
        Number of rounds between checkpoints.
    progress : callable, optional
        Called with (rounds done, total number of rounds, description of the run).
    notice : callable, optional
        Called with a line of text if such unusable files are ignored.

    Raises
    ------
    ValueError
        If ``out`` cannot be written to, or `train` refuses a run.

    Examples
    --------
    One round of every column of a table, with one seed:

    >>> import tempfile
    >>> from fltheory.hardware.training import read_experiment
    >>> folder = tempfile.TemporaryDirectory()
    >>> short = ["training.rounds=1", "seeds=[0]"]
    >>> experiment = read_experiment("experiments/digits.toml", short)
    >>> found = measure([experiment], folder.name)
    >>> len(found)
    1
    >>> folder.cleanup()
    """
    wanted = {
        run.key(seed): (run, seed)
        for experiment in experiments
        for run in experiment.runs
        for seed in experiment.seeds
    }
    checked_device(device)
    out = validation.path("out", out)
    folder = None if folder is None else validation.path("data", folder)
    _check_folders(out, folder)
    remove_leftovers(out)
    files = {
        key: out / f"{identity(run, seed, folder)}{_ending(device)}"
        for key, (run, seed) in wanted.items()
    }
    aside = _left_aside(out, files.items(), device)
    if aside and notice is not None:
        notice(
            f"{aside} of {len(files)} runs in {out} were made by other code, another torch or "
            "NumPy, or from other images: they are run again, and the old files are kept"
        )
    for key, (settings, seed) in wanted.items():
        if not files[key].exists():
            # Settings that do not match their data are refused before any run takes hours.
            prepared(settings, seed, folder=folder, device=device)
    total = sum(run.training.rounds for run, _ in wanted.values())
    behind, runs = 0, {}
    for place, (key, (settings, seed)) in enumerate(wanted.items(), start=1):
        name = f"run {place} of {len(wanted)}: {settings.method.name}, seed {seed}"

        def round_done(done: int, behind: int = behind, name: str = name) -> None:
            if progress is not None:
                progress(behind + done, total, name)

        runs[key] = train(
            settings,
            seed,
            file=files[key],
            folder=folder,
            device=device,
            checkpoint_every=checkpoint_every,
            round_done=round_done,
        )
        behind += settings.training.rounds
    return [Measured(experiment, runs) for experiment in experiments]


def _check_folders(out: Path, data: Path | None) -> None:
    if data is not None and not data.is_dir():
        raise ValueError(f"data must be an existing folder, got {str(data)!r}")
    if not next(
        place for place in (out, *out.absolute().parents) if os.path.lexists(place)
    ).is_dir():
        raise ValueError(f"out must be a folder, or a name where one can be made, got {str(out)!r}")
    # The folder is created with the first file, so a refused experiment leaves no folder.
    writable("out", out / "run.pt")


def _ending(device: str) -> str:
    return f"-{device.partition(':')[0]}.pt"


def _left_aside(out: Path, files: Iterable[tuple[str, Path]], device: str) -> int:
    """Return the number of runs whose only files were made by other code, versions or images."""
    return sum(
        not file.exists() and any(out.glob(f"{key}-*{_ending(device)}")) for key, file in files
    )
