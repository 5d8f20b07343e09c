"""The settings of a run: the tables of an experiment file as checked objects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from fltheory import validation
from fltheory.files.tables import (
    Table,
    check_names,
    checked_flag,
    checked_table,
    made,
    made_by_kind,
)
from fltheory.hardware.datasets import NAMES as DATA_NAMES
from fltheory.hardware.models import NAMES as MODEL_NAMES
from fltheory.hardware.training.named_parts import (
    DEALINGS,
    PRESENCES,
    Dealing,
    NamedMethod,
    Presence,
    circumstances,
)

PIXELS = ("unit", "standard")
STARTS = ("torch", "zero")
STEP_SIZES = ("constant", "harmonic")
SAMPLINGS = ("shuffle", "replacement")


@dataclass(frozen=True)
class DataSettings:
    """The images to use.

    Parameters
    ----------
    name : str
    pixels : {"unit", "standard"}
        Whether pixels lie between 0 and 1, or are standardised in each channel to mean 0 and
        standard deviation 1 over the training images.
    published : bool
        Whether files that do not have the published checksums are refused.
    training_fraction : float
        The share of the training images that is used; the seed determines which.
    """

    name: str
    _: KW_ONLY
    pixels: str = "unit"
    published: bool = True
    training_fraction: float = 1.0

    def __post_init__(self) -> None:
        validation.one_of("name", self.name, DATA_NAMES)
        validation.one_of("pixels", self.pixels, PIXELS)
        checked_flag("published", self.published)
        share = validation.probability("training_fraction", self.training_fraction)
        validation.positive("training_fraction", share)


@dataclass(frozen=True)
class ModelSettings:
    """The model, by its name in `fltheory.hardware.models`, and its initial parameters.

    Parameters
    ----------
    name : str
    start : {"torch", "zero"}
        torch's random initial parameters, or zero.
    compiled : bool
        Whether to compile the gradients of all participants with `torch.compile`. This takes
        minutes at first, and saves time at every step for models without a closed form.
    """

    name: str
    _: KW_ONLY
    start: str = "torch"
    compiled: bool = False

    def __post_init__(self) -> None:
        validation.one_of("name", self.name, MODEL_NAMES)
        validation.one_of("start", self.start, STARTS)
        checked_flag("compiled", self.compiled)


def _check_one_of(settings: object, *names: str) -> None:
    """Raise ValueError unless exactly one of two numbers is given, and it is an integer."""
    given = {name: getattr(settings, name) for name in names}
    counts = {name: value for name, value in given.items() if value is not None}
    if len(counts) != 1:
        raise ValueError(f"{' or '.join(names)} must be given, and not both")
    for name, value in counts.items():
        validation.whole_number(name, value, at_least=1)


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of local SGD and of the rounds.

    Parameters
    ----------
    rounds : int
        R.
    client_lr : float
    local_steps, local_epochs : int, optional
        Give exactly one: SGD steps in a round, or passes over a client's own samples.
    batch_size : int
    sampling : {"shuffle", "replacement"}
        Whether batches come from passes in random order or from independent draws.
    weight_decay : float
    step_sizes : {"constant", "harmonic"}
        ``client_lr`` in every round, or ``client_lr / t`` in round t.
    momentum : float
        Server momentum, which can be added to any algorithm.
    loss_batch_size : int, optional
        Number of samples on which a client reports its loss, if asked; by default, all of its
        samples.
    evaluate_every : int
        Rounds between evaluations on the test images; the last round is always evaluated.
    """

    rounds: int
    client_lr: float
    batch_size: int
    _: KW_ONLY
    local_steps: int | None = None
    local_epochs: int | None = None
    sampling: str = "shuffle"
    weight_decay: float = 0.0
    step_sizes: str = "constant"
    momentum: float = 0.0
    loss_batch_size: int | None = None
    evaluate_every: int = 1

    def __post_init__(self) -> None:
        validation.whole_number("rounds", self.rounds, at_least=1)
        validation.positive("client_lr", self.client_lr)
        validation.whole_number("batch_size", self.batch_size, at_least=1)
        _check_one_of(self, "local_steps", "local_epochs")
        if self.loss_batch_size is not None:
            validation.whole_number("loss_batch_size", self.loss_batch_size, at_least=1)
        validation.one_of("sampling", self.sampling, SAMPLINGS)
        validation.nonnegative("weight_decay", self.weight_decay)
        validation.one_of("step_sizes", self.step_sizes, STEP_SIZES)
        validation.real_number("momentum", self.momentum, "in [0, 1)", lambda m: 0 <= m < 1)
        if self.momentum and self.step_sizes != "constant":
            raise ValueError(
                f"momentum must be 0 unless step sizes are constant, got {self.momentum}"
            )
        validation.whole_number("evaluate_every", self.evaluate_every, at_least=1)


