"""What is printed of a theorem on measured runs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fltheory.engines.measured_run import Bracket
from fltheory.evidence.verdict import HypothesisCheck
from fltheory.report.terminal.training_report import hardware_text
from fltheory.verify import Outcome
from fltheory.verify.on_hardware import HardwareVerdict, MeasuredCell

RUN = SimpleNamespace(
    problem=SimpleNamespace(
        n_clients=7,
        L=3.25,
        mu=0.5,
        F_star=1.5,
        optimum=SimpleNamespace(distance=2e-9, gradient_norm=1e-9),
    ),
    measured=SimpleNamespace(
        trajectory=SimpleNamespace(replicas=12),
        radius=0.75,
        smoothness=Bracket(1.25, 3.0),
        sigma=Bracket(0.1, 0.2),
        server_sigma=Bracket(0.3, 0.4),
        dissimilarity=Bracket(0.5, 0.6),
    ),
    rounds=9,
    data_name="MNIST",
)


def verdict(outcome=Outcome.HOLDS, holds=True, premise=True):
    check = HypothesisCheck("few client rounds", "q <= 1", "(81)", holds, -0.5, 3)
    item = SimpleNamespace(name="unbiased", holds=premise, detail="bias up to 2")
    bound = Bracket(2.0, 3.0)
    return HardwareVerdict("sa-fl/5", "derived", outcome, 1.0, 0.1, bound, 4.0, (check,), (item,))


def text(*verdicts):
    return hardware_text(MeasuredCell("a row, a column", RUN, verdicts))


def test_run_and_bound_beside_the_measured_error():
    assert text(verdict()).splitlines() == [
        "a row, a column: MNIST, 7 clients, 12 runs of 9 rounds",
        "  L = 3.25 and mu = 0.5 for every client, both tight everywhere",
        "  x* within 2e-09 (gradient at most 1e-09), F* = 1.5",
        "  models stay within 0.75 of x*; there, from the largest value seen to a "
        "guaranteed bound:",
        "    L 1.25 .. 3, mu 0.5",
        "    sigma 0.1 .. 0.2, sigma_s 0.3 .. 0.4, sigma_G 0.5 .. 0.6",
        "  sa-fl/5 derived: HOLDS",
        "    measured 1 +- 0.1, bound 2 .. 3, computed with L = 4",
        "    met: few client rounds, unbiased",
    ]


@pytest.mark.parametrize(
    ("shown", "lines"),
    [
        (
            verdict(Outcome.INAPPLICABLE, holds=False, premise=False),
            [
                "    met: none",
                "    not met: few client rounds: margin -0.5 in round 3",
                "    not met: unbiased: bias up to 2",
            ],
        ),
        (
            verdict(Outcome.UNDECIDED, holds=None),
            ["    met: unbiased", "    too few runs to decide: few client rounds"],
        ),
        (
            verdict(Outcome.UNDECIDED),
            [
                "    met: few client rounds, unbiased",
                "    the intervals of the constants leave it open",
            ],
        ),
    ],
)
def test_what_did_not_hold(shown, lines):
    assert text(shown).splitlines()[8:] == lines
