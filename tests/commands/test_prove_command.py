"""fltheory prove: its verdict, and a certificate that certify accepts."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest


def test_prove_writes_a_certificate_that_certify_accepts(fltheory_command, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    status, out, _ = fltheory_command("prove", "sa-fl/5", "--out", str(path))
    assert status == 0
    assert out.startswith("sa-fl/5 (printed): PROVED at these parameters, for every client loss\n")
    assert out.splitlines()[1] == "  scope: every loss of the class"
    assert "times as large" in out
    status, out, _ = fltheory_command("certify", str(path))
    assert status == 0
    assert out.startswith(
        "PROVED for every client loss, checked in fractions\n  scope: every loss of the class\n"
    )
    assert "m = 4 of up to 10 clients" in out
    document = json.loads(path.read_text())
    document["bound"]["heterogeneity"] = ["1/100000"]
    path.write_text(json.dumps(document))
    status, out, err = fltheory_command("certify", str(path))
    assert (status, out) == (2, "")
    assert "has a negative eigenvalue" in err


def test_prove_of_gradients_writes_a_certificate_that_certify_accepts(
    fltheory_command, tmp_path: Path
) -> None:
    path = tmp_path / "proof.json"
    status, out, _ = fltheory_command(
        "prove", "sa-fl/4", "--reading", "derived", "--client-lr", "1/100", "--out", str(path)
    )
    assert status == 0
    assert out.startswith("sa-fl/4 (derived): PROVED at these parameters, for every client loss\n")
    assert "for all clients that are 1-smooth, convex or not, ||grad F_i" in out
    assert "one round, without the condition on q: PROVED" in out
    status, out, _ = fltheory_command("certify", str(path))
    assert status == 0
    assert "E F(x+) <= F(x) - (0.0125) ||grad F(x)||^2 + (" in out


def test_prove_shows_clients_that_break_an_inequality(fltheory_command, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    status, out, _ = fltheory_command(
        "prove", "sa-fl/5", "--eligible", "9", "--excluded", "1", "--client-lr", "1/400",
        "--out", str(path),
    )  # fmt: skip
    assert status == 0
    assert out.startswith("sa-fl/5 (printed): UNDECIDED: not proved without the hypotheses")
    assert "one round, E||x+||^2 <= rate ||x||^2 + (1 - rate) floor: REFUTED" in out
    assert "clients that violate it:" in out
    assert f"nothing written to {path}: nothing was proved" in out
    assert not path.exists()


def test_prove_of_any_participants_takes_the_worst_number_of_excluded_clients(
    fltheory_command,
) -> None:
    arguments = ("sa-fl/5", "--reading", "derived", "--eligible", "6", "--q", "1/4")
    status, out, _ = fltheory_command("prove", *arguments, "--participants", "any")
    assert status == 0
    assert out.startswith("worst case: 2 of 6 clients excluded\nsa-fl/5 (derived): PROVED")
    assert "for runs that meet 'few client rounds' the smallest residual is" in out
    status, _, err = fltheory_command("prove", *arguments, "--participants", "most")
    assert (status, "--participants must be a whole number, or 'any'" in err) == (2, True)


def test_a_hypothesis_that_fails_is_named(fltheory_command) -> None:
    status, out, _ = fltheory_command(
        "prove", "sa-fl/5", "--reading", "derived", "--eligible", "5", "--excluded", "4",
        "--q", "1", "--client-lr", "3",
    )  # fmt: skip
    assert status == 0
    assert "INAPPLICABLE: small server step, small client step" in out


def test_steps_at_which_no_rate_is_found_have_a_verdict(fltheory_command) -> None:
    status, out, err = fltheory_command("prove", "sa-fl/5", "--client-lr", "100")
    assert (status, err) == (0, "")
    assert out.startswith(
        "sa-fl/5 (printed): INAPPLICABLE: small server step, positive denominator in 'few client "
        "rounds' fail\n"
    )
    assert "rate -24; no provable one was found" in out
    for name, arguments in (("sa-fl/4", ("--client-lr", "100")), ("sa-fl/5", ("--assist-lr", "9"))):
        status, out, _ = fltheory_command("prove", name, *arguments)
        assert (status, "INAPPLICABLE" in out) == (0, True)
        # No number is compared with one that was not found, or with infinity.
        assert "nan" not in out
        assert "inf, " not in out


def test_a_server_alone_leaves_nothing_and_nothing_of_the_solvers_is_shown(
    fltheory_command,
) -> None:
    """The server's step is gradient descent on F: the best residual is zero, not 1e-19."""
    status, out, _ = fltheory_command("prove", "sa-fl/5", "--q", "0")
    assert status == 0
    assert "residual at the same rate 0 vs 0\n" in out
    assert "floor 0 vs 0\n" in out


