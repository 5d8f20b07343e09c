"""Experiment files: cells from rows and columns, and what is answered to faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip(
    "torch", reason="torch is an optional extra: pip install 'fltheory[torch]'"
)
from docs.scripts.ca_fed import logged_points  # noqa: E402
from fltheory.hardware.training import read_experiment  # noqa: E402
from fltheory.hardware.training.experiment import experiment  # noqa: E402
from tests.hardware.training.small_experiment import document  # noqa: E402

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "experiments").glob("*.toml"))


def test_cells() -> None:
    table = experiment(document())
    assert table.columns == ("p = 5", "p = 10")
    (_, (first, second)), (label, (_, less)) = table.rows
    assert label == "SAFARI"
    assert first.settings.table["partition"]["classes_per_client"] == 5
    assert second.settings.table["partition"]["classes_per_client"] == 10
    assert [first.paper, second.paper, less.paper] == ["50", "60.5 ± 1.0", "-"]
    assert first.baseline is None
    assert less.settings.method.name == "SAFARI"
    assert less.baseline.key(0) == second.settings.key(0)
    assert len(table.runs) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title": ""}, "title must be a non-empty string, got ''"),
        ({"seeds": []}, r"seeds must be a list with entries, got \[\]"),
        ({"seeds": 3}, "seeds must be a list with entries, got 3"),
        ({"seeds": [0, 0]}, "seeds must differ"),
        ({"seeds": [-1]}, "seeds must be a whole number of at least 0, got -1"),
        ({"figure": "worst"}, "figure must be one of 'last', 'best'"),
        ({"columns": ["p"]}, r"columns\[1\] must be a table, got 'p'"),
        ({"columns": [{"set": {}}]}, r"columns\[1\] must have label, got set"),
        ({"columns": [{"label": "x", "figure": "mean"}]}, r"columns\[1\].figure must be one of"),
        (
            {"columns": [{"label": "x", "rounds": []}]},
            r"columns\[1\].rounds must be a list of whole",
        ),
        (
            {"columns": [{"label": "x", "rounds": [2, 1]}]},
            r"columns\[1\].rounds must "
            r"be increasing",
        ),
        ({"columns": [{"label": "x", "rounds": [-1]}]}, r"columns\[1\].rounds must be a whole"),
        (
            {"columns": [{"label": "x", "rounds": [0, 7]}], "rows": [{"label": "y"}]},
            r"rounds must be among those .* every 1 of 6, got 7 \(in column 'x'\)",
        ),
        ({"rows": [{"label": "x", "papers": []}]}, r"rows\[1\] has paper, got 'papers'"),
        ({"rows": [{"label": "x", "paper": [1]}]}, r"rows\[1\].paper must have 2 entries, got 1"),
        ({"rows": [{"label": "x", "paper": [True, 1]}]}, r"rows\[1\].paper must hold numbers"),
        ({"titel": "x"}, "a run has data, model, .*, got 'titel'"),
        (
            {"rows": [{"label": "x", "set": {"training": {"rounds": -1}}}]},
            r"training.rounds must be a whole number.*\(in rows\[1\], column 'p = 5'\)",
        ),
    ],
)
def test_faults_are_named_in_a_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="^" + message) as error:
        experiment(document(**changes))
    assert "\n" not in str(error.value)


def test_missing_heading() -> None:
    lacking = {key: value for key, value in document().items() if key != "seeds"}
    with pytest.raises(ValueError, match=r"^the file must have seeds, got title"):
        experiment(lacking)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    with pytest.raises(ValueError, match="file must be an existing file, got"):
        read_experiment(file)
    file.write_text("title = ")
    with pytest.raises(ValueError, match="must be TOML, got"):
        read_experiment(file)
    file.write_text("title = 'x'")
    with pytest.raises(
        ValueError, match=r"x.toml: the file must have source, seeds, .*, got title"
    ):
        read_experiment(file)


def test_changes() -> None:
    file = ROOT / "experiments" / "digits.toml"
    changed = read_experiment(file, ["training.rounds=3", "seeds=[7]"])
    assert changed.seeds == (7,)
    assert {run.training.rounds for run in changed.runs} == {3}
    with pytest.raises(ValueError, match="set must be key=value in TOML, got 'rounds'"):
        read_experiment(file, ["rounds"])
    with pytest.raises(ValueError, match=r"digits.toml: training has rounds, got 'round'"):
        read_experiment(file, ["training.round=3"])


def test_a_column_may_count_some_rounds_alone() -> None:
    columns = [{"label": "all"}, {"label": "early", "rounds": [0, 2]}]
    ((_, (whole, early)), *_) = experiment(document(columns=columns)).rows
    assert (whole.rounds, early.rounds) == (None, (0, 2))


def test_the_points_that_ca_fed_s_script_logs() -> None:
    (_, cells), *_ = read_experiment(ROOT / "experiments" / "ca-fed-mnist.toml").rows
    logged = tuple(logged_points(150))
    assert [cell.rounds for cell in cells] == [None, None, logged, logged, None]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_file_of_the_project_is_sound(file: Path) -> None:
    assert read_experiment(file).runs
