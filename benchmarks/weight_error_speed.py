"""FedAU's exact weight error: many clients, and many rounds."""

from __future__ import annotations

import numpy as np
from measure import in_fresh_processes, report

from fltheory.engines.fedau_weights.weight_error import weight_error

CASES = {
    "clients": lambda: weight_error(np.linspace(0.02, 1.0, 100), 50, 1_001),
    "rounds": lambda: weight_error(0.1, 50, 100_000),
}

if __name__ == "__main__":
    results = in_fresh_processes(__file__, CASES)
    error = weight_error(0.1, 50, 100_000).error.max()
    report(
        "Exact weight error, K = 50",
        [
            ("t to 1,000 for 100 values of p", f"{results['clients']['seconds']:.2f} s", "20 s"),
            ("t to 100,000 for p = 0.1", f"{results['rounds']['seconds']:.2f} s", "none stated"),
            ("its own error there, at most", f"{error:.0e}", "stated"),
        ],
    )
