"""Certificates: what is written, what passes, and the first field at which one is refused."""

from __future__ import annotations

import ast
import json
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import sympy as sp

from fltheory import theorems
from fltheory.algorithms import (
    CAFed,
    F3ast,
    FedAR,
    FedAvg,
    FedNova,
    FedProx,
    FedVarp,
    Harmonic,
    LocalSgd,
)
from fltheory.engines import Setting
from fltheory.grammar.symbols import symbol
from fltheory.grammar.units import PURE
from fltheory.participation import (
    Bernoulli,
    Cyclic,
    FiniteChain,
    MarkovOnOff,
    Trace,
    UniformSubset,
    WaitingSubset,
)
from fltheory.problems import LogCoshProblem, QuadraticProblem
from fltheory.theorems import (
    BoundedQuantity,
    Hypothesis,
    PointClaim,
    PointQuantity,
    RoundRange,
    Theorem,
)
from fltheory.verify import certificate, read_certificate
from fltheory.verify.certificates import certificate_checker
from fltheory.verify.certificates.certificate import (
    setting_from_text,
    setting_text,
    statement_text,
    write_certificate,
)
from fltheory.verify.certificates.certificate_checker import CertificateError, check_certificate
from tests.verify.certificate_cases import METHODS, PARTICIPATION, setting
from tests.verify.witnesses import GROUPS, ONE_ROUND

THEOREM = theorems.get("sa-fl/5")


@pytest.fixture
def document() -> dict:
    return certificate(THEOREM, ONE_ROUND)


def stored(tmp_path: Path, document: object) -> Path:
    path = tmp_path / "witness.json"
    path.write_text(json.dumps(document))
    return path


def test_a_true_certificate_passes(tmp_path: Path, document: dict) -> None:
    """The bound is 0, the truth 1/10: the two numbers are about a third and two thirds of it."""
    path = tmp_path / "deep" / "witness.json"
    write_certificate(path, document)
    certified = read_certificate(path)
    assert (certified.truth, certified.bound) == (Fraction(67, 1000), Fraction(33, 1000))
    assert certified.theorem.id == "sa-fl/5"
    assert certified.setting.algorithm == ONE_ROUND.setting().algorithm
    text = "\n".join(certified.lines)
    for part in (
        "Safari(q = 1/10, client_lr = 1/500, assist_lr = 1/1000, local_steps = 1)",
        "hessians = (((1000)))",
        "UniformSubset(size = 1, excluded = ())",
        "x0 = (-1), 1 rounds",
    ):
        assert part in text


ALWAYS_THERE = {
    "name": "FiniteChain", "transition": [["1/2", "1/2"], ["1/4", "3/4"]], "sets": [[0], [0]],
    "start": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("version",), 2, "version: must be 3"),
        (("truth",), "1/9", "truth: must be at most the quantity"),
        (("bound",), "-1", "bound: must be at least the statement's"),
        (("setting", "algorithm", "q"), "9/10", "conditions.few client rounds: not met"),
        (("setting", "rounds"), "1", "setting.rounds: must be a whole number, got '1'"),
        (("setting",), None, "setting: must be an object with fields, got None"),
        (("statement", "bound"), "-1", "statement.bound: differs from the registered statement's"),
        (("statement", "symbols", "L"), "mu", "statement.symbols: differs from the registered"),
        (("statement", "conditions"), {}, "statement.conditions: differs from the registered"),
        (("statement",), None, "statement: the field is missing"),
        (("reading",), "derived", "statement.conditions: differs from the registered"),
        (("reading",), "mine", "reading of sa-fl/5 must be one of"),
        (("theorem",), "sa-fl/6", "must be a registered theorem"),
        (("theorem",), "sa-fl/corollary-2", "has no certificates: no single run can break"),
        (("theorem",), "fedar/weight", "has no certificates: a direction compares runs"),
        (("theorem",), "pac/1-sum", "has no certificates: it is about samples"),
        (("theorem",), "pac/2", "has no certificates: no single number of samples"),
        (("theorem",), "ca-fed/2", "differs from the registered statement's"),
        (
            ("setting", "participation"),
            ALWAYS_THERE,
            "participation must be independent across rou",
        ),
    ],
)
def test_an_edited_certificate_is_refused_with_its_first_wrong_field(
    tmp_path: Path, document: dict, place: tuple[str, ...], value: object, message: str
) -> None:
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(ValueError, match=message):
        read_certificate(stored(tmp_path, document))


