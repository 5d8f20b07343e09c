"""Training that is killed at random moments, by SIGKILL, and resumed: ``--kills 24``.

The final page and the content of the checkpoints must be those of an undisturbed training, and no
other file may be left. Each process is forked after all imports. Needs the extra ``torch``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing.context import ForkProcess
from pathlib import Path

import torch

from fltheory import cli
from fltheory.hardware import training as imported_before_forks

EXPERIMENT = Path(__file__).resolve().parents[1] / "experiments" / "digits.toml"
SMALL = ("--set", "seeds=[0]", "--checkpoint-every", "2", "--page", "page.md", "--out", "runs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20261123)
    asked = parser.parse_args()
    assert imported_before_forks
    chance = random.Random(asked.seed)
    words = [
        "fltheory",
        "train",
        str(EXPERIMENT),
        *SMALL,
        "--set",
        f"training.rounds={asked.rounds}",
    ]
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        begun = time.perf_counter()
        _started(words, whole).join()
        expected = result(whole)
        share = 1.2 * (time.perf_counter() - begun) / asked.kills
        kills, trainings, begun_files = 0, 0, 0
        while kills < asked.kills:
            folder = Path(place) / f"killed-{trainings}"
            trainings += 1
            # A training may end before it has been killed so often; then another is started.
            while (training := _started(words, folder)).is_alive() and kills < asked.kills:
                training.join(chance.uniform(0.05, share))
                if not training.is_alive():
                    break
                os.kill(training.pid or 0, signal.SIGKILL)
                training.join()
                kills += 1
                begun_files += any(path.name.startswith(".") for path in folder.glob("runs/*"))
            training.join()
            if result(folder) != expected:
                sys.exit(f"ANOTHER RESULT after {kills} kills")
    print(
        f"{kills} kills of {trainings} trainings of {asked.rounds} rounds, {begun_files} of them "
        f"while a file was being written: the same page and {len(expected) - 1} runs"
    )


def _started(words: list[str], folder: Path) -> ForkProcess:
    folder.mkdir(exist_ok=True)
    process = multiprocessing.get_context("fork").Process(target=_trained, args=(words, folder))
    process.start()
    return process


def _trained(words: list[str], folder: Path) -> None:
    os.chdir(folder)
    sys.argv = words
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        cli.main()


def result(folder: Path) -> dict[str, str]:
    """Return the content of every file of a training, by name."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): _held(path) for path in files}


def _held(path: Path) -> str:
    if path.suffix != ".pt":
        return path.read_text(encoding="utf-8")
    # Bytes of torch's archives differ between tensors that were read and those that were made.
    return repr(_plain(torch.load(path, weights_only=True)))


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in sorted(value.items())}
    return value.tolist() if isinstance(value, torch.Tensor) else value


if __name__ == "__main__":
    main()
