"""Run the conformance suite on other people's implementations and write the results.

    python benchmarks/others_code/measure.py ENVIRONMENTS [LIBRARY ...]

ENVIRONMENTS is a folder with one virtual environment per library, named after it and made from
requirements/LIBRARY.txt. Results are written to results.json beside this file, for the named
libraries or, by default, for all.
"""

import json
import platform
import re
import sys
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import formulas  # noqa: E402
import numpy as np  # noqa: E402
from bridge import Library, LibraryError  # noqa: E402

from fltheory.testing import check_algorithm  # noqa: E402
from fltheory.testing.conformance.case import QuadraticClient  # noqa: E402

NO_DATA = dict.fromkeys(
    ("no-data", "usual-slips"), "the library has no notion of a client without data"
)
SINGLE = 2e-5
"""Tolerance for code that keeps something in single precision."""

TABLE = {
    # library: (implementation, algorithm, fixed hyper-parameters, tolerance or None, failures
    # declared)
    "fluke": [
        ("FedAVG", "fedavg", {}, None, NO_DATA),
        ("FedProx", "fedprox", {}, None, NO_DATA),
        ("FedNova", "fednova", {}, None, NO_DATA),
        ("SCAFFOLD", "scaffold", {"option": 2, "server_lr": 1.0}, None),
        ("SCAFFOLD, lr", "scaffold", {"option": 2}, None),
        ("SCAFFOLD, global_step", "scaffold", {"option": 2}, None),
    ],
    "fedml": [
        ("FedAvgAPI", "fedavg", {"weighting": "n_samples", "server_lr": 1.0}, None),
        (
            "FedAvgAPI, parameters by value",
            "fedavg",
            {"weighting": "n_samples", "server_lr": 1.0},
            None,
        ),
        ("FedProxTrainer", "fedprox", {"weighting": "n_samples", "server_lr": 1.0}, None),
        (
            "FedProxTrainer, parameters by value",
            "fedprox",
            {"weighting": "n_samples", "server_lr": 1.0},
            None,
        ),
        ("FedNovaTrainer", "fednova", {"server_lr": 1.0}, SINGLE),
        ("ScaffoldTrainer", "scaffold", {"option": 2}, None),
        ("ScaffoldTrainer, parameters by value", "scaffold", {"option": 2}, None),
    ],
    "fedlab": [
        ("FedAvg", "fedavg", {"weighting": "uniform", "server_lr": 1.0}, None),
        ("FedProx", "fedprox", {"weighting": "uniform", "server_lr": 1.0}, None),
        ("FedNova", "fednova", {"server_lr": 1.0}, None),
        ("FedNova, option weighted_com", "fednova", {"server_lr": 1.0}, None),
        ("Scaffold", "scaffold", {"option": 2}, None),
    ],
    "flgo": [
        ("fedavg", "fedavg", {"server_lr": 1.0}, None),
        ("fedprox", "fedprox", {"weighting": "uniform", "server_lr": 1.0}, None),
        ("fednova", "fednova", {"server_lr": 1.0}, None),
        ("scaffold", "scaffold", {"option": 2}, None),
        ("mifa", "mifa", {"start": "wait", "server_lr": 1.0}, None),
        ("mifa, c = 0", "mifa", {"start": "zero", "server_lr": 1.0}, None),
    ],
    "pfl": [
        ("FederatedAveraging", "fedavg", {}, SINGLE, NO_DATA),
        ("FedProx", "fedprox", {}, SINGLE, NO_DATA),
        ("SCAFFOLD", "scaffold", {"option": 2}, SINGLE),
        ("SCAFFOLD, gradient as control variate", "scaffold", {"option": 1}, SINGLE),
    ],
    "nvflare": [
        ("Scaffold", "scaffold", {"option": 2, "server_lr": 1.0}, None),
    ],
    "flwr": [
        ("FedAvg", "fedavg", {"server_lr": 1.0}, None),
        ("FedAvgM", "fedavg", {}, None),
        ("FedProx", "fedprox", {"server_lr": 1.0}, None),
    ],
}

# Rounds computed on the page: two clients (or one) with f_0' = x and f_1' = x - 8, client_lr 1/2,
# one dimension.
ROUNDS = [
    # (library, implementation, algorithm, x0, n_samples, local_steps, trace, the rest)
    ("fluke", "FedNova", "fednova", 4.0, (1, 1), (1, 2), [[1, 1]], {"server_lr": 1.0}),
    ("fluke", "SCAFFOLD, global_step", "scaffold", 4.0, (1,), 1, [[1]],
     {"option": 2, "server_lr": 0.5}),
    ("fedml", "FedAvgAPI", "fedavg", 4.0, (1, 3), 2, [[1, 1]],
     {"weighting": "n_samples", "server_lr": 1.0}),
    ("fedml", "ScaffoldTrainer", "scaffold", 4.0, (1, 1), 2, [[1, 1]],
     {"option": 2, "server_lr": 1.0}),
    ("fedml", "ScaffoldTrainer, parameters by value", "scaffold", 4.0, (1, 1), 2, [[1, 1]],
     {"option": 2, "server_lr": 1.0}),
    ("fedml", "ScaffoldTrainer, parameters by value", "scaffold", 4.0, (1,), 1, [[1], [1]],
     {"option": 2, "server_lr": 1.0}),
    ("fedlab", "FedNova", "fednova", 4.0, (1, 1), (1, 1), [[1, 0]], {"server_lr": 1.0}),
    ("flgo", "mifa, c = 0", "mifa", 4.0, (1, 1), 1, [[1, 0]],
     {"start": "zero", "server_lr": 1.0}),
    ("pfl", "SCAFFOLD", "scaffold", 4.0, (1, 1), 2, [[1, 1], [1, 0]],
     {"option": 2, "server_lr": 1.0}),
    ("pfl", "SCAFFOLD, gradient as control variate", "scaffold", 6.0, (1, 1), 2, [[1, 1], [1, 0]],
     {"option": 1, "server_lr": 1.0}),
    ("nvflare", "Scaffold", "scaffold", 4.0, (1, 1), 1, [[1, 0], [0, 1]],
     {"option": 2, "server_lr": 1.0}),
]  # fmt: skip


