"""A torch model whose only parameter is the contract's vector, with the client's own loss."""

import sys
import types

import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


class _Loss(torch.autograd.Function):
    """The client's loss, whose gradient the client knows; no library here uses its value, so that it is 0."""

    @staticmethod
    def forward(context, x, client):
        context.client = client
        context.save_for_backward(x)
        return x.new_zeros(())

    @staticmethod
    def backward(context, outer):
        (x,) = context.saved_tensors
        return outer * torch.from_numpy(context.client.gradient(x.numpy())).to(x), None


class Vector(torch.nn.Module):
    """The model: a batch holds the index of its client in every row, and the output is that client's loss."""

    clients = ()

    def __init__(self, x0):
        super().__init__()
        self.x = torch.nn.Parameter(torch.tensor(x0))

    def forward(self, batch):
        """Return the loss, once for each row of the batch."""
        client = self.clients[int(batch.reshape(-1)[0])]
        return _Loss.apply(self.x, client).expand(len(batch))


class Logits(Vector):
    """A model for libraries with a fixed cross-entropy loss: with label 0, it is log 2 + loss.

    At loss value 0 the cross-entropy log(1 + exp(z)) of the logits (0, z) with z = 2 loss has slope 1/2 in z, hence 1
    in the loss: exact in floating point.
    """

    def forward(self, batch):
        """Logits, one row for each row of the batch."""
        loss = super().forward(batch)
        return torch.stack([torch.zeros_like(loss), 2 * loss], dim=1)


def mean(losses, _labels=None):
    """Return the mean, the criterion for `Vector`."""
    return losses.mean()


def rows(index, count):
    """Return a client's data: its index in each of `count` rows, and labels 0."""
    return torch.full((count, 1), index), torch.zeros(count, dtype=torch.long)


def vector(model):
    """Return the model's parameter as a NumPy array."""
    return model.x.detach().cpu().numpy().copy()


def pretend(*names):
    """Make imports succeed that training a vector never uses (torchvision and the like)."""

    class Pretended(types.ModuleType):
        __path__ = ()

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

    for name in names:
        sys.modules.setdefault(name, Pretended(name))
