"""Preparing a run: images on the device, clients, algorithm, participation, initial model.

The device is checked before anything is moved to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fltheory.algorithms import Harmonic, Scheduled, ServerMomentum
from fltheory.algorithms.contract import Algorithm, Schedule
from fltheory.hardware import models
from fltheory.hardware.clients.batches import LocalTraining, ServerData
from fltheory.hardware.clients.torch_clients import TorchClients
from fltheory.hardware.datasets import load
from fltheory.hardware.datasets.images import ImageData
from fltheory.hardware.partitions import Partition, class_shares
from fltheory.hardware.training.named_parts import circumstances
from fltheory.hardware.training.settings import (
    DataSettings,
    RunSettings,
    ServerSettings,
)
from fltheory.participation import Participation
from fltheory.read_only import ReadOnlyArrays


def checked_device(name: str) -> torch.device:
    """Return the device with the given name.

    Raises
    ------
    ValueError
        If there is no such kind of device, or if this machine or this build of torch does not have
        one.
    """
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device must be cpu, cuda or cuda:N, got {name!r}") from error
    if device.type == "cpu" and not device.index:
        return torch.device("cpu")
    if device.type != "cuda":
        raise ValueError(f"device must be cpu, cuda or cuda:N, got {name!r}")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if (device.index or 0) >= count:
        build = "" if torch.version.cuda else " (this torch is built for the CPU alone)"
        raise ValueError(
            f"device must be available, got {name!r} where torch sees {count} CUDA devices{build}"
        )
    return device


_STREAMS = (
    "images",
    "deal",
    "availability",
    "server",
    "start",
    "participants",
    "branches",
    "batches",
)


@dataclass(frozen=True, eq=False)
class Images:
    """A data set, and its images as tensors on the device."""

    data: ImageData
    train: Tensor
    test: Tensor


@dataclass(frozen=True, eq=False)
class Prepared(ReadOnlyArrays):
    """The parts of a run, prepared.

    Attributes
    ----------
    algorithm : Algorithm or Schedule
    clients : TorchClients
    participation : Participation
    start : Tensor, (1, dim)
        The initial model.
    parts : tuple of index arrays
        Indices of each client's images among the clients' images.
    server_places : index array
        Indices of the server's images.
    test_inputs, test_labels : Tensor
    participants_rng, branches_rng : numpy.random.Generator
    data_name : str
        The name of the data set to print beside results.
    """

    algorithm: Algorithm | Schedule
    clients: TorchClients
    participation: Participation
    start: Tensor
    parts: Partition
    server_places: NDArray[np.intp]
    test_inputs: Tensor
    test_labels: Tensor
    participants_rng: np.random.Generator
    branches_rng: np.random.Generator
    data_name: str


@lru_cache(maxsize=2)
def images(settings: DataSettings, folder: Path | None, device: str) -> Images:
    """Return the images of a data set on the device, cached for later runs."""
    on = checked_device(device)
    data = load(settings.name, folder, verify=settings.published)
    train, test = (torch.tensor(part.images) for part in (data.train, data.test))
    if settings.pixels == "standard":
        mean = train.mean(dim=(0, 2, 3), keepdim=True)
        deviation = train.std(dim=(0, 2, 3), keepdim=True)
        train, test = (train - mean) / deviation, (test - mean) / deviation
    return Images(data, train.to(on), test.to(on))


def prepared(
    settings: RunSettings, seed: int, *, folder: Path | None = None, device: str = "cpu"
) -> Prepared:
    """Prepare a run.

    The seed determines the images used, their partition, the availabilities, the server's images,
    the initial model, the participants, the branches and the batches. Each is drawn from its own
    random stream, so that runs with one seed share everything that their settings have in common.

    Parameters
    ----------
    settings : RunSettings
    seed : int
    folder : path, optional
        Folder of the data set's files.
    device : str

    Raises
    ------
    ValueError
        If the device does not exist, the data cannot be read, or the settings do not match the
        data.
    """
    children = np.random.SeedSequence(seed).spawn(len(_STREAMS))
    rng = {
        name: np.random.default_rng(child) for name, child in zip(_STREAMS, children, strict=True)
    }
    pictures = images(settings.data, folder, device)
    data = pictures.data
    dealt = settings.partition.deal(data, rng["deal"])
    server = _server_places(settings, data, rng["server"])
    parts = _kept(dealt.parts, _used(settings, data, server, rng["images"]))
    participation = settings.participation.process(
        class_shares(dealt.train_labels, parts, data.n_classes), rng["availability"]
    )
    module = _module(settings, data, rng["start"])
    labels = torch.tensor(dealt.train_labels).to(pictures.train.device)
    clients = TorchClients(
        module,
        pictures.train,
        labels,
        parts,
        training=_local_training(settings),
        server=_server_data(settings.server, server),
        seed=int(rng["batches"].integers(2**62)),
        compiled=settings.model.compiled,
    )
    return Prepared(
        _algorithm(settings, clients, participation),
        clients,
        participation,
        clients.model.initial[None],
        parts,
        server,
        pictures.test,
        torch.tensor(dealt.test_labels).to(pictures.test.device),
        rng["participants"],
        rng["branches"],
        data.name,
    )


def _server_places(
    settings: RunSettings, data: ImageData, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw the server's images; there are none without a server."""
    wanted = settings.server.samples if settings.server else 0
    if wanted > len(data.train):
        raise ValueError(
            f"server.samples must be at most the {len(data.train)} training images, got {wanted}"
        )
    return rng.permutation(len(data.train))[:wanted]


