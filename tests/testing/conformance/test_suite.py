from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from fltheory.testing import check_algorithm, run_of
from fltheory.testing.conformance.laws import LAWS
from fltheory.testing.conformance.own_runs import Slip
from fltheory.testing.conformance.report import ConformanceError, LawOutcome
from fltheory.testing.conformance.specifications import SPECIFICATIONS
from fltheory.testing.conformance.suite import laws_of
from tests.drawn import a_tenth
from tests.testing.conformance.wrong_runs import run_with_slip
from tests.testing.gallery import GALLERY


@pytest.mark.parametrize("name", a_tenth(SPECIFICATIONS))
def test_the_package_s_own_algorithms_conform(name: str) -> None:
    report = check_algorithm(run_of(name), name, seed=3)
    assert report.conforms
    assert [one.law for one in report.findings] == [law.name for law in laws_of(name)]
    assert all(one.outcome is LawOutcome.PASSED for one in report.findings)


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_no_formula_is_asked_of_an_algorithm_that_it_is_not_about(name: str) -> None:
    """FedAWE weighs by age, so that who is there does not tell how clients count."""
    check_algorithm(run_of(name), name, laws=["weights"])


@pytest.mark.parametrize("sign", [0, -1])
def test_a_model_that_stays_or_moves_backwards_is_not_told_to_be_clipped(sign: int) -> None:
    def run(x0: Any, *given: Any, **steps: Any) -> Any:
        models = run_of("fedavg")(x0, *given, **steps)
        return x0 + sign * (models - x0)

    report = check_algorithm(run, "fedavg", laws=["by-hand"], raises=False)
    assert not report.conforms
    assert not [hint for hint in report.hints if "clipped" in hint]


def test_the_error_says_law_trace_models_and_cause() -> None:
    wrong = run_with_slip("scaffold", "is divided by the number present, |S|")
    with pytest.raises(ConformanceError) as caught:
        check_algorithm(wrong, "scaffold", stop_at_first=True)
    assert isinstance(caught.value, AssertionError)
    (failure,) = caught.value.report.failures
    assert failure.law == "by-hand"
    assert failure.round == 3
    assert failure.expected == pytest.approx((4.28125,))
    assert failure.actual == pytest.approx((4.0,))
    assert "divided by the number present, |S|, not by N" in failure.causes[0]
    for text in ("round 2: client 0 present", "expected x = (4.28125)", "actual x = (4)"):
        assert text in str(caught.value)


def test_the_smallest_trace_is_shown() -> None:
    wrong = run_with_slip("scaffold", "is divided by the number present, |S|")
    report = check_algorithm(wrong, "scaffold", laws=["bursty-participation"], raises=False)
    message = report.failures[0].message
    assert "N = 2 clients, d = 1, 2 rounds" in message
    assert "local_steps=1" in message


def test_a_declared_failure_is_expected_and_its_passing_reported() -> None:
    wrong = run_with_slip("fedavg", "server_lr is not used")
    laws = ("starts-at-x0", "by-hand", "server-lr")
    report = check_algorithm(wrong, "fedavg", laws=laws, raises=False)
    failing = [one.law for one in report.failures]
    assert "server-lr" in failing
    assert "starts-at-x0" not in failing
    declared = dict.fromkeys(failing, "no server step size")
    report = check_algorithm(wrong, "fedavg", laws=laws, expected=declared)
    assert report.conforms
    assert "no server step size" in report.text
    expected = {**declared, "starts-at-x0": "never"}
    with pytest.raises(ConformanceError, match="passed, but its failure was declared"):
        check_algorithm(wrong, "fedavg", laws=laws, expected=expected)


