"""Tiny data files in the published layouts, and what was written into them."""

from __future__ import annotations

import gzip
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

N_TRAIN, N_TEST = 7, 4


@dataclass(frozen=True)
class Written:
    """Pixels (n, channels, height, width) and labels of both parts."""

    folder: Path
    pixels: tuple[np.ndarray, np.ndarray]
    labels: tuple[np.ndarray, np.ndarray]


def drawn(shape: tuple[int, ...]) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(4)
    sizes = (N_TRAIN, N_TEST)
    pixels = tuple(rng.integers(256, size=(n, *shape), dtype=np.uint8) for n in sizes)
    labels = tuple(rng.permutation(10)[:n].astype(np.uint8) for n in sizes)
    return pixels, labels


def idx_bytes(array: np.ndarray) -> bytes:
    header = struct.pack(">BBBB", 0, 0, 8, array.ndim)
    return header + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx(folder: Path, *, zipped: bool = False) -> Written:
    pixels, labels = drawn((1, 5, 3))
    for stem, images, marks in zip(("train", "t10k"), pixels, labels, strict=True):
        for kind, array in (("images-idx3", images[:, 0]), ("labels-idx1", marks)):
            path, content = folder / f"{stem}-{kind}-ubyte", idx_bytes(array)
            if zipped:
                path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(content))
            else:
                path.write_bytes(content)
    return Written(folder, pixels, labels)


def write_cifar(folder: Path, batches: int = 5) -> Written:
    pixels, labels = drawn((3, 32, 32))
    records = [
        np.concatenate([marks[:, None], images.reshape(len(marks), -1)], axis=1)
        for images, marks in zip(pixels, labels, strict=True)
    ]
    for place, part in enumerate(np.array_split(records[0], batches)):
        (folder / f"data_batch_{place + 1}.bin").write_bytes(part.tobytes())
    (folder / "test_batch.bin").write_bytes(records[1].tobytes())
    return Written(folder, pixels, labels)
