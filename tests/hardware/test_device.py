"""Devices that are there, and those that are not."""

from __future__ import annotations

import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from fltheory.hardware.training.prepared import checked_device  # noqa: E402


@pytest.mark.parametrize("name", ["cpu", "cpu:0"])
def test_the_processor_is_there(name: str) -> None:
    assert checked_device(name) == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "meta", "cuda:x", "cpu:1", ""])
def test_names_that_mean_nothing_here(name: str) -> None:
    with pytest.raises(ValueError, match="device must be cpu, cuda or cuda:N, got"):
        checked_device(name)


@pytest.mark.parametrize("name", ["cuda", "cuda:0"])
def test_cuda_asked_for_and_absent(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=rf"got '{name}' where torch sees 0 CUDA devices") as error:
        checked_device(name)
    assert "\n" not in str(error.value)


def test_cuda_with_too_high_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert checked_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(ValueError, match="where torch sees 2 CUDA devices"):
        checked_device("cuda:2")
