"""What a sweep goes over: grids, draws, axes that go together, and what is refused."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from fltheory.sweep.design import DrawnRange, design_of, read_sweep
from tests.sweep.designs import as_toml, small


def documents(**changed):
    design = design_of(small(**changed))
    return [design.document(number) for number in range(len(design))]


def test_a_grid_is_every_combination() -> None:
    found = [(d["rounds"], d["algorithm"]["client_lr"]) for d in documents()]
    assert found == list(itertools.product([1, 2], [0.1, 0.02]))
    assert all(d["algorithm"]["q"] == 0.5 for d in documents())


def test_values_of_one_key_with_two_paths_go_together() -> None:
    grid = {"rounds": [5], "participation.size, algorithm.local_steps": [[1, 10], [3, 2]]}
    found = [
        (d["participation"]["size"], d["algorithm"]["local_steps"]) for d in documents(grid=grid)
    ]
    assert found == [(1, 10), (3, 2)]


def test_a_whole_part_is_an_axis_and_what_it_lacks_is_left_out() -> None:
    average = {"kind": "FedAvg", "client_lr": 0.1, "local_steps": 1}
    grid = {"rounds": [1], "algorithm": [small()["algorithm"], average]}
    drawn = {"count": 2, "algorithm.q": {"from": 0.0, "to": 1.0}}
    design = design_of(small(grid=grid, random=drawn))
    assert [design.document(i)["algorithm"] for i in (2, 3)] == [average, average]
    shares = {design.document(i)["algorithm"]["q"] for i in (0, 1)}
    assert len(shares) == 2
    assert all(0 < share < 1 for share in shares)
    # Cells that become equal are one.
    assert design.task(2).cells[0].key == design.task(3).cells[0].key


def test_draws_stay_where_more_are_asked_for_and_another_axis_is_added() -> None:
    drawn = {"seed": 3, "problem.sigma": {"from": 0.01, "to": 10.0, "scale": "log"}}
    few = documents(grid={"rounds": [1]}, random={"count": 2, **drawn})
    more = {"count": 40, **drawn, "participation.size": {"from": 1, "to": 3}}
    many = documents(grid={"rounds": [1]}, random=more)
    sigmas = [d["problem"]["sigma"] for d in many]
    assert sigmas[:2] == [d["problem"]["sigma"] for d in few]
    assert all(0.01 <= sigma <= 10 for sigma in sigmas)
    # The median of a logarithmic draw is the geometric mean, 0.32; of a linear one it were 5.
    assert 0.1 < sorted(sigmas)[20] < 1
    assert {d["participation"]["size"] for d in many} == {1, 2, 3}
    other = {"count": 2, **drawn, "seed": 4}
    assert documents(grid={"rounds": [1]}, random=other)[0]["problem"]["sigma"] not in sigmas


def test_a_setting_shares_its_statements_and_a_cell_is_known_by_its_content() -> None:
    first, second = design_of(small()).task(0), design_of(small(seed=0)).task(0)
    assert [cell.reading for cell in first.cells] == ["printed", "derived"]
    assert [cell.key for cell in first.cells] == [cell.key for cell in second.cells]
    others = (small(seed=1), small(replicas=7), small(x0=0.5))
    keys = {design_of(document).task(0).cells[0].key for document in (small(), *others)}
    assert len(keys) == 4
    own = design_of(small()).task(0, (("mine", "STATEMENTS = ()"),))
    assert own.cells[0].key != first.cells[0].key


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"statments": ["sa-fl/5"]}, "the file has statements, got 'statments'"),
        ({"statements": ["sa-fl/55"]}, "id must be a registered theorem"),
        ({"statements": []}, "statements must be a list of texts"),
        ({"statements": ["pac"]}, "statements must be inequalities along a run"),
        ({"readings": ["prnted"]}, "statements has printed, got 'prnted'"),
        ({"problem": None}, "the file must have problem"),
        ({"grid": {"algorithm": {"clint_lr": [1.0]}}}, "algorithm has client_lr.* got 'clint_lr'"),
        ({"grid": {"algoritm": {"q": [1.0]}}}, "a sweep has algorithm, got 'algoritm'"),
        ({"grid": {"rounds": 3}}, "rounds of grid must be a list of values, got 3"),
        ({"grid": {"rounds, x0": [[1, 2, 3]]}}, "must be lists of 2 values each"),
        ({"grid": {"rounds": [1], "x0, rounds": [[1, 2]]}}, "given once, got 'rounds' twice"),
        ({"grid": {"rounds.q": [1]}}, "axis must name an argument of a part"),
        ({"grid": [1]}, "grid must be a table"),
        ({"random": {"x0": [1]}}, "random must have count"),
        ({"random": {"count": 5}}, "random must say what is drawn"),
        ({"random": {"count": True, "x0": [1]}}, "count of random must be"),
        ({"random": {"count": 10**8, "x0": [1]}}, "the number of cells must be at most"),
        ({"random": {"count": 10**9, "x0": [1]}}, "count of random must be a whole number of at"),
        ({"seed": "a"}, "seed must be"),
        ({"grid": {"rounds": [1], "seed": [0, -1]}}, "seed must be"),
        ({"random": {"count": 1, "replicas": {"from": 1.5, "to": 2}}}, "replicas must be"),
        ({"random": {"count": 1, "x0": {"from": 2, "to": 1}}}, "from the smaller number"),
        ({"random": {"count": 1, "x0": {"from": 0, "to": 1, "scale": "log"}}}, "must be positive"),
        ({"random": {"count": 1, "x0": {"from": 0, "to": 1, "scale": "lag"}}}, "linear or log"),
        ({"random": {"count": 1, "x0": {"from": 0, "too": 1}}}, "has to, got 'too'"),
        ({"random": {"count": 1, "x0": {"from": "a", "to": 1}}}, "from a number"),
    ],
)
def test_what_is_refused(changed, message) -> None:
    document = small(**changed)
    with pytest.raises(ValueError, match=message):
        design_of(document)


def test_a_file_is_read_and_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    with pytest.raises(ValueError, match="file of a sweep must exist"):
        read_sweep(path)
    path.write_text(as_toml())
    assert read_sweep(path) == design_of(small())
    for text in ("x = [", as_toml(statements=3), "day = 2026-11-22\n" + as_toml()):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"sweep\.toml: "):
            read_sweep(path)


def test_ends_of_a_range_are_kept_to() -> None:
    whole = DrawnRange(("a",), 1, 3)
    assert [whole.at(share) for share in (0.0, 0.34, 0.67, 1 - 1e-16)] == [(1,), (2,), (3,), (3,)]
    wide = DrawnRange(("a",), 1e-300, 1e300, logarithmic=True)
    assert wide.at(0.0)[0] == pytest.approx(1e-300)
    assert wide.at(0.5)[0] == pytest.approx(1.0)
    assert 1e-300 <= wide.at(0.0)[0] <= wide.at(1 - 1e-16)[0] <= 1e300