def small_case(x0, n_samples, local_steps, trace, rest):
    """Return the arguments of `run` for an entry of ROUNDS."""
    optima = (0.0, 8.0)
    clients = [
        QuadraticClient(np.eye(1), np.array([optimum]), n_samples=size)
        for optimum, size in zip(optima, n_samples, strict=False)
    ]
    told = {"client_lr": 0.5, "local_steps": local_steps, **rest}
    return (np.array([x0]), clients, np.array(trace, dtype=bool)), told


def formula_of(algorithm):
    """Return the paper's rounds in plain NumPy."""
    return getattr(formulas, {"fedprox": "fedavg"}.get(algorithm, algorithm))


def worked_rounds(library, process):
    """Return the page's rounds, computed by the library and by the formula."""
    answer = []
    for home, implementation, algorithm, *case in ROUNDS:
        if home == library:
            given, told = small_case(*case)
            actual = process.run_of(implementation)(*given, **told)
            answer.append(
                {
                    "library": library,
                    "implementation": implementation,
                    "paper": formula_of(algorithm)(*given, **told).ravel().tolist(),
                    "actual": [round(value, 6) for value in actual.ravel().tolist()],
                }
            )
    return answer


def by_hand(run, algorithm, hyper):
    """Return models' distances from the formula, with everybody present and with absences."""
    clients = [
        QuadraticClient(np.diag(diagonal), np.array(optimum), n_samples=size)
        for diagonal, optimum, size in (
            ((0.5, 1.0), (1.0, 0.0), 3),
            ((1.5, 1.0), (-1.0, 2.0), 1),
            ((1.0, 2.0), (0.0, -1.0), 4),
        )
    ]
    somebody = [[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1], [0, 0, 1]]
    told = {
        "client_lr": 0.125,
        "local_steps": (2, 1, 3) if algorithm == "fednova" else 2,
        "server_lr": 1.0,
    }
    told |= {"weighting": "n_samples"} if algorithm in ("fedavg", "fedprox") else {}
    told |= {"proximal": 0.5} if algorithm == "fedprox" else {}
    told |= hyper
    formula = formula_of(algorithm)
    answer = []
    for trace in (np.ones((5, 3), dtype=bool), np.array(somebody, dtype=bool)):
        x0 = np.array([2.0, -1.0])
        answer.append(
            float(
                np.abs(run(x0, clients, trace, **told) - formula(x0, clients, trace, **told)).max()
            )
        )
    return answer


def without_place(value):
    """Return an error message without the path on this machine."""
    return re.sub(r" \(\S+bridge\.py, line \d+\)", "", value) if isinstance(value, str) else value


def measured(library, run, implementation, algorithm, hyper, tolerance, expected=None):
    """Return one entry of the results."""
    entry = {
        "library": library,
        "implementation": implementation,
        "algorithm": algorithm,
        "fixed": hyper,
    }
    try:
        entry["from_formula"] = dict(
            zip(("everybody", "absences"), by_hand(run, algorithm, hyper), strict=True)
        )
    except LibraryError as error:
        entry["from_formula"] = {"error": str(error)}
    told = {} if tolerance is None else {"rtol": tolerance}
    report = check_algorithm(
        run, algorithm, seed=0, raises=False, expected=expected, **told, **hyper
    )
    entry["tolerance"] = report.rtol
    entry["laws"] = {
        finding.law: {
            key: list(value) if isinstance(value, tuple) else without_place(value)
            for key, value in (asdict(finding) | {"outcome": finding.outcome.value}).items()
            if key not in ("law", "says") and value not in ("", (), None)
        }
        for finding in report.findings
    }
    entry["conforms"] = report.conforms
    print(
        f"{library} {implementation}: {report.seconds:.0f} s,",
        *[f.law for f in report.failures] or ["conforms"],
    )
    return entry


def main(environments, *libraries):
    """Measure the named libraries, and write the results after each."""
    for library in libraries or TABLE:
        with Library(Path(environments) / library / "bin" / "python", library) as process:
            rounds = worked_rounds(library, process)
            entries = [
                measured(library, process.run_of(implementation), implementation, *rest)
                for implementation, *rest in TABLE[library]
            ]
            keep(library, process.about, entries, rounds)


def keep(library, about, entries, rounds):
    """Replace a library's stored results by new ones."""
    path, order = HERE / "results.json", list(TABLE)
    empty = {"libraries": {}, "entries": [], "rounds": []}
    known = json.loads(path.read_text()) if path.exists() else empty
    known["libraries"][library] = about
    known["libraries"] = {
        name: known["libraries"][name] for name in order if name in known["libraries"]
    }
    for part, new in (("entries", entries), ("rounds", rounds)):
        known[part] = [one for one in known[part] if one["library"] != library] + new
        known[part].sort(key=lambda one: order.index(one["library"]))
    known["python"] = platform.python_version()
    path.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
