"""Runs of an experiment on which a theorem's constants and quantities are measured.

A theorem is about one problem and one initial model. So all runs share the partition of the images,
the server's images and the initial model, which the experiment's first seed draws. Each run draws
its own participants, branches and batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from fltheory import validation
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.engines.measured_run import BatchSampling, MeasuredRun, Server, measure_run
from fltheory.engines.simulation import simulate
from fltheory.hardware.partitions import Indices
from fltheory.hardware.training.prepared import Prepared, prepared
from fltheory.hardware.training.settings import RunSettings
from fltheory.participation import Participation
from fltheory.problems import MultinomialProblem
from fltheory.read_only import ReadOnlyArrays
from fltheory.validation import FloatArray

RoundDone = Callable[[int], None]


@dataclass(frozen=True)
class Premise:
    """An assumption of a theorem about a run, and whether it holds.

    Attributes
    ----------
    name, source : str
    holds : bool
    detail : str
        The actual behaviour of the run.
    """

    name: str
    source: str
    holds: bool
    detail: str


@dataclass(frozen=True, eq=False)
class TheoryRun(ReadOnlyArrays):
    """The measurements of a cell of an experiment that was run many times.

    Attributes
    ----------
    algorithm : Algorithm or Schedule
    problem : MultinomialProblem
        The clients' images, with the weight decay as ridge; F weights all images equally.
    participation : Participation
    rounds : int
    x0 : array, (dim,)
    measured : MeasuredRun
    premises : tuple of Premise
    data_name : str
    """

    algorithm: Algorithm | Schedule
    problem: MultinomialProblem
    participation: Participation
    rounds: int
    x0: FloatArray
    measured: MeasuredRun
    premises: tuple[Premise, ...]
    data_name: str


def theory_run(
    settings: RunSettings,
    problem_seed: int,
    *,
    replicas: int,
    seed: int = 0,
    folder: Path | None = None,
    device: str = "cpu",
    known: MultinomialProblem | None = None,
    round_done: RoundDone | None = None,
) -> TheoryRun:
    """Run a cell of an experiment ``replicas`` times, measuring along the way.

    Parameters
    ----------
    settings : RunSettings
    problem_seed : int
        Seed of everything that all runs share.
    replicas : int
        At least 2.
    seed : int
        Seed of the individual runs.
    folder : path, optional
        Folder of the data set's files.
    device : str
    known : MultinomialProblem, optional
        The problem of an earlier run. If this run has the same problem, the earlier one is reused
        with its optimum.
    round_done : callable, optional
        Called with the number of rounds done.

    Raises
    ------
    ValueError
        If the model is not logistic regression with weight decay, `prepared` refuses the settings,
        or a model becomes NaN or infinite.
    """
    replicas = validation.whole_number("replicas", replicas, at_least=2)
    seed = validation.seed_number("seed", seed)
    if settings.model.name != "logistic" or not settings.training.weight_decay > 0:
        raise ValueError(
            "model.name must be logistic with training.weight_decay above 0, so that L, mu and "
            f"the optimum are known, got {settings.model.name} with "
            f"{settings.training.weight_decay:g}"
        )
    ready = prepared(settings, problem_seed, folder=folder, device=device)
    data = _Samples(ready, settings.training.weight_decay)
    problem = data.problem
    if known is not None and known.is_same_as(problem):
        problem = known
    training = settings.training
    measured = measure_run(
        problem,
        _models(ready, training.rounds, replicas, seed, round_done),
        inclusion=np.asarray(ready.participation.marginals),
        sampling=BatchSampling(training.batch_size, training.sampling == "replacement"),
        server=_server(settings, data),
    )
    return TheoryRun(
        ready.algorithm,
        problem,
        ready.participation,
        training.rounds,
        _numpy(ready.start)[0],
        measured,
        _premises(settings, data, measured),
        ready.data_name,
    )


class _Samples:
    """The images of clients and server as NumPy arrays, for building problems."""

    def __init__(self, ready: Prepared, ridge: float) -> None:
        self._inputs = ready.clients.inputs.cpu().numpy().reshape(len(ready.clients.inputs), -1)
        self._labels = ready.clients.targets.cpu().numpy()
        self._n_classes = ready.start.shape[1] // (self._inputs.shape[1] + 1)
        self._ridge = ridge
        self.clients, self._server = ready.parts, ready.server_places
        self.problem = self._problem(self.clients)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of images of each client."""
        return tuple(part.size for part in self.clients)

    @property
    def server_is_everybody(self) -> bool:
        """Whether the server has exactly the images of all clients."""
        return np.array_equal(np.sort(np.concatenate(self.clients)), np.sort(self._server))

    def server_problem(self) -> MultinomialProblem:
        """Return the problem whose loss is the server's."""
        return self._problem([self._server])

    def _problem(self, parts: Sequence[Indices]) -> MultinomialProblem:
        sizes = np.array([part.size for part in parts])
        return MultinomialProblem(
            [self._inputs[part] for part in parts],
            [self._labels[part] for part in parts],
            n_classes=self._n_classes,
            ridge=self._ridge,
            target_weights=sizes / sizes.sum(),
        )