@dataclass(frozen=True)
class ServerSettings:
    """The server's own images, and its training rounds.

    Parameters
    ----------
    samples : int
        Number of images, drawn uniformly from the training images.
    lr : float
    batch_size : int
    steps, epochs : int, optional
        Give exactly one: SGD steps in a round of the server (1 is Algorithm 1 of SA-FL), or passes
        over the server's samples.
    held_out : bool
        Whether the server's images are withheld from the clients.
    """

    samples: int
    lr: float
    batch_size: int
    _: KW_ONLY
    steps: int | None = None
    epochs: int | None = None
    held_out: bool = False

    def __post_init__(self) -> None:
        validation.whole_number("samples", self.samples, at_least=1)
        validation.positive("lr", self.lr)
        validation.whole_number("batch_size", self.batch_size, at_least=1)
        _check_one_of(self, "steps", "epochs")
        checked_flag("held_out", self.held_out)

    @property
    def steps_a_round(self) -> int:
        """SGD steps in a round of the server."""
        if self.steps is not None:
            return self.steps
        return (self.epochs or 1) * -(-self.samples // self.batch_size)


_SECTIONS = ("data", "model", "partition", "participation", "algorithm", "training")


@dataclass(frozen=True)
class RunSettings:
    """Everything that, with a seed, determines a run.

    Attributes
    ----------
    data : DataSettings
    model : ModelSettings
    partition : Dealing
    participation : Presence
    method : NamedMethod
    training : TrainingSettings
    server : ServerSettings or None
    table : mapping
        The table as in the file.
    """

    data: DataSettings
    model: ModelSettings
    partition: Dealing
    participation: Presence
    method: NamedMethod
    training: TrainingSettings
    server: ServerSettings | None
    table: Mapping[str, Any] = field(repr=False)

    def key(self, seed: int) -> str:
        """Return a name that differs between any two runs whose settings differ."""
        presence = self.participation.identity(self.table["participation"])
        text = json.dumps([{**self.table, "participation": presence}, seed], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]


def run_settings(table: Table) -> RunSettings:
    """Check and return the settings in the tables of an experiment file.

    A table [server] is ignored if the algorithm does not use it, unless the server's images are
    held out.

    Raises
    ------
    ValueError
        If a table or key is missing or unknown, or a value is out of range. The message names it.
    """
    check_names("a run", table, (*_SECTIONS, "server"), _SECTIONS)
    options = checked_table(table["algorithm"], "algorithm")
    method = NamedMethod(str(options.pop("name", None)), options)
    server = None
    if "server" in table:
        server = made(ServerSettings, checked_table(table["server"], "server"), "server")
        if not method.uses_server and not server.held_out:
            server = None
            table = {name: part for name, part in table.items() if name != "server"}
    settings = RunSettings(
        made(DataSettings, checked_table(table["data"], "data"), "data"),
        made(ModelSettings, checked_table(table["model"], "model"), "model"),
        made_by_kind(DEALINGS, table["partition"], "partition"),
        made_by_kind(PRESENCES, table["participation"], "participation"),
        method,
        made(TrainingSettings, checked_table(table["training"], "training"), "training"),
        server,
        table,
    )
    _check_together(settings)
    return settings


def _check_together(settings: RunSettings) -> None:
    """Try participation and algorithm on identical clients, to find errors early."""
    n_clients = settings.partition.n_clients
    rng = np.random.default_rng(0)
    try:
        process = settings.participation.process(np.full((n_clients, 10), 0.1), rng)
        settings.participation.check_rounds(settings.training.rounds)
    except ValueError as error:
        raise ValueError(f"participation.{error}") from error
    lr = settings.server.lr if settings.server else None
    training = settings.training
    given = circumstances(training.client_lr, 1, lr, training.rounds, process)
    settings.method.algorithm(given)