def _used(
    settings: RunSettings, data: ImageData, server: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return a mask of the training images that clients may use."""
    count = round(settings.data.training_fraction * len(data.train))
    used = np.zeros(len(data.train), dtype=bool)
    used[rng.permutation(len(data.train))[:count]] = True
    if settings.server is not None and settings.server.held_out:
        used[server] = False
    return used


def _kept(parts: Partition, used: NDArray[np.bool_]) -> Partition:
    kept = tuple(part[used[part]] for part in parts)
    for client, part in enumerate(kept):
        if not part.size:
            raise ValueError(
                "partition must give every client at least one image, got none for client "
                f"{client} where {used.sum()} of {used.size} training images are in use"
            )
    return kept


def _module(settings: RunSettings, data: ImageData, rng: np.random.Generator) -> torch.nn.Module:
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**62)))
            module = models.build(settings.model.name, data.image_shape, data.n_classes)
    except ValueError as error:
        raise ValueError(f"model.{error}") from error
    if settings.model.start == "zero":
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.zero_()
    return module


def _local_training(settings: RunSettings) -> LocalTraining:
    training = settings.training
    return LocalTraining(
        training.batch_size,
        sampling=training.sampling,  # type: ignore[arg-type]
        epochs=training.local_epochs,
        weight_decay=training.weight_decay,
        loss_batch_size=training.loss_batch_size,
    )


def _server_data(server: ServerSettings | None, places: NDArray[np.intp]) -> ServerData | None:
    if server is None:
        return None
    return ServerData(
        places, batch_size=server.batch_size, steps=server.steps_a_round, lr=server.lr
    )


def _algorithm(
    settings: RunSettings, clients: TorchClients, participation: Participation
) -> Algorithm | Schedule:
    training = settings.training
    steps = training.local_steps
    if training.local_epochs is not None:
        steps = clients.pools.steps_of_epochs(training.local_epochs, training.batch_size)
    lr = settings.server.lr if settings.server else None
    given = circumstances(training.client_lr, steps or 1, lr, training.rounds, participation)
    algorithm = settings.method.algorithm(given)
    if training.step_sizes == "harmonic":
        algorithm = Scheduled(algorithm, Harmonic(training.client_lr))  # type: ignore[arg-type]
    if training.momentum:
        algorithm = ServerMomentum(algorithm, training.momentum)  # type: ignore[arg-type]
    return algorithm