@pytest.mark.parametrize(("reading", "step"), [("printed", "1/50"), ("derived", "1/55")])
def test_the_default_step_meets_the_theorems_hypotheses(
    fltheory_command, reading: str, step: str
) -> None:
    """sqrt(30)/(120 sqrt(5)) is 1/49.0, and sqrt(30)/(60 * 5) is 1/54.8."""
    status, out, _ = fltheory_command("prove", "sa-fl/4", "--reading", reading)
    assert status == 0
    assert f"eta_c = {step}," in out
    assert "fails here" not in out


def test_bad_input_is_one_line(fltheory_command) -> None:
    for arguments, message in (
        (("sa-fl/5", "--mu", "0"), "mu must be above 0 for sa-fl/5, whose bound is for strongly"),
        (("sa-fl/5", "--q", "half"), "q must be a fraction at least 0"),
        (("sa-fl/5", "--local-steps", "0"), "local_steps must be a whole number of at least 1"),
        (("fedprox/4",), "theorem must bound E||x_R - x*||^2"),
        (("sa-fl/4", "--heterogeneity", "optimum"), "client_class must have heterogeneity"),
        (("sa-fl/5", "--heterogeneity", "none"), "heterogeneity must be one of"),
        (("sa-fl/5", "--mu", "2"), "mu must be below L = 1"),
    ):
        status, out, err = fltheory_command("prove", *arguments)
        assert (status, out) == (2, "")
        assert err.startswith(f"fltheory: {message}")
        assert err.count("\n") == 1


def test_prove_puts_ca_feds_value_the_proved_one_and_the_truth_side_by_side(
    fltheory_command, tmp_path: Path
) -> None:
    """CA-Fed's is verify's bound; 15.18 is another program's, from the same mathematics."""
    path, theorem = tmp_path / "proof.json", tmp_path / "theorem.v"
    arguments = ("--out", str(path), "--rocq", str(theorem))
    status, out, _ = fltheory_command("prove", "ca-fed/2", *arguments)
    assert status == 0
    assert "in_bursts 4 (1 / 2) (9 / 10)" in theorem.read_text()
    assert "bound of the derived reading, CA-Fed (arXiv 2301.04632, later version), " in out
    assert "Theorem 2 (HOLDS here): 288259" in out
    assert "PROVED: 15.18" in out
    assert "exact truth of this setting's clients: 1.04218" in out
    assert "any chain with a limit" in out
    assert fltheory_command("certify", str(path))[0] == 0


def test_prove_of_falling_steps_writes_a_proof_for_each(fltheory_command, tmp_path: Path) -> None:
    """Nine steps of size 2/(mu (gamma + t)), gamma = 8 kappa = 32, so that the first is 2/8.25."""
    status, out, _ = fltheory_command("prove", "fedavg-li/1", "--out", str(tmp_path / "proof.json"))
    assert status == 0
    assert "PROVED: 0.1831" in out
    assert "the first of 9 for rounds that differ" in out
    for number in range(1, 10):
        assert fltheory_command("certify", str(tmp_path / f"proof-{number}.json"))[0] == 0
    first = json.loads((tmp_path / "proof-1.json").read_text())
    assert Fraction(first["boxes"][0]["client_lr"][0]) == Fraction("0.24242424242424243")


