"""Advice in words: sentences that say what the figures say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fltheory.advice import Advice, advise
from fltheory.logs import AvailabilityLog
from fltheory.report.terminal.advice_report import advice_table, assumptions, sentences


@pytest.fixture(scope="module")
def found() -> Advice:
    masks = np.random.default_rng(1).random((60, 4)) < [0.9, 0.5, 0.1, 0]
    return advise(AvailabilityLog.from_masks(masks))


def test_the_first_names_the_best_and_what_to_use_without_its_needs(found: Advice) -> None:
    use = sentences(found)[0]
    assert use.startswith(f"Use {found.best.called}")
    assert found.fallback.called in use
    assert f"{found.best.error:.2g}" in use


def test_the_second_says_how_much_comes_from_rare_clients(found: Advice) -> None:
    fedavg = sentences(found)[1]
    assert f"at worst {found.named('fedavg').log.at_worst:.2g}" in fedavg
    of_rare, of_never = found.fedavg_parts
    assert f"{of_rare:.2g} comes from the 1 client online less than" in fedavg
    assert f"{of_never:.2g} from clients never seen" in fedavg
    assert of_rare + of_never <= found.named("fedavg").log.at_worst


def test_the_third_says_who_never_appears(found: Advice) -> None:
    assert sentences(found)[2].startswith("1 client never appears (client 3; 0.25 of the target)")


def test_nothing_is_lost_where_everybody_is_there() -> None:
    _, fedavg, never = sentences(advise(AvailabilityLog.from_masks(np.ones((20, 2)))))
    assert fedavg.startswith("Plain FedAvg has no bias here")
    assert never.startswith("Every client that the log names")
    assert "--sizes" in never


def test_a_row_an_algorithm(found: Advice) -> None:
    assert advice_table(found).row_count == len(found.algorithms)


def test_rounds_that_the_log_does_not_have_are_not_called_never(found: Advice) -> None:
    *_, column = advice_table(found).columns
    for one, cell in zip(found.algorithms, column.cells, strict=True):
        assert cell == ("> 60" if one.rounds is None else str(one.rounds))
    assert any(one.rounds is None for one in found.algorithms)


def test_it_is_said_what_is_assumed_and_what_if_it_is_wrong(found: Advice) -> None:
    text = assumptions(found, None)
    assert "dissimilarity 0.5, noise 1, condition number 1" in text
    assert "if unsure:" in text
    # Each pair at which another is best, and no other, as the errors' sums say.
    training = found.population.training
    pairs = {
        (f"{far * training.dissimilarity:.2g}", f"{noisy * training.noise:.2g}")
        for far in (0.1, 1, 10)
        for noisy in (0.1, 1, 10)
        if found.best_if(far**0.5, noisy) is not found.best
    }
    assert pairs
    assert set(re.findall(r"\((\S+), (\S+)\)[,;]", text)) == pairs


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ((0.09, 0.12), "at worst 0.11 (0.09 to 0.12 at 95%)"),
        ((0.1049, 0.1062), "at worst 0.1052 (0.1049 to 0.1062 at 95%)"),
        ((0.10521, 0.10522), "at worst 0.1052. "),
        ((0.10521, 0.10562), "at worst 0.1052 (0.1052 to 0.1056 at 95%)"),
    ],
)
def test_an_interval_has_digits_that_tell_its_ends_from_the_error(
    found: Advice, monkeypatch: pytest.MonkeyPatch, interval, said: str
) -> None:
    best = type(found.best)
    monkeypatch.setattr(best, "error", property(lambda self: 0.105213))
    monkeypatch.setattr(best, "interval", property(lambda self: interval))
    assert said in sentences(found)[0] + " "