@pytest.mark.usefixtures("few_telling_cases")
def test_what_is_fixed_is_not_varied() -> None:
    only_option_1 = run_with_slip("scaffold", "")

    def run(*args: object, option: int, client_lr: float, **given: object) -> object:
        assert (option, client_lr) == (1, 0.01)
        return only_option_1(*args, option=option, client_lr=client_lr, **given)

    assert check_algorithm(run, "scaffold", option=1, client_lr=0.01).conforms


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "fedsgd"}, "name must be one of fedavg"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"rtol": 0.0}, "rtol must be"),
        ({"laws": ["no-such"]}, "laws of scaffold must be among returns-models"),
        ({"expected": {"no-such": "why"}}, "laws of scaffold must be among"),
        ({"rtol": 1e-15}, r"rtol must be from 1e-14 \(below it even correct implementations"),
        ({"rtol": 1.0}, "rtol must be from 1e-14"),
        ({"laws": []}, r"laws must name at least one law, got \[\]"),
        ({"laws": "by-hand"}, "laws must be a list of names, got the string 'by-hand'"),
        ({"expected": ["by-hand"]}, r"expected must be a mapping of str to str, got \['by-hand'\]"),
        ({"option": 3}, "option must be one of 1, 2, got 3"),
        ({"option": None}, "option must have a value, got None"),
        ({"local_steps": 2.5}, "local_steps must be a whole number of at least 1, got 2.5"),
        ({"local_steps": (2, 3)}, "local_steps must be a whole number"),
        (
            {"server_lr": 1e6},
            "must keep models finite: the package's own models overflow with client_lr",
        ),
        ({"name": "ca-fed", "prior": 1}, "prior must be two numbers, got 1"),
        (
            {"name": "ca-fed", "availability": (0.5, 0.5), "correlation": None},
            "availability and correlation must both be given or both be left out",
        ),
        (
            {"name": "adafed", "target_weights": [0.5, 0.5], "availability": [0.5, 0.6, 0.7]},
            "for the same number of clients, got target_weights of 2, availability of 3",
        ),
        (
            {"name": "fedprox", "proximal": 1e3, "client_lr": 0.1},
            "client_lr must be at most 0.0013 for local steps to be stable with the other fixed",
        ),
        ({"expected": {"by-hand": ""}}, r"expected\['by-hand'\] must be a non-empty string"),
        ({"cutoff": 3}, "options of scaffold must be among option"),
        ({"run": 3}, "run must be callable"),
    ],
)
def test_bad_requests_are_refused(given: dict[str, object], words: str) -> None:
    name = given.get("name", "scaffold")
    known = name if name in SPECIFICATIONS else "scaffold"
    arguments = {"run": run_of(known), "name": name, **given}  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=words):
        check_algorithm(**arguments)  # type: ignore[arg-type]


def test_single_precision_passes_with_a_tolerance_of_its_own() -> None:
    single = run_with_slip("fedavg", "rounded to single precision")
    assert not check_algorithm(single, "fedavg", raises=False, stop_at_first=True).conforms
    assert check_algorithm(single, "fedavg", rtol=1e-4).conforms


def test_laws_are_listed_once_and_cheap_ones_come_first() -> None:
    assert list(LAWS)[:2] == ["returns-models", "starts-at-x0"]
    assert "no-data" in [law.name for law in laws_of("fedavg")]
    assert "no-data" not in [law.name for law in laws_of("scaffold")]


