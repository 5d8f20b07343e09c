"""The files of the corpus: good ones, which cases change, and those that are bad by themselves."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

from fltheory.engines.setting_file import write_setting
from fltheory.theorems import get

ROOT = Path(__file__).parents[2]
DEEP = 100_000

LOG = "client,time,present\n" + "".join(
    f"{name},{time},{(time + shift) % 2}\n"
    for shift, name in enumerate(("ann", "bob"))
    for time in range(20)
)
TRADE_OFF = """\
availability = [0.5, 0.25]
target_weights = [0.5, 0.5]
a = [0.1, 0.2]
b = 1.0
bias = 1.0
"""
PROCESS = """\
[participation]
kind = "Bernoulli"
availability = [0.5, 0.25]
"""
EXPERIMENT = """\
title = "A test"
source = "Nobody"
figure = "late"
seeds = [0]

[data]
name = "digits"
training_fraction = 0.1

[model]
name = "logistic"

[partition]
kind = "classes"
n_clients = 10
classes_per_client = 1

[participation]
kind = "uniform"
size = 5

[algorithm]
name = "FedAvg"

[training]
rounds = 1
client_lr = 0.1
local_steps = 1
batch_size = 16

[[columns]]
label = "one"

[[rows]]
label = "FedAvg"
"""
CODE = '''\
"""An implementation that is none."""

import os

NUMBER = 3


def run(clients, rounds, x0, **hyper):
    """Go nowhere."""
    return [x0 for _ in range(rounds + 1)]


def broken(*arguments, **options):
    """Fail."""
    raise RuntimeError("no")


def leaves(*arguments, **options):
    """End everything, as if all were well."""
    os._exit(0)


def __getattr__(name):
    if name == "odd":
        raise RuntimeError("no")
    raise AttributeError(name)
'''


def made_files(folder: Path) -> None:
    """Write every file of the corpus."""
    good_files(folder)
    _bad(folder)
    _deep(folder)
    _too_large(folder)


def good_files(folder: Path) -> None:
    """Write those that commands take."""
    texts = {
        "log.csv": LOG,
        "trade-off.toml": TRADE_OFF,
        "process.toml": PROCESS,
        "experiment.toml": EXPERIMENT,
        "code.py": CODE,
        "sizes.csv": "client,size\nann,1\nbob,2\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    write_setting(folder / "setting.toml", get("sa-fl/5").regimes["q = 0"].setting)
    kept = ROOT / "verification"
    (folder / "witnesses").mkdir()
    for name in ("certificate.json", "witnesses/certificate.json"):
        shutil.copy(kept / "witnesses" / "sa-fl-5.json", folder / name)
    shutil.copy(kept / "certificates" / "ca-fed-appendix-d.json", folder / "kept.json")
    shutil.copy(kept / "baseline.csv", folder / "baseline.csv")


def _bad(folder: Path) -> None:
    (folder / "folder").mkdir()
    (folder / "folder.toml").mkdir()
    (folder / "folder.json").mkdir()
    (folder / "folder.py").mkdir()
    for ending in ("csv", "toml", "json", "py", "csv.gz", "parquet"):
        (folder / f"empty.{ending}").write_bytes(b"")
        (folder / f"zeros.{ending}").write_bytes(bytes(4096))
        (folder / f"latin.{ending}").write_bytes(b"caf\xe9 = 1\n")
        os.mkfifo(folder / f"pipe.{ending}")
        (folder / f"loop.{ending}").symlink_to(f"loop.{ending}")
    (folder / "syntax.py").write_text("def run(:\n")
    (folder / "raises.py").write_text("raise RuntimeError('no')\n")
    (folder / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    (folder / "none.py").write_text("x = 1\n")
    (folder / "number.py").write_text("STATEMENTS = 3\n")
    (folder / "numbers.py").write_text("STATEMENTS = [3]\n")
    (folder / "cut.csv.gz").write_bytes(gzip.compress(LOG.encode())[:-9])
    (folder / "cut.parquet").write_bytes(b"PAR1" + bytes(100))
    (folder / "text.json").write_text("hello\n")
    (folder / "list.json").write_text("[]\n")
    (folder / "null.json").write_text("null\n")


def _deep(folder: Path) -> None:
    (folder / "deep.json").write_text("[" * DEEP + "]" * DEEP)
    (folder / "deep-objects.json").write_text('{"a":' * DEEP + "1" + "}" * DEEP)
    (folder / "deep.toml").write_text("x = " + "[" * DEEP + "]" * DEEP)
    (folder / "deep-tables.toml").write_text("x = " + "{a = " * DEEP + "1" + "}" * DEEP)
    (folder / "deep-keys.toml").write_text(".".join(["a"] * 20_000) + " = 1\n")
    (folder / "long-string.toml").write_text('x = "' + "a" * 3_000_000)
    (folder / "two\nlines.toml").write_text("x = 1\n")
    (folder / "deep-500.toml").write_text("rounds = " + "[" * 500 + "]" * 500)
    nested = '{kind = "ServerMomentum", momentum = 0.5, algorithm = ' * 400
    last = '{kind = "FedAvg", client_lr = 0.1, local_steps = 1}' + "}" * 400
    (folder / "nested.toml").write_text(
        (folder / "setting.toml").read_text().partition("[problem]")[0]
        + f"algorithm = {nested}{last}\n"
        + '[problem]\nkind = "QuadraticProblem"\nhessians = [[1.0]]\noptima = [[0.0], [1.0]]\n'
        + '[participation]\nkind = "UniformSubset"\nn_clients = 2\nsize = 1\n'
    )
    certificate = json.loads((folder / "certificate.json").read_text())
    text = json.dumps({**certificate, "setting": 0})
    (folder / "deep-setting.json").write_text(
        text.replace('"setting": 0', '"setting": ' + "[" * DEEP + "]" * DEEP)
    )


def _too_large(folder: Path) -> None:
    """Write files that are small on the disk and large once they are read."""
    # What is packed piece by piece may be put together without unpacking it.
    piece = gzip.compress(bytes(1 << 24))
    (folder / "bomb.csv.gz").write_bytes(piece * (3 * 64))
    (folder / "bomb-header.csv.gz").write_bytes(gzip.compress(LOG.encode()) + piece * 64)
    for name in ("large.toml", "large.json", "large.csv", "large.py"):
        with (folder / name).open("wb") as file:
            file.truncate(3 << 30)
