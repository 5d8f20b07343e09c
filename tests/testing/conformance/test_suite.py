from __future__ import annotations

from typing import Any

import pytest

from fltheory.testing import ConformanceError, Outcome, check_algorithm, run_of
from fltheory.testing.conformance.laws.table import LAWS
from fltheory.testing.conformance.specifications import SPECIFICATIONS
from fltheory.testing.conformance.suite import laws_of
from tests.testing.conformance.wrong_runs import run_with_slip


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_the_package_s_own_algorithms_conform(name: str) -> None:
    report = check_algorithm(run_of(name), name, seed=3)
    assert report.conforms
    assert [one.law for one in report.findings] == [law.name for law in laws_of(name)]
    assert all(one.outcome is Outcome.PASSED for one in report.findings)


def test_the_error_says_law_trace_models_and_cause() -> None:
    wrong = run_with_slip("scaffold", "c over S")
    with pytest.raises(ConformanceError) as caught:
        check_algorithm(wrong, "scaffold", stop_at_first=True)
    assert isinstance(caught.value, AssertionError)
    (failure,) = caught.value.report.failures
    assert failure.law == "by-hand"
    assert failure.round == 3
    assert failure.expected == pytest.approx((4.28125,))
    assert failure.actual == pytest.approx((4.0,))
    assert "divided by the number present, |S|, instead of N" in failure.causes[0]
    for text in ("round 2: client 0 present", "expected x = (4.28125)", "actual x = (4)"):
        assert text in str(caught.value)


def test_the_smallest_trace_is_shown() -> None:
    wrong = run_with_slip("scaffold", "c over S")
    report = check_algorithm(wrong, "scaffold", laws=["bursty-participation"], raises=False)
    message = report.failures[0].message
    assert "N = 2 clients, d = 1, 2 rounds" in message
    assert "local_steps=1" in message


def test_a_declared_failure_is_expected_and_its_passing_reported() -> None:
    wrong = run_with_slip("fedavg", "server_lr left out")
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
        ({"expected": {"by-hand": ""}}, r"expected\['by-hand'\] must be a string"),
        ({"cutoff": 3}, "options of scaffold must be among option"),
        ({"run": 3}, "run must be callable"),
    ],
)
def test_bad_requests_are_refused(given: dict[str, object], words: str) -> None:
    arguments = {"run": run_of("scaffold"), "name": "scaffold", **given}
    with pytest.raises(ValueError, match=words):
        check_algorithm(**arguments)  # type: ignore[arg-type]


def test_single_precision_passes_with_a_tolerance_of_its_own() -> None:
    single = run_with_slip("fedavg", "model rounded")
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


@pytest.mark.parametrize("run", [_of_five_clients, _of_small_server_steps])
def test_what_shows_only_at_size_is_seen(run: Any) -> None:
    report = check_algorithm(run, "scaffold", raises=False)
    assert [finding.law for finding in report.failures] == ["larger"]


@pytest.mark.parametrize("size", [2, 4])
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
