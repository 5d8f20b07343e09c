"""Gradients of torch modules on clients' minibatches, as the file that `fltheory advise` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.files.csv_text import csv_text
from fltheory.files.whole_file import write_whole
from fltheory.validation import ClientIndices

Batches = Iterable[tuple[Tensor, Tensor]]


@checks_kinds
def write_gradients(
    path: Path | str,
    models: Sequence[nn.Module],
    clients: Mapping[str, Batches],
    loss: Callable[[Tensor, Tensor], Tensor],
    *,
    batches: int = 4,
    coordinates: int = 1000,
    seed: int = 0,
) -> None:
    """Write clients' gradients at a few models as ``client,point,...``.

    Parameters
    ----------
    path : Path
    models : sequence of torch.nn.Module
        Of one kind: first the start, last the one nearest to the optimum.
    clients : mapping
        From a client's name in the log to its minibatches ``(inputs, targets)``, as a data loader
        gives them: anew, and shuffled, each time it is asked.
    loss : callable
        (outputs, targets) to the loss of a minibatch.
    batches : int
        Minibatches of each client at each model.
    coordinates : int
        Of larger models so many parameters are drawn, the same in all rows: all that the advice
        takes from the file are ratios.
    seed : int
        For these.

    Raises
    ------
    ValueError
        For models of different size, or a client with fewer minibatches.

    Examples
    --------
    >>> import tempfile
    >>> import torch
    >>> folder = tempfile.TemporaryDirectory()
    >>> start, later = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    >>> batches = [(torch.ones(4, 2), torch.zeros(4, 1)), (torch.zeros(4, 2), torch.ones(4, 1))]
    >>> path = Path(folder.name, "gradients.csv")
    >>> write_gradients(path, [start, later], {"a": batches}, torch.nn.MSELoss(), batches=2)
    >>> path.read_text().splitlines()[0]
    'client,point,0,1,2'
    >>> folder.cleanup()
    """
    for name, value, least in (("batches", batches, 2), ("coordinates", coordinates, 1)):
        validation.whole_number(name, value, at_least=least)
    sizes = {sum(one.numel() for one in model.parameters()) for model in models}
    if len(sizes) != 1:
        raise ValueError(f"models must have one number of parameters, got {sorted(sizes)}")
    (size,) = sizes
    rng = np.random.default_rng(validation.seed_number("seed", seed))
    kept = np.sort(rng.permutation(size)[:coordinates])
    rows: list[list[object]] = [["client", "point", *kept]]
    for point, model in enumerate(models):
        rows.append(["", point, *_flat(model.parameters())[kept]])
        for client, loader in clients.items():
            found = list(_gradients(model, islice(loader, batches), loss, kept))
            if len(found) < batches:
                raise ValueError(
                    f"clients must have at least {batches} minibatches each, got {len(found)} of "
                    f"{client!r}"
                )
            rows += ([client, point, *gradient] for gradient in found)
    write_whole(validation.path("path", path), csv_text(rows))


def _gradients(
    model: nn.Module,
    batches: Batches,
    loss: Callable[[Tensor, Tensor], Tensor],
    kept: ClientIndices,
) -> Iterator[np.ndarray]:
    parameters = list(model.parameters())
    for inputs, targets in batches:
        value = loss(model(inputs), targets)
        yield _flat(torch.autograd.grad(value, parameters, materialize_grads=True))[kept]


def _flat(parts: Iterable[Tensor]) -> np.ndarray:
    return parameters_to_vector([part.detach() for part in parts]).cpu().numpy()