def _models(
    ready: Prepared, rounds: int, replicas: int, seed: int, round_done: RoundDone | None
) -> Iterator[FloatArray]:
    """Yield the models of all runs at the start and after each round."""
    participants, branches, batches = np.random.SeedSequence(seed).spawn(3)
    generator = torch.Generator(ready.start.device)
    generator.manual_seed(int(np.random.default_rng(batches).integers(2**62)))
    ready.clients.randomness = generator.get_state()
    states = simulate(
        ready.algorithm,
        ready.clients,
        ready.participation,
        ready.start.repeat(replicas, 1),
        participation_rng=np.random.default_rng(participants),
        branch_rng=np.random.default_rng(branches),
        masks_to_backend=lambda who: torch.from_numpy(who).to(ready.start.device),
    )
    for done, (state, _) in enumerate(islice(states, rounds + 1)):
        x = cast(Tensor, state["x"])
        if not bool(torch.isfinite(x).all()):
            raise ValueError(f"models must stay finite, got NaN or infinity after round {done}")
        yield _numpy(x)
        if round_done is not None:
            round_done(done)


def _numpy(x: Tensor) -> FloatArray:
    return x.detach().cpu().numpy().astype(np.float64)


def _server(settings: RunSettings, data: _Samples) -> Server | None:
    if settings.server is None:
        return None
    replacement = settings.training.sampling == "replacement"
    sampling = BatchSampling(settings.server.batch_size, replacement)
    return Server(data.server_problem(), sampling, data.server_is_everybody)


def _premises(settings: RunSettings, data: _Samples, measured: MeasuredRun) -> tuple[Premise, ...]:
    training = settings.training
    steps = {
        training.local_steps or (training.local_epochs or 1) * -(-size // training.batch_size)
        for size in data.sizes
    }
    whole = training.sampling == "shuffle" and max(data.sizes) <= training.batch_size
    anew = training.sampling == "replacement" or whole or steps == {1}
    found = [
        Premise(
            "the same number of local steps for every client",
            "Algorithm 1",
            len(steps) == 1,
            f"{min(steps)} to {max(steps)} in a round",
        ),
        Premise(
            "clients' gradients unbiased given the past",
            "Assumption 4",
            anew,
            f"batches by {training.sampling}, steps of a round "
            + ("independent" if anew else "share an order of the images"),
        ),
    ]
    if settings.server is not None:
        found += [
            Premise(
                "one server step in a round of the server",
                "Algorithm 1",
                settings.server.steps_a_round == 1,
                f"{settings.server.steps_a_round} in a round",
            ),
            Premise(
                "server's gradient unbiased",
                "Assumption 4",
                data.server_is_everybody,
                f"{settings.server.samples} images; bias up to {measured.server_bias:.3g}",
            ),
        ]
    return tuple(found)
