"""A test of the advice: training scikit-learn's digits under the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fltheory.advice.advice import Advice
from fltheory.advice.algorithm_advice import AlgorithmAdvice
from fltheory.algorithms.table import ALGORITHMS
from fltheory.logs import write_log
from fltheory.long_work.progress import Progress
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

_COMPARED = 2
_MOST_ROUNDS, _CLASSES = 200, 10
_MOST_CLIENTS = 700  # of 1,437 training images, two per client
_SEEDS = (0, 1, 2)


@dataclass(frozen=True, eq=False)
class Trained(ReadOnlyArrays):
    """One algorithm's late test accuracy on the digits, with its advice.

    Attributes
    ----------
    advice : AlgorithmAdvice
    accuracy : array, (seeds,)
        Mean test accuracy over the second half of the rounds, in percent.
    lost : array, (seeds,)
        Accuracy lost relative to FedAvg with full participation, seed by seed.
    """

    advice: AlgorithmAdvice
    accuracy: FloatArray
    lost: FloatArray


def to_compare(advice: Advice) -> tuple[AlgorithmAdvice, ...]:
    """Return the two best algorithms that can be trained under the log, and plain FedAvg.

    The advised algorithm comes first, then others by their error. Algorithms with server data are
    excluded and, if some clients are never seen, so are algorithms that divide by given
    availabilities.
    """
    by_error = sorted(advice.algorithms, key=lambda found: found.error)
    wanted = dict.fromkeys((advice.best, advice.fallback, *by_error))
    plain = advice.named("fedavg")

    def told_availability(found: AlgorithmAdvice) -> bool:
        return "availability" in ALGORITHMS[found.name].told

    able = [
        found
        for found in wanted
        if found is not plain
        and not found.needs.server_data
        and not (told_availability(found) and advice.population.never.size)
    ]
    return (*able[:_COMPARED], plain)


def train_on_digits(advice: Advice, *, progress: Progress | None = None) -> tuple[Trained, ...]:
    """Train on the digits under an advice's log, with one class per client from ten clients on.

    At most the log's first 200 rounds are used.

    Parameters
    ----------
    advice : Advice
    progress : callable, optional
        Called with (rounds done, rounds in all, description of the run).

    Raises
    ------
    ImportError
        If the extra ``torch`` is not installed.
    ValueError
        If the log has more than 700 clients, for which there are too few images.
    """
    count = advice.population.log.n_clients
    if count > _MOST_CLIENTS:
        raise ValueError(
            f"log must have at most {_MOST_CLIENTS} clients to be checked on the digits, because "
            f"there are only 1437 images, got {count}"
        )
    from fltheory.hardware.training import measure
    from fltheory.hardware.training.experiment import experiment

    compared = to_compare(advice)
    with TemporaryDirectory() as folder:
        log = Path(folder, "log.csv")
        write_log(log, advice.population.log)
        document = _document(advice, compared, log)
        (measured,) = measure([experiment(document)], Path(folder), progress=progress)
        everybody, *rows = (measured.values(cells[0]) for _, cells in measured.experiment.rows)
    return tuple(
        Trained(found, accuracy, everybody - accuracy)
        for found, accuracy in zip(compared, rows, strict=True)
    )


def _document(advice: Advice, compared: tuple[AlgorithmAdvice, ...], log: Path) -> dict[str, Any]:
    """Return the experiment's document; the first row has full participation."""
    recorded = advice.population.log
    # Every class must belong to some client.
    classes = -(-_CLASSES // recorded.n_clients)
    return {
        "title": "Digits under a log",
        "source": "fltheory advise",
        "seeds": list(_SEEDS),
        "figure": "late",
        "data": {"name": "digits"},
        "model": {"name": "logistic"},
        "partition": {
            "kind": "classes",
            "n_clients": recorded.n_clients,
            "classes_per_client": classes,
        },
        "participation": {"kind": "log", "file": str(log)},
        "algorithm": {"name": "FedAvg"},
        "training": {
            "rounds": min(recorded.n_rounds, _MOST_ROUNDS),
            "client_lr": 0.1,
            "local_epochs": 1,
            "batch_size": 8,
        },
        "columns": [{"label": "late accuracy"}],
        "rows": [
            {
                "label": "everybody",
                "set": {"participation": {"kind": "uniform", "size": recorded.n_clients}},
            },
            *({"label": found.called, "set": {"algorithm": _named(found)}} for found in compared),
        ],
    }


def _named(found: AlgorithmAdvice) -> Mapping[str, Any]:
    known = ALGORITHMS[found.name].options
    given = {n: value for n, value in found.options.items() if value is not None and n in known}
    return {"name": found.title, **given}
