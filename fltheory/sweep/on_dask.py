"""Workers of a Dask cluster as an executor."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from urllib.parse import urlsplit

from fltheory.sweep.cell import versions

_SECONDS_TO_ANSWER = 4
# Dask deserialises a task where it runs, so what is missing or old there shows first here.
_FIRST_ANSWER_SECONDS = 60


@contextmanager
def dask_workers(address: str) -> Iterator[tuple[Executor, int]]:
    """Give the executor of a Dask cluster, and how many threads it has in all.

    Parameters
    ----------
    address : str
        Of the scheduler, e.g. ``tcp://10.0.0.1:8786``.

    Raises
    ------
    ValueError
        If distributed is not installed, no scheduler answers there within seconds, it has no
        workers, or they have not the versions that are here.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError("dask needs distributed: pip install 'fltheory[dask]'") from error
    # What it reports of lost connections would stand between lines of ours.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    _check_answer(address)
    try:
        client = Client(address, timeout=_SECONDS_TO_ANSWER, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"dask must be a scheduler that answers, got {address!r}: {error}"
        ) from error
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise ValueError(f"dask must be a scheduler with workers, got {address!r} without any")
        _check_versions(client.get_executor(), address)
        yield client.get_executor(), threads


def _check_answer(address: str) -> None:
    """Refuse an address where nobody listens, which a client of Dask would go on asking."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
        if not (parts.scheme and host and port):
            raise ValueError("no address such as tcp://HOST:8786")
        socket.create_connection((host, port), _SECONDS_TO_ANSWER).close()
    except (OSError, ValueError) as error:
        raise ValueError(
            f"dask must be a scheduler that answers, got {address!r}: {error}"
        ) from error


def _check_versions(executor: Executor, address: str) -> None:
    try:
        there = executor.submit(versions).result(_FIRST_ANSWER_SECONDS)
    except Exception as error:
        raise ValueError(
            f"dask must have workers with fltheory, got {type(error).__name__}: {error} "
            f"from {address!r}"
        ) from error
    if there != versions():
        raise ValueError(f"dask must have workers with {versions()}, got {there} at {address!r}")
