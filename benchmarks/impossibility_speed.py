"""Theorem 1's exact figures for a hundred thousand samples."""

from __future__ import annotations

from measure import in_fresh_processes, report

from fltheory.learnability import impossibility

CASES = {
    "10 clients": lambda: impossibility(10, 10_000, 5),
    "100 clients": lambda: impossibility(100, 1_000, 37),
    "1,000 clients": lambda: impossibility(1_000, 100, 333),
    "100,000 clients, one out": lambda: impossibility(100_000, 1, 99_999),
    "100,000 clients, a prime number of them in": lambda: impossibility(100_000, 1, 50_021),
}

if __name__ == "__main__":
    results = in_fresh_processes(__file__, CASES)
    report(
        "Exact figures of impossibility, Mn = 100,000",
        [(name, f"{found['seconds']:.2f} s", "1 s") for name, found in results.items()],
    )