def _of_five_clients(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
    kept = trace.copy()
    kept[:, 5:] = False
    return run_of("scaffold")(x0, clients, kept, **given)


def _of_small_server_steps(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
    small = {**given, "server_lr": min(given["server_lr"], 1.5)}
    return run_of("scaffold")(x0, clients, trace, **small)


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("run", [_of_five_clients, _of_small_server_steps])
def test_what_shows_only_at_size_is_seen(run: Any) -> None:
    report = check_algorithm(run, "scaffold", raises=False)
    failing = {finding.law for finding in report.failures}
    assert failing - {"many-clients", "usual-slips"} == {"larger"}


@pytest.mark.usefixtures("few_telling_cases")
@pytest.mark.parametrize("size", a_tenth([2, 4], of=2))
def test_how_many_are_chosen_may_be_fixed(size: int) -> None:
    assert check_algorithm(run_of("f3ast"), "f3ast", size=size).conforms


def test_another_weighting_is_refused() -> None:
    with pytest.raises(ValueError, match="weighting must be one of 'n_samples', 'uniform', got"):
        check_algorithm(run_of("fedavg"), "fedavg", weighting="sample")


def test_what_a_call_did_wrong_has_no_cause_besides() -> None:
    def run(*given: Any, **named: Any) -> Any:
        raise KeyError("zz")

    report = check_algorithm(run, "scaffold", raises=False)
    assert not any(finding.causes for finding in report.findings)


@pytest.mark.parametrize("kind", [tuple, list, np.array])
def test_numbers_for_each_client_may_be_any_sequence(kind: Any) -> None:
    seen = set()

    def run(*given: Any, availability: Any, **named: Any) -> Any:
        seen.add((type(availability), availability))
        return run_of("fedavg-is")(*given, availability=availability, **named)

    laws = ["uneven-participation", "rotation", "long-run"]
    chances = (0.5, 0.6, 0.75)
    report = check_algorithm(run, "fedavg-is", availability=kind(chances), laws=laws)
    assert report.conforms
    assert seen == {(tuple, chances)}


@pytest.mark.usefixtures("few_telling_cases")
def test_one_number_is_everybody_s() -> None:
    assert check_algorithm(run_of("fedavg-is"), "fedavg-is", availability=0.5).conforms
    assert check_algorithm(run_of("fednova"), "fednova", local_steps=3).conforms


@pytest.mark.parametrize("fixed", [(0.5, 0.6, 0.7), None])
def test_ca_fed_with_availability_alone_gets_correlation_or_neither(fixed: Any) -> None:
    seen = set()

    def run(*given: Any, **named: Any) -> Any:
        seen.add((named.get("availability"), named.get("correlation") is None))
        return run_of("ca-fed")(*given, **named)

    check_algorithm(run, "ca-fed", availability=fixed, laws=["bursty-participation"])
    assert seen == {(fixed, fixed is None)}


@pytest.mark.usefixtures("few_telling_cases")
def test_a_stiff_proximal_term_gets_steps_that_are_stable() -> None:
    assert check_algorithm(run_of("fedprox"), "fedprox", proximal=1e3).conforms
    assert check_algorithm(run_of("fedprox"), "fedprox", client_lr=5.0).conforms


@pytest.mark.usefixtures("few_telling_cases")
@pytest.mark.parametrize(
    "fixed", a_tenth([{"smoothing": 0.0}, {"target_weights": (0.25,) * 4}], of=2)
)
def test_whom_f3ast_takes_of_equals_is_no_fault(fixed: dict[str, Any]) -> None:
    run = partial(GALLERY["f3ast"].run, last_of_equals=True)
    assert check_algorithm(run, "f3ast", **fixed).conforms


@pytest.mark.usefixtures("few_telling_cases", "undiagnosed")
@pytest.mark.parametrize("name", ["fedau", "fedar"])
def test_a_fixed_cutoff_is_reached(name: str) -> None:
    def run(*given: Any, cutoff: float, **named: Any) -> Any:
        return run_of(name)(*given, cutoff=cutoff + 1, **named)

    report = check_algorithm(run, name, cutoff=150, raises=False)
    assert [finding.law for finding in report.failures] == ["long-absence", "long-away"]


def test_a_cutoff_out_of_reach_is_said_to_be() -> None:
    report = check_algorithm(run_of("fedau"), "fedau", cutoff=10**6, laws=["long-absence"])
    assert "a cut-off of 1e+06 is not reached" in report.text


def test_what_numpy_does_at_the_caller_s_changes_nothing() -> None:
    def run(*given: Any, **named: Any) -> Any:
        np.float64(1e-200) * np.float64(1e-200)
        return run_of("scaffold")(*given, **named)

    with np.errstate(all="raise"):
        assert check_algorithm(run, "scaffold", seed=1).conforms
        assert np.geterr()["under"] == "raise"


def test_where_no_law_applies_nothing_conforms() -> None:
    report = check_algorithm(run_of("f3ast"), "f3ast", size=1, laws=["limit-full"], raises=False)
    assert not report.conforms
    assert "f3ast: nothing is checked: 1 does not apply" in report.text


def test_where_no_slip_fits_no_cause_is_named() -> None:
    def run(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
        return run_of("scaffold")(x0, clients, trace, **given) * 1.001 - 0.001 * x0

    report = check_algorithm(run, "scaffold", laws=["weights"], raises=False)
    assert report.findings[0].causes == ()
    assert "no usual mistake reproduces your models on every case" in report.text
    assert "likely cause" not in report.text


def _single(name: str) -> Any:
    return lambda *given, **named: run_of(name)(*given, **named).astype(np.float32)


@pytest.mark.parametrize("name", ["scaffold", "fedvarp", "mifa"])
def test_every_law_honours_rtol(name: str) -> None:
    laws = ["deterministic", "memory-adds-up", "limit-full", "long-run", "long-away", "translation"]
    assert check_algorithm(_single(name), name, rtol=1e-4, laws=laws).conforms


def _first_ten(name: str) -> Any:
    def run(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
        return run_of(name)(x0, clients, trace & (np.cumsum(trace, axis=1) <= 10), **given)

    return run


def _ages_to_three(*given: Any, growth: float, largest: float, **named: Any) -> Any:
    return run_of("fedar")(*given, growth=growth, largest=min(largest, 1 + 3 * growth), **named)


def _waits_ten_rounds(x0: Any, clients: Any, trace: Any, *, start: str, **given: Any) -> Any:
    """MIFA that waits for all, but for ten rounds at most."""
    late = start == "wait" and not trace[:10].any(axis=0).all() and len(trace) > 10
    return run_of("mifa")(x0, clients, trace, start="zero" if late else start, **given)


def _weights_up_to_five(x0: Any, clients: Any, trace: Any, **given: Any) -> Any:
    slip = Slip("", weights=lambda play, weights: np.minimum(weights, 5.0))
    return run_with_slip("f3ast", slip)(x0, clients, trace, **given)


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize(
    ("name", "run"),
    [
        *((name, _first_ten(name)) for name in SPECIFICATIONS),
        ("fedar", _ages_to_three),
        ("mifa", _waits_ten_rounds),
        ("f3ast", _weights_up_to_five),
    ],
)
def test_caps_that_no_paper_has_are_seen(name: str, run: Any) -> None:
    laws = ["many-clients", "long-away"]
    assert not check_algorithm(run, name, laws=laws, raises=False, stop_at_first=True).conforms


def test_a_report_prints_as_text() -> None:
    report = check_algorithm(run_of("mifa"), "mifa", laws=["by-hand"])
    assert str(report) == report.text
    assert len(str(report).splitlines()) == 1