def test_prove_of_a_run_takes_a_regime_and_refuses_what_it_cannot_prove(fltheory_command) -> None:
    status, out, _ = fltheory_command("prove", "fedau/2-option-1", "--regime", "equal weights")
    assert (status, "INAPPLICABLE here" in out, "PROVED: " in out) == (0, True, True)
    for arguments, message in (
        (("fedau/2-option-1", "--regime", "Markov"), "a_round must have clients that are uncorr"),
        (("fedau/2-option-1", "--regime", "FedAU"), "algorithm must be WeightedFedAvg, Unbiased"),
        (("local-gd/1", "--regime", "usual"), "local_steps must be 1 for LocalSgd"),
        (("local-gd/1", "--regime", "none"), "regime must be one of"),
        (("local-gd/1", "--client-lr", "1/2"), "--client-lr must be left out for local-gd/1"),
        (("ca-fed/2", "--regime", "usual"), "--regime must be left out for ca-fed/2"),
        (("local-gd/1", "--rich"), "--rich must be left out for local-gd/1"),
        (("ca-fed/2", "--rich", "--sigma", "1"), "client_class must have sigma = 0 for a function"),
    ):
        status, out, err = fltheory_command("prove", *arguments)
        assert (status, out) == (2, "")
        assert err.startswith(f"fltheory: {message}")
        assert err.count("\n") == 1


def test_prove_refuses_options_of_other_theorems(fltheory_command) -> None:
    status, _, err = fltheory_command("prove", "ca-fed/2", "--participants", "3")
    assert (status, "--participants must be left out for ca-fed/2" in err) == (2, True)
    status, _, err = fltheory_command("prove", "sa-fl/5", "--rounds", "3")
    assert (status, "--rounds must be left out for sa-fl/5" in err) == (2, True)
    status, _, err = fltheory_command("prove", "ca-fed/2", "--availability", "1/2,1/3")
    assert (status, "one fraction or four" in err) == (2, True)
    status, _, err = fltheory_command("prove", "ca-fed/1", "--availability", "1/2,1/2,1/2,0")
    assert (status, "--availability must be above 0, got '0'" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sa-fl/5 --local-steps 31", "got one with more than 30 local steps"),
        ("sa-fl/5 --local-steps 31 --participants any", "got one with more than 30 local steps"),
        ("sa-fl/5 --eligible 1001 --participants 1001", "got one with more than 1000 participants"),
        ("ca-fed/2 --local-steps 11", "got one with more than 10 local steps"),
        ("ca-fed/2 --sigma 1", "got one with noise of clients in bursts"),
        ("ca-fed/1 --availability 1", "got one with clients that are always present"),
        ("ca-fed/1 --availability 1/2,1/2,1/2,1/3", "got one with several groups of clients"),
        ("ca-fed/2 --rich", "--rich must be left out with --rocq"),
    ],
)
def test_what_rocq_does_not_know_is_told_before_the_search(
    fltheory_command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, said: str
) -> None:
    for search in ("audit", "audits.audit.worst_exclusion", "audits.run_audit.audit_run"):
        monkeypatch.setattr(f"fltheory.worst_case.{search}", lambda *_, **__: pytest.fail("sought"))
    theorem = tmp_path / "theorem.v"
    status, out, err = fltheory_command("prove", *words.split(), "--rocq", str(theorem))
    assert (status, out, theorem.exists()) == (2, "", False)
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--client-lr", "3"], "no finite floor was found at K = 1, client_lr = 3: try a smaller"),
        (["--rounds", "0"], "--rounds must be at least 1, got 0"),
        (["--local-steps", "0"], "--local-steps must be at least 1, got 0"),
        (["--local-steps", "41"], "local_steps must be at most 40, which is what the checker"),
        (["--correlation", "1"], "--correlation must be below 1, got 1"),
        (["--availability", "0"], "--availability must be above 0, got '0'"),
    ],
)
def test_chains_and_steps_without_a_bound_are_one_line(
    fltheory_command, words: list[str], said: str
) -> None:
    status, out, err = fltheory_command("prove", "ca-fed/2", *words)
    assert (status, out) == (2, "")
    assert said in err.splitlines()[-1]
    assert "Traceback" not in err