def test_what_is_not_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "witness.json"
    path.write_text("{")
    with pytest.raises(CertificateError, match="not JSON"):
        read_certificate(path)
    path.write_bytes(b"\xff")
    with pytest.raises(CertificateError, match="not JSON"):
        read_certificate(path)
    path.write_text(" " * 1_000_001)
    with pytest.raises(ValueError, match="must have at most 1000000 bytes"):
        read_certificate(path)
    with pytest.raises(ValueError, match="certificate must be an existing file"):
        read_certificate(tmp_path / "nowhere.json")


def test_nothing_is_certified_that_does_not_refute() -> None:
    with pytest.raises(ValueError, match=r"conditions\.coupled step sizes: not met|must violate"):
        certificate(THEOREM, GROUPS)
    landing = replace(ONE_ROUND, q=Fraction(1, 10), x0=(Fraction(0),))
    with pytest.raises(ValueError, match=r"not met|must violate the bound"):
        certificate(THEOREM, landing)
    small = replace(ONE_ROUND, client_lr=Fraction(1, 50000), assist_lr=Fraction(1, 100000))
    with pytest.raises(ValueError, match=r"not met|must violate the bound"):
        certificate(THEOREM, small)


@pytest.mark.parametrize("participation", PARTICIPATION)
@pytest.mark.parametrize("name", METHODS)
def test_settings_come_back_as_they_were(name: str, participation: str) -> None:
    """But for thirds, which no float is: what is written again is what the float stands for."""
    text = setting(name, participation)
    again = setting_text(setting_from_text(text))
    assert setting_text(setting_from_text(again)) == again
    assert numbers_in(again) == pytest.approx(numbers_in(text), rel=1e-12)


def numbers_in(value: object) -> list[float]:
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in numbers_in(value[key])]
    if isinstance(value, list):
        return [number for item in value for number in numbers_in(item)]
    if value is None or (isinstance(value, str) and not value[-1].isdigit()):
        return []
    return [float(Fraction(value))]


CLIENTS = QuadraticProblem([[1.0]], [[1.0], [-1.0]], sigma=0.5)
D = symbol("D", "distance", number="sqrt(squared_distance)", nonnegative=True)
G = symbol("G", number=lambda setting: 1.0, nonnegative=True)
MINE = Theorem(
    id="mine/distance",
    reading="printed",
    title="A bound of my own",
    source="here",
    quantity=BoundedQuantity("squared_distance", "last", RoundRange(0, 0), "d", "d"),
    bound=D**2 / 4,
    hypotheses=(Hypothesis("finite", sp.Lt(D, sp.oo, evaluate=False), "here"),),
)


