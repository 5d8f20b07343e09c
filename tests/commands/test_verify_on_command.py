"""fltheory verify --on: an experiment's runs measured, and bad input in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is an optional extra: pip install 'fltheory[torch]'")
pytest.importorskip("sklearn", reason="scikit-learn is an optional extra")

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
SMALL = """
title = "Theorem 5, shortly"
source = "SA-FL"
seeds = [0]
figure = "last"
[data]
name = "digits"
[model]
name = "logistic"
start = "zero"
[partition]
kind = "classes"
n_clients = 5
classes_per_client = 2
[participation]
kind = "uniform"
size = 2
[algorithm]
name = "SAFARI"
q = 0.2
[training]
rounds = 5
client_lr = 0.00199
local_steps = 2
batch_size = 8
sampling = "replacement"
weight_decay = 0.1
[server]
samples = 1442
lr = 0.001
batch_size = 8
steps = 1
[[columns]]
label = "all"
[[columns]]
label = "few"
set.server = { samples = 50 }
[[rows]]
label = "q = 0.2"
"""


def test_bound_beside_measured_error_and_which_hypotheses_held(fltheory_command, tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    status, out, err = fltheory_command("verify", "--on", file, "--replicas", 3)
    assert (status, err) == (0, "")
    first, second = out.strip().split("\n\n")
    assert first.startswith("q = 0.2, all: digits, 5 clients, 3 runs of 5 rounds")
    assert second.startswith("q = 0.2, few: digits")
    for reading in ("printed", "derived", "repaired"):
        assert f"sa-fl/5 {reading}: " in first
    assert first.count("measured ") == first.count("bound ") == 3
    # 0.00398 * 0.1/(0.004 - 0.00398), from eta_c K (L + mu) = 4 eta_s L.
    assert first.count("computed with L = 19.9") == 3
    assert first.count("server's gradient unbiased") == 3
    assert "not met: server's gradient unbiased" not in first
    assert "not met: server's gradient unbiased: 50 images; bias up to" in second
    assert second.count("INAPPLICABLE") == 3


def test_reads_experiment_files_of_the_repository():
    from fltheory.hardware.training import read_experiment

    for name in ("sa-fl-theorem5.toml", "sa-fl-theorem5-digits.toml"):
        experiment = read_experiment(EXPERIMENTS / name)
        assert len(experiment.rows) * len(experiment.columns) == 6
        for settings in experiment.runs:
            assert settings.training.weight_decay > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--on", "none.toml"], "file must be an existing file, got 'none.toml'"),
        (
            ["--on", "{file}", "--json", "x.json"],
            "options for files, reports, timing, comparison or the exit status must be left out "
            "with --on",
        ),
        (["--on", "{file}", "--replicas", "1"], "replicas must be a whole number of at least 2"),
        (["sa-fl/4", "--on", "{file}"], "theorems must be ones whose quantities are measured"),
        (["--on", "{digits}"], "model.name must be logistic with training.weight_decay above 0"),
    ],
)
def test_bad_input_is_one_line(fltheory_command, tmp_path, arguments, message):
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    names = {"file": file, "digits": EXPERIMENTS / "digits.toml"}
    given = [argument.format(**names) for argument in arguments]
    status, out, err = fltheory_command("verify", *given)
    assert (status, out) == (2, "")
    assert err.startswith(f"fltheory: {message}")
    assert err.count("\n") == 1
