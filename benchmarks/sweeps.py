"""A sweep of 10,000 enclosed checks, timed; or one that is killed at random moments (--kills 24).

The command, or sometimes one of its workers, is killed by SIGKILL once a random number of rows has
been added. The final table must equal that of an uninterrupted sweep, byte for byte.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from fltheory.long_work.parallel import processors

DESIGN = Path(__file__).with_name("sweep.toml")
COMMAND = (sys.executable, "-m", "fltheory")
DRAWS_WHEN_KILLED = 4
TARGET_SECONDS = 120


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=20261122)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.kills:
            killed(Path(folder), asked.kills, random.Random(asked.seed))
        else:
            timed(Path(folder))


def timed(folder: Path) -> None:
    begun = time.perf_counter()
    subprocess.run([*COMMAND, "sweep", DESIGN, "--out", folder / "timed.db"], check=True)
    seconds = time.perf_counter() - begun
    with closing(sqlite3.connect(folder / "timed.db")) as store:
        counted = "SELECT evidence, count(*), sum(seconds) FROM cells GROUP BY 1"
        for evidence, cells, checking in store.execute(counted):
            print(f"{evidence}: {cells} cells, {checking:.0f} s of checking")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{seconds:.0f} s in all (target {TARGET_SECONDS}), on {processors()} processors")
    print(f"{used.ru_utime + used.ru_stime:.0f} s of processor time")


def killed(folder: Path, kills: int, chance: random.Random) -> None:
    design = folder / "design.toml"
    text = DESIGN.read_text(encoding="utf-8")
    design.write_text(text.replace("count = 100", f"count = {DRAWS_WHEN_KILLED}"))
    whole, store = folder / "whole.db", folder / "killed.db"
    subprocess.run([*COMMAND, "sweep", design, "--out", whole], check=True, stdout=sys.stderr)
    share = 1.6 * count(whole) / kills
    sweep, moments = None, []
    for number in range(kills):
        if sweep is None:
            arguments = [*COMMAND, "sweep", design, "--out", store]
            sweep = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        rows = count(store) + chance.randrange(round(share))
        while count(store) < rows and sweep.poll() is None:
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.05))
        worker = chance.choice([None, None, None, *workers(sweep.pid)])
        try:
            os.kill(worker or sweep.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        if worker is None:
            sweep.wait()
            sweep = None
        moments.append(f"{'command' if worker is None else 'worker'} at {count(store)}")
        print(f"kill {number + 1}: {moments[-1]} rows", flush=True)
    if sweep is not None:
        sweep.wait()
    subprocess.run([*COMMAND, "sweep", design, "--out", store], check=True)
    tables = []
    for path in (whole, store):
        out = path.with_suffix(".csv")
        subprocess.run([*COMMAND, "results", path, "--out", out], check=True, stdout=sys.stderr)
        tables.append(out.read_bytes())
    same = "the same table" if tables[0] == tables[1] else "ANOTHER TABLE"
    print(f"{len(moments)} kills ({', '.join(moments)}): {same}, {len(tables[0])} bytes")


def count(store: Path) -> int:
    """Return how many rows a store has, 0 if it does not exist yet."""
    if not store.is_file():
        return 0
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=10)) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM cells").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def workers(process: int) -> list[int]:
    children = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in children.read_text().split()] if children.exists() else []


if __name__ == "__main__":
    main()