@pytest.mark.parametrize(
    "participation",
    [
        UniformSubset(2, 1),
        MarkovOnOff([0.5, 0.25], [0.5, 0.0]),
        MarkovOnOff([0.5, 0.25], [0.5, 0.0], start=[1, 0]),
        Bernoulli([0.5, 1 / 3]),
        FiniteChain([[2 / 3, 1 / 3], [0.5, 0.5]], [[1, 0], [1, 1]], start=1),
        Cyclic([1, 2], [0, 1]),
        WaitingSubset([0.5, 1.0], 2),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "algorithm",
    [
        FedAvg(0.1, 2),
        FedVarp(0.1, 2),
        FedProx(0.1, 2, 0.3),
        FedNova(0.1, (2, 1)),
        F3ast([1 / 3, 2 / 3], 1, 0.1, 2),
        LocalSgd(Harmonic(0.1), 2, (1 / 3, 2 / 3)),
    ],
)
def test_a_theorem_of_ones_own_is_certified(algorithm, participation) -> None:
    document = certificate(MINE, Setting(algorithm, CLIENTS, participation, 2, [2.0]))
    assert document["statement"]["symbols"] == {"D": "sqrt(squared_distance)"}
    assert Fraction(document["truth"]) > Fraction(document["bound"]) >= 1
    again = setting_from_text(document["setting"])
    assert setting_text(again) == document["setting"]


@pytest.mark.parametrize("other", [{"sampled": "average"}, {"first_average": 1}])
def test_local_sgd_that_the_checker_does_not_know_is_refused(other) -> None:
    method = LocalSgd(Harmonic(0.1), 2, (1 / 3, 2 / 3), **other)
    with pytest.raises(ValueError, match="sampled = 'steps' and first_average = local_steps"):
        certificate(MINE, Setting(method, CLIENTS, UniformSubset(2, 1), 2, [2.0]))


def test_what_cannot_be_certified_says_why() -> None:
    run = Setting(FedAvg(0.1, 2), CLIENTS, UniformSubset(2, 1), 2, [2.0])
    unknown = replace(MINE, bound=D**2 / 4 + G - G**2)
    with pytest.raises(ValueError, match="the value of G must be a formula in numbers"):
        certificate(unknown, run)
    read = symbol("D", number="squared_distance + 1 < 2")
    misread = replace(MINE, read_as={D: read})
    with pytest.raises(ValueError, match="is not a formula in fractions"):
        certificate(misread, run)
    claim = theorems.get("ca-fed/appendix-d")
    assert isinstance(claim, PointClaim)
    own = replace(claim, quantity=PointQuantity(lambda s: (3.0, 0.0), "sigma", PURE))
    with pytest.raises(ValueError, match="its quantity, sigma, is not a number"):
        statement_text(own)
    with pytest.raises(
        ValueError, match=r"must be of a kind that certificates support, got Trace$"
    ):
        certificate(MINE, replace_participation(run, Trace([[1, 0], [0, 1]])))
    bowl = LogCoshProblem([[0.0]], curvature=1.0, width=1.0, x_star=[0.0])
    other = Setting(FedAvg(0.1, 1), bowl, UniformSubset(1, 1), 1, [0.0])
    with pytest.raises(
        ValueError, match=r"problem must be .* to be certified, got LogCoshProblem$"
    ):
        setting_text(other)
    adaptive = CAFed([0.5, 0.5], 0.1, 1)
    with pytest.raises(ValueError, match=r"must be one of FedAvg, .* got 'CAFed'|not .*CAFed"):
        check_certificate(
            {
                **certificate(MINE, run),
                "setting": setting_text(Setting(adaptive, CLIENTS, UniformSubset(2, 1), 2, [2.0])),
            }
        )
    falling = FedAR(0.1, 1, cutoff=lambda t: t)
    with pytest.raises(ValueError, match="cutoff must be a number"):
        setting_text(Setting(falling, CLIENTS, UniformSubset(2, 1), 2, [2.0]))


def replace_participation(setting: Setting, participation: Trace) -> Setting:
    return Setting(setting.algorithm, setting.problem, participation, setting.rounds, setting.x0)


def test_a_setting_that_barely_refutes_is_not_certified() -> None:
    run = Setting(FedAvg(0.1, 2), CLIENTS, UniformSubset(2, 1), 2, [2.0])
    with pytest.raises(ValueError, match="must violate the bound by more than rounding"):
        certificate(replace(MINE, bound=D**2 * 10), run)


def test_the_checker_shares_no_code() -> None:
    source = Path(certificate_checker.__file__).read_text()
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            ["." * node.level + (node.module or "")]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    }
    assert imported <= sys.stdlib_module_names
