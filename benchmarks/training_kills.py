"""Training that is killed at random moments, by SIGKILL, and gone on with: ``--kills 24``.

The page and the runs in the end must be those of a training that nobody disturbed, byte for byte,
and nothing may be left behind. Needs the extra ``torch``.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXPERIMENT = Path(__file__).parents[1] / "experiments" / "digits.toml"
COMMAND = (sys.executable, "-m", "fltheory", "train", EXPERIMENT, "--out", "runs")
SMALL = ("--set", "seeds=[0]", "--checkpoint-every", "2", "--page", "page.md")
LONGEST_SECONDS = 600


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20261123)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    words = [*COMMAND, *SMALL, "--set", f"training.rounds={asked.rounds}"]
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        begun = time.perf_counter()
        _started(words, whole).wait(LONGEST_SECONDS)
        # Killed so often, a training ends about now and then; another is begun in its place.
        share = (time.perf_counter() - begun) / asked.kills
        kills, trainings = 0, 0
        while kills < asked.kills:
            folder = Path(place) / f"killed-{trainings}"
            trainings += 1
            kills += _killed_until_it_ends(words, folder, asked.kills - kills, share, chance)
            if result(folder) != result(whole):
                sys.exit(f"ANOTHER RESULT after {kills} kills")
        print(f"{kills} kills of {trainings} trainings: the same {len(result(whole))} files")


def _killed_until_it_ends(
    words: list[object], folder: Path, kills: int, share: float, chance: random.Random
) -> int:
    """Kill a training at random moments until it has ended, or was killed so often."""
    done = 0
    while True:
        training = _started(words, folder)
        if done == kills:
            training.wait(LONGEST_SECONDS)
            return done
        _wait_for_work(training, folder)
        time.sleep(chance.uniform(0, share))
        if training.poll() is not None:
            return done
        training.send_signal(signal.SIGKILL)
        training.wait()
        done += 1
        left = sorted(path.name for path in (folder / "runs").iterdir())
        print(f"kill {done}: {len(left)} files, {sum(map(_is_begun, left))} begun", flush=True)


def _started(words: list[object], folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(list(map(str, words)), cwd=folder, stdout=subprocess.DEVNULL)


def _wait_for_work(training: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait until a checkpoint is written: before that there is nothing to lose."""
    before = _written(folder)
    while training.poll() is None and _written(folder) == before:
        time.sleep(0.002)


def _written(folder: Path) -> list[tuple[str, int]]:
    found = []
    for path in sorted((folder / "runs").glob("*")):
        try:
            found.append((path.name, path.stat().st_mtime_ns))
        except FileNotFoundError:
            continue
    return found


def _is_begun(name: str) -> bool:
    return name.startswith(".")


def result(folder: Path) -> dict[str, bytes]:
    """Return every file of a training, by name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


if __name__ == "__main__":
    main()
