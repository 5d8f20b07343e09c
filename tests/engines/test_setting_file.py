"""Settings as TOML: what is written is read back as it was, and what is wrong is named."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from fltheory import theorems
from fltheory.algorithms import (
    FedAR,
    FedAvg,
    FedNova,
    FedProx,
    Harmonic,
    LocalSgd,
    Projected,
    Safari,
    Scheduled,
    ServerMomentum,
)
from fltheory.engines import Setting, read_setting, write_setting
from fltheory.engines.setting_file import (
    Refutes,
    read_witness,
    refutes_in,
    setting_document,
    setting_of,
)
from fltheory.participation import (
    AtMost,
    Bernoulli,
    Cyclic,
    FiniteChain,
    MarkovOnOff,
    Trace,
    UniformSubset,
    WaitingSubset,
)
from fltheory.problems import Ball, LogisticProblem, QuadraticProblem, nonconvex, quadratic

CLIENTS = 3
WRITTEN = """\
rounds = 4
x0 = 0.9

[problem]
kind = "QuadraticProblem"
hessians = [[1.0]]
optima = [[-1.0], [1.0], [3.0]]

[algorithm]
kind = "Safari"
q = "1/3"
client_lr = 0.1
assist_lr = 0.2
local_steps = 2

[participation]
kind = "UniformSubset"
n_clients = 3
size = 1
"""


def alike(one: Any, other: Any) -> bool:
    """Whether two objects are of one class, with fields that are alike down to types and bits."""
    if type(one) is not type(other):
        return False
    if is_dataclass(one):
        return all(alike(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


def through_toml(setting: Setting) -> Setting:
    return setting_of(tomllib.loads(tomli_w.dumps(setting_document(setting))))


@pytest.mark.parametrize("paper", sorted({s.id.split("/")[0] for s in theorems.registered()}))
def test_every_registered_setting_comes_back(paper: str) -> None:
    settings = [
        regime.setting
        for statement in theorems.registered(paper)
        for regime in statement.regimes.values()
        if isinstance(regime.setting, Setting)
    ]
    assert settings or paper == "pac"
    for setting in settings:
        if re.search(r"\b_\w+\(", repr(setting.algorithm)):  # a part that is its regime's own
            with pytest.raises(ValueError, match="must consist of numbers to be written"):
                setting_document(setting)
        else:
            assert alike(through_toml(setting), setting)


numbers = st.one_of(
    st.floats(1e-8, 1e8), st.fractions(Fraction(1, 10**6), 10**6), st.integers(1, 10**6)
)
shares = st.one_of(st.floats(0.01, 0.99), st.fractions(Fraction(1, 99), Fraction(98, 99)))
probabilities = st.lists(st.floats(0.01, 1.0), min_size=CLIENTS, max_size=CLIENTS)
weights = st.just((Fraction(1, 2), 0.25, Fraction(1, 4)))
fedavgs = st.builds(FedAvg, numbers, st.integers(1, 9), server_lr=numbers)
steps = st.builds(Harmonic, numbers, offset=st.floats(0, 1e8))
algorithms = st.one_of(
    fedavgs,
    st.builds(Safari, shares, numbers, numbers, st.integers(1, 9)),
    st.builds(FedAR, numbers, st.integers(1, 9), cutoff=st.just(np.inf)),
    st.builds(FedProx, numbers, st.integers(1, 9), numbers, client_weights=weights),
    st.builds(FedNova, numbers, st.sampled_from([2, (1, 2, 3)]), client_weights=weights),
    st.builds(ServerMomentum, fedavgs, shares),
    st.builds(Scheduled, fedavgs, steps),
    st.builds(LocalSgd, steps, st.integers(1, 9), weights),
    st.builds(Projected, fedavgs, st.builds(Ball, st.just([0.0, 1.0]), st.floats(1, 1e3))),
)
participations = st.one_of(
    st.builds(UniformSubset, st.just(CLIENTS), st.just(1), excluded=st.sampled_from([(), (1,)])),
    st.builds(Bernoulli, probabilities),
    st.builds(AtMost, probabilities, st.just(2)),
    st.builds(WaitingSubset, probabilities, st.just(2)),
    st.builds(MarkovOnOff, st.just([0.5, 0.25, 0.75]), st.floats(0.1, 0.9)),
    st.builds(Cyclic, st.just([2, 3, 4]), st.just([0, 1, 2])),
    st.just(FiniteChain([[0.5, 0.5], [0.25, 0.75]], np.eye(2, CLIENTS, dtype=bool), start=1)),
    st.builds(Trace, st.just([[True, False, True], [False, True, True]]), start=st.just(1)),
)
coordinates = st.floats(-1e6, 1e6)
points = st.lists(coordinates, min_size=2, max_size=2)
problems = st.one_of(
    st.builds(
        QuadraticProblem,
        st.just([[2.0, 0.5], [0.5, 1.0]]),
        st.lists(points, min_size=CLIENTS, max_size=CLIENTS),
        sigma=st.floats(0, 1e6),
        target_weights=st.sampled_from([None, (0.5, 0.25, 0.25)]),
    ),
    st.just(nonconvex(CLIENTS, 2, L=1.0, sigma_G=0.5)),
)


@given(st.builds(Setting, algorithms, problems, participations, st.integers(1, 10**6), points))
def test_what_is_written_is_read_back_to_the_bit(setting: Setting) -> None:
    assert alike(through_toml(setting), setting)


def test_a_file_by_hand_is_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(WRITTEN)
    setting = read_setting(path)
    problem = QuadraticProblem([[1.0]], [[-1.0], [1.0], [3.0]])
    safari = Safari(Fraction(1, 3), 0.1, 0.2, 2)
    assert alike(setting, Setting(safari, problem, UniformSubset(3, 1), 4, [0.9]))
    write_setting(tmp_path / "again.toml", setting)
    assert alike(read_setting(tmp_path / "again.toml"), setting)


def test_functions_that_make_problems_are_kinds_too() -> None:
    document = tomllib.loads(WRITTEN)
    document["problem"] = {
        "kind": "quadratic",
        "n_clients": 3,
        "dim": 2,
        "L": 2.0,
        "mu": 0.5,
        "sigma_G": 1.0,
    }
    setting = setting_of(document)
    assert alike(setting.problem, quadratic(3, 2, L=2.0, mu=0.5, sigma_G=1.0))
    assert setting.x0.tolist() == [0.9, 0.9]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rounds = 4\n", "", "the file must have rounds"),
        ("rounds = 4", "round = 4", "the file has rounds.*, got 'round'"),
        ("rounds = 4", "rounds = true", "rounds must be a whole number"),
        ("rounds = 4", "rounds = 0", "rounds must be"),
        ('kind = "Safari"', 'kind = "Safary"', "kind of algorithm must be one of .*Safari"),
        ('kind = "Safari"', "kind = 3", "kind of algorithm must be one of"),
        ('kind = "Safari"\n', "", "algorithm must have a kind"),
        ("local_steps = 2", "localsteps = 2", "algorithm has .*local_steps, got 'localsteps'"),
        ("local_steps = 2\n", "", "algorithm must have local_steps"),
        ('q = "1/3"', 'q = "1/0"', "algorithm.q must be a number, got '1/0'"),
        ('q = "1/3"', "q = 2", "algorithm.q must"),
        ('q = "1/3"', 'q = "a third"', "algorithm.q must"),
        ("optima = [[-1.0], [1.0], [3.0]]", "optima = [[1.0]]", "participation must be over"),
        ("hessians = [[1.0]]", "hessians = [[-1.0]]", "problem.hessians must"),
        ("x0 = 0.9", "x0 = [0.9, 1]", "x0 must have shape"),
        ("x0 = 0.9", "x0 = true", "x0 must"),
        ('kind = "Safari"', 'kind = "mine.Own"', "must come from a loaded file, .*--load mine.py"),
        ("[participation]", "[participation", "mine.toml: "),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    assert old in WRITTEN
    path.write_text(WRITTEN.replace(old, new))
    with pytest.raises(ValueError, match=message) as error:
        read_setting(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def test_all_that_is_missing_is_told_at_once() -> None:
    with pytest.raises(ValueError, match="the file must have") as error:
        setting_of({"x0": 1, "problem": {"kind": "quadratic", "dim": 2}, "algorithm": {"q": 1}})
    told = str(error.value).split("; ")
    assert told[0] == "the file must have rounds, participation, got x0, problem, algorithm"
    assert told[1].startswith("problem must have n_clients, L")
    assert told[2:] == ["algorithm must have a kind, got q"]


def test_a_part_that_is_no_table_is_named() -> None:
    document = {**tomllib.loads(WRITTEN), "problem": 3}
    with pytest.raises(ValueError, match="problem must be a table with its kind, got 3"):
        setting_of(document)


def test_a_witness_says_what_it_refutes(tmp_path: Path) -> None:
    path, setting = tmp_path / "found.toml", setting_of(tomllib.loads(WRITTEN))
    write_setting(path, setting)
    assert read_witness(path)[1] is None
    write_setting(path, setting, Refutes("my/1", "derived"))
    found, refutes = read_witness(path)
    assert refutes == Refutes("my/1", "derived")
    for kept in (found, read_setting(path)):
        assert setting_document(kept) == setting_document(setting)
    path.write_text(path.read_text().replace('reading = "derived"', ""))
    assert read_witness(path)[1] == Refutes("my/1", "printed")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("my/1", "refutes must be a table with a theorem, got 'my/1'"),
        ({"reading": "printed"}, "refutes must have theorem, got reading"),
        ({"theorem": "my/1", "grade": "exact"}, "refutes has .*reading, got 'grade'"),
        ({"theorem": 3}, "refutes.theorem must be"),
    ],
)
def test_what_it_refutes_is_checked(table, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        refutes_in({"refutes": table})


def test_no_such_file() -> None:
    with pytest.raises(ValueError, match=r"file of a setting must exist, got 'missing\.toml'"):
        read_setting(Path("missing.toml"))


@pytest.mark.parametrize(
    ("algorithm", "problem"),
    [
        (FedAR(0.1, 1, cutoff=lambda t: 3.0), QuadraticProblem([[1.0]], [[0.0]])),
        (FedAvg(0.1, 1), LogisticProblem([[[1.0]]], [[1]], ridge=0.1)),
    ],
)
def test_what_cannot_be_written_leaves_no_file(tmp_path: Path, algorithm, problem) -> None:
    path = tmp_path / "mine.toml"
    with pytest.raises(ValueError, match="must consist of numbers to be written"):
        write_setting(path, Setting(algorithm, problem, UniformSubset(1, 1), 1, [0.0]))
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("own_theorems_forgotten")
def test_a_loaded_file_s_own_algorithm_comes_back(tmp_path: Path) -> None:
    (tmp_path / "clipped.py").write_text(
        "from dataclasses import dataclass\n"
        "from fltheory.algorithms import FedAvg\n"
        "@dataclass(frozen=True)\n"
        "class Own(FedAvg):\n"
        "    limit: float = 1.0\n"
        "STATEMENTS = ()\n"
    )
    theorems.load(tmp_path / "clipped.py")
    document = tomllib.loads(WRITTEN)
    document["algorithm"] = {"kind": "clipped.Own", "client_lr": 0.1, "local_steps": 1, "limit": 2}
    setting = setting_of(document)
    assert setting.algorithm.limit == 2
    assert setting_document(setting)["algorithm"]["kind"] == "clipped.Own"
    assert alike(through_toml(setting), setting)
