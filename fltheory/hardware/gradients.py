"""Losses and gradients of several flat models at once, each on its own batch.

A flat model is a torch module seen as a function of one vector of parameters. ``y`` is (rows, dim),
with one model per row; ``inputs`` (rows, width, ...) and ``targets`` (rows, width, ...) are the
samples of each row. ``weights`` (rows, width) are the weights of the samples' losses: 1/size within
a batch, and 0 for padding. A row's loss is the weighted sum of its samples' losses.

`write_gradients` writes gradients of clients' minibatches to a file that `fltheory advise` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from math import prod
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.utils import parameters_to_vector

from fltheory import validation
from fltheory.argument_kinds import checks_kinds
from fltheory.files.csv_text import csv_text
from fltheory.files.whole_file import write_whole
from fltheory.validation import ClientIndices


class FlatModel:
    """A module as a function of one vector, its parameters in order, of length ``dim``.

    Buffers are kept unchanged. Modules with their own memory or randomness are refused. These are
    batch norm, because no algorithm here averages its statistics, and dropout, because a resumed
    run would not repeat its draws.

    Parameters
    ----------
    module : torch.nn.Module
        A module with parameters of one floating dtype, on one device.

    Raises
    ------
    ValueError
        If the module has no parameters, parameters of several dtypes, batch norm or dropout.

    Examples
    --------
    >>> model = FlatModel(nn.Linear(2, 1))
    >>> model.dim
    3
    >>> model(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([[1.0, 1.0]])).tolist()
    [[6.0]]
    """

    def __init__(self, module: nn.Module) -> None:
        parameters = dict(module.named_parameters())
        if not parameters:
            raise ValueError(f"module must have parameters, got {type(module).__name__} with none")
        kinds = {parameter.dtype for parameter in parameters.values()}
        if len(kinds) > 1:
            raise ValueError(
                f"module must have parameters of one dtype, got {sorted(map(str, kinds))}"
            )
        for part in module.modules():
            if isinstance(part, _BatchNorm | _DropoutNd):
                raise ValueError(
                    f"module must have neither batch norm nor dropout, got {type(part).__name__}"
                )
        self.module = module
        self._shapes = {name: parameter.shape for name, parameter in parameters.items()}
        self._sizes = [prod(shape) for shape in self._shapes.values()]

    @property
    def dim(self) -> int:
        """The number of parameters."""
        return sum(self._sizes)

    @property
    def initial(self) -> Tensor:
        """(dim,) the module's own parameters, copied."""
        parameters = self.module.parameters()
        return torch.cat([parameter.detach().reshape(-1) for parameter in parameters])

    def __call__(self, flat: Tensor, inputs: Tensor) -> Tensor:
        """Return the module's outputs for ``inputs`` with the parameters ``flat``, (dim,)."""
        parts = torch.split(flat, self._sizes)
        parameters = {
            name: part.view(shape)
            for part, (name, shape) in zip(parts, self._shapes.items(), strict=True)
        }
        return functional_call(self.module, parameters, (inputs,))


Loss = Callable[[Tensor, Tensor], Tensor]
"""Maps (outputs, targets) to one loss per sample."""

Descent = Callable[[], None]
"""One step of gradient descent, which changes the models in place."""

Parts = tuple[Tensor, ...]
"""The parts into which several models are split."""

Way = Literal["auto", "closed form", "vmap", "one by one"]
WAYS = ("auto", "closed form", "vmap", "one by one")


