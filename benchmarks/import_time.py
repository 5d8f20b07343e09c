"""Time of ``import fltheory`` in a fresh process, without the interpreter's start."""

from __future__ import annotations

import statistics
import subprocess
import sys

from measure import REPEATS, report

CODE = "import time; t = time.perf_counter(); import fltheory; print(time.perf_counter() - t)"

if __name__ == "__main__":
    seconds = [
        float(subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True).stdout)
        for _ in range(REPEATS + 1)
    ][1:]
    report(
        "Import",
        [("import fltheory", f"{1000 * statistics.median(seconds):.1f} ms", "under 300 ms")],
    )
