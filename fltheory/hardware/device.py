"""The device that tensors live on, checked before anything is put there."""

from __future__ import annotations

import torch


def checked_device(name: str) -> torch.device:
    """Return the device of that name.

    Raises
    ------
    ValueError
        If there is no such kind of device, or this machine or this build of torch has none.
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
            f"device must be one that is there, got {name!r} where torch sees "
            f"{count} CUDA devices{build}"
        )
    return device