class BatchLosses(Protocol):
    """The operations on a model and its loss that local SGD needs."""

    def losses(self, y: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Return each row's loss, (rows,)."""
        ...

    def gradients(self, y: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Return the gradient of each row's loss with respect to its own model, (rows, dim)."""
        ...

    def split(self, y: Tensor) -> Parts:
        """Return a copy of the models, split into the parts that `descents` changes."""
        ...

    def joined(self, parts: Parts) -> Tensor:
        """Return the models, (rows, dim), from their parts."""
        ...

    def descents(
        self, parts: Parts, inputs: Tensor, targets: Tensor, weights: Tensor, lr: float
    ) -> Iterator[Descent]:
        """Yield successive steps, for samples whose first axis is over steps."""
        ...


class _Descending:
    """Base of losses that descend along their own gradients."""

    gradients: Callable[..., Tensor]

    def split(self, y: Tensor) -> Parts:
        """Return a copy of the models as a single part."""
        return (y.clone(),)

    def joined(self, parts: Parts) -> Tensor:
        """Return the models, (rows, dim)."""
        (y,) = parts
        return y

    def descents(
        self, parts: Parts, inputs: Tensor, targets: Tensor, weights: Tensor, lr: float
    ) -> Iterator[Descent]:
        """Yield successive steps, for samples whose first axis is over steps."""
        (y,) = parts
        for batch in zip(inputs, targets, weights, strict=True):
            yield partial(self._descend, y, batch, lr)

    def _descend(self, y: Tensor, batch: tuple[Tensor, Tensor, Tensor], lr: float) -> None:
        y.sub_(self.gradients(y, *batch), alpha=lr)


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of each sample, for logits (n, classes) and labels (n,)."""
    return functional.cross_entropy(outputs, targets, reduction="none")


class Vmapped(_Descending):
    """Losses and gradients of all rows in one call, using `torch.func.vmap`."""

    def __init__(self, model: FlatModel, loss: Loss) -> None:
        of_one = _loss_of_one(model, loss)
        self.losses: Callable[..., Tensor] = vmap(of_one)
        self.gradients: Callable[..., Tensor] = vmap(grad(of_one))


class OneByOne(_Descending):
    """Losses and gradients row by row, for models that do not batch well over parameters."""

    def __init__(self, model: FlatModel, loss: Loss) -> None:
        self._loss = _loss_of_one(model, loss)
        self._gradient = grad(self._loss)

    def losses(self, y: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Return each row's loss, (rows,)."""
        rows = zip(y, inputs, targets, weights, strict=True)
        return torch.stack([self._loss(*row) for row in rows])

    def gradients(self, y: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Return the gradient of each row's loss with respect to its own model, (rows, dim)."""
        rows = zip(y, inputs, targets, weights, strict=True)
        return torch.stack([self._gradient(*row) for row in rows])


class LinearSoftmax:
    """Cross-entropy of one linear layer, with its gradient in closed form as batched products.

    With ``p`` the softmax of the logits, a sample's gradient is ``(p - onehot) x'`` for the matrix
    and ``p - onehot`` for the bias.
    """

    def __init__(self, layer: nn.Linear) -> None:
        self._shape = (layer.out_features, layer.in_features)
        self._has_bias = layer.bias is not None

    def losses(self, y: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Return each row's loss, (rows,)."""
        logits = self._logits(*self._views(y), inputs.flatten(2))
        label = torch.gather(logits, 1, targets.unsqueeze(1)).squeeze(1)
        return ((torch.logsumexp(logits, 1) - label) * weights).sum(1)

    def gradients(self, y: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Return the gradient of each row's loss with respect to its own model, (rows, dim)."""
        samples = inputs.flatten(2)
        pull = self._pull(y, samples, targets, weights)
        matrix = torch.bmm(pull, samples).flatten(1)
        return torch.cat([matrix, pull.sum(2)], 1) if self._has_bias else matrix

    def split(self, y: Tensor) -> Parts:
        """Return separate copies of matrices and biases, as products into views are not batched."""
        return tuple(part.clone() for part in self._views(y) if part is not None)

    def joined(self, parts: Parts) -> Tensor:
        """Return the models, (rows, dim), from matrices and biases."""
        return torch.cat([part.flatten(1) for part in parts], 1)

    def descents(
        self, parts: Parts, inputs: Tensor, targets: Tensor, weights: Tensor, lr: float
    ) -> Iterator[Descent]:
        """Yield successive steps, for samples whose first axis is over steps.

        Everything that does not depend on the models is computed for all steps at once, because for
        batches of this size a call costs as much as its arithmetic.
        """
        matrix, *biases = parts
        scale = (-lr * weights).unsqueeze(2)
        steps, rows, width = targets.shape
        of_labels = scale.new_zeros((steps, rows, self._shape[0], width))
        of_labels.scatter_(2, targets.unsqueeze(2), -scale)
        bias = biases[0] if biases else None
        for batch in zip(inputs.flatten(3), of_labels, scale, strict=True):
            yield partial(self._descend, matrix, bias, *batch)

    def _descend(
        self, matrix: Tensor, bias: Tensor | None, samples: Tensor, of_labels: Tensor, scale: Tensor
    ) -> None:
        """Add ``scale (p - onehot) x'`` to the matrices, where ``of_labels = -scale onehot``."""
        softmax = torch.softmax(self._logits(matrix, bias, samples), 1)
        push = torch.addcmul(of_labels, softmax, scale)
        matrix.baddbmm_(push, samples)
        if bias is not None:
            bias.add_(push.sum(2))

    def _pull(self, y: Tensor, samples: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        """Return ``(p - onehot)`` times the weights, (rows, classes, width)."""
        pull = torch.softmax(self._logits(*self._views(y), samples), 1)
        labels = targets.unsqueeze(1)
        pull.scatter_add_(1, labels, pull.new_full((), -1.0).expand(labels.shape))
        return pull.mul_(weights.unsqueeze(1))

    @staticmethod
    def _logits(matrix: Tensor, bias: Tensor | None, samples: Tensor) -> Tensor:
        """Return logits (rows, classes, width), several times faster than with classes last."""
        columns = samples.transpose(1, 2)
        if bias is None:
            return torch.bmm(matrix, columns)
        return torch.baddbmm(bias.unsqueeze(2), matrix, columns)

    def _views(self, y: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return views of the matrices, (rows, classes, features), and of the biases."""
        classes, features = self._shape
        matrix = y[:, : classes * features].view(-1, classes, features)
        return matrix, y[:, classes * features :] if self._has_bias else None


def batch_losses(
    model: FlatModel, loss: Loss, *, way: Way = "auto", on_gpu: bool = False, compiled: bool = False
) -> BatchLosses:
    """Return the implementation of losses and gradients for several models.

    Parameters
    ----------
    model : FlatModel
    loss : callable
        Maps (outputs, targets) to one loss per sample.
    way : {"auto", "closed form", "vmap", "one by one"}
        How to compute losses and gradients. By default, the closed form is used for a linear layer
        with `cross_entropy`. Convolutions on a CPU are computed one by one, which is at least as
        fast there, and vmap is used otherwise.
    on_gpu : bool
        Whether the computation will run on a GPU, which affects the default.
    compiled : bool
        Whether to compile the gradients of all rows with `torch.compile`.

    Raises
    ------
    ValueError
        If ``way`` is unknown, or is ``"closed form"`` for a model that has none.
    """
    validation.one_of("way", way, WAYS)
    layer = _only_layer(model.module) if loss is cross_entropy else None
    if way == "closed form" and layer is None:
        raise ValueError(
            "way must not be 'closed form' except for one linear layer with cross_entropy, got "
            f"{type(model.module).__name__}"
        )
    chosen: BatchLosses
    if layer is not None and way in ("auto", "closed form"):
        chosen = LinearSoftmax(layer)
    elif way == "one by one" or (way == "auto" and not on_gpu and _has_convolutions(model.module)):
        chosen = OneByOne(model, loss)
    else:
        chosen = Vmapped(model, loss)
    return _Compiled(chosen) if compiled else chosen


class _Compiled(_Descending):
    def __init__(self, plain: BatchLosses) -> None:
        self.losses: Callable[..., Tensor] = plain.losses
        self.gradients: Callable[..., Tensor] = torch.compile(plain.gradients)


def _loss_of_one(model: FlatModel, loss: Loss) -> Callable[..., Tensor]:
    def of_one(flat: Tensor, inputs: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        return (loss(model(flat, inputs), targets) * weights).sum()

    return of_one


def _only_layer(module: nn.Module) -> nn.Linear | None:
    """Return the module's linear layer if the module does only that and flattening, else None."""
    parts = [part for part in module.modules() if not isinstance(part, nn.Sequential)]
    layers = [part for part in parts if not isinstance(part, nn.Flatten | nn.Identity)]
    if not isinstance(module, nn.Sequential | nn.Linear) or len(layers) != 1:
        return None
    return layers[0] if isinstance(layers[0], nn.Linear) else None


def _has_convolutions(module: nn.Module) -> bool:
    return any(isinstance(part, nn.modules.conv._ConvNd) for part in module.modules())


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
    """Write clients' gradients at a few models as CSV rows ``client,point,...``.

    Parameters
    ----------
    path : Path
    models : sequence of torch.nn.Module
        Models of one architecture. The first is the initial model, and the last is the one nearest
        to the optimum.
    clients : mapping
        Maps each client's name in the log to its minibatches ``(inputs, targets)``, for example
        from a data loader that reshuffles in each pass.
    loss : callable
        Maps (outputs, targets) to the loss of a minibatch.
    batches : int
        Number of minibatches per client and model.
    coordinates : int
        Larger models are represented by this many randomly drawn parameters, the same in all rows;
        this is enough, because the advice uses only ratios from the file.
    seed : int
        Seed of the drawn parameters.

    Raises
    ------
    ValueError
        If models differ in size, or a client has fewer minibatches than ``batches``.

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
        raise ValueError(f"models must all have the same number of parameters, got {sorted(sizes)}")
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
