"""fltheory certify: certificates are checked, edited ones refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fltheory import worst_case
from fltheory.algorithms import FedVarp, WeightedFedAvg
from fltheory.participation import Bernoulli, UniformSubset
from fltheory.worst_case import ClientClass, best_bound

KEPT = Path(__file__).parents[2] / "verification" / "certificates"


def test_certify_shows_what_is_refuted(fltheory_command, certificate_file: Path) -> None:
    status, out, _ = fltheory_command("certify", str(certificate_file))
    assert status == 0
    assert "sa-fl/5 (printed): REFUTED, checked in fractions" in out
    assert "E||x_R - x*||^2 >= 67/1000 = 0.067" in out
    assert "> 33/1000 = 0.033 >= bound; every hypothesis holds" in out


def test_certify_checks_claims_about_a_setting_itself(fltheory_command) -> None:
    status, out, _ = fltheory_command("certify", str(KEPT / "fedau-3-step.json"))
    assert status == 0
    assert "fedau/3-step (printed): REFUTED, checked in fractions" in out
    assert "FedAU(client_lr = " in out


def test_an_edited_certificate_is_refused_in_one_line(
    fltheory_command, certificate_file: Path
) -> None:
    text = certificate_file.read_text()
    certificate_file.write_text(text.replace('"truth": "67/1000"', '"truth": "1/9"'))
    status, out, err = fltheory_command("certify", str(certificate_file))
    assert (status, out) == (2, "")
    assert err == "fltheory: truth: must be at most the quantity, got 1/9\n"


def test_certify_shows_what_is_proved_of_weighted_averaging(
    fltheory_command, tmp_path: Path
) -> None:
    available = [0.9, 0.9, 0.2]
    algorithm = WeightedFedAvg((0.5, 0.5, 2.0), 0.1, 2)
    bound = worst_case.best_bound(
        algorithm,
        Bernoulli(available),
        worst_case.ClientClass(1, "0.1"),
        target_weights=[0.25, 0.25, 0.5],
    )
    made, path = worst_case.certificate(bound), tmp_path / "proof.json"
    made.write(path)
    status, out, _ = fltheory_command("certify", str(path))
    assert status == 0
    assert out.startswith("PROVED for every client loss, checked in fractions\n")
    assert "2 with probability 9/10 = 0.9, alpha = 1/4 = 0.25, weight 1/2 = 0.5" in out
    document = json.loads(made.text)
    document["bound"]["rate"] = ["1/2"]
    path.write_text(json.dumps(document))
    status, out, err = fltheory_command("certify", str(path))
    assert (status, out) == (2, "")
    assert "the slack of means has a negative eigenvalue" in err


def test_certify_shows_the_rate_that_a_lyapunov_function_proves(
    fltheory_command, tmp_path: Path
) -> None:
    path = tmp_path / "saga.json"
    saga = FedVarp(client_lr=0.25, local_steps=1)
    made = best_bound(saga, UniformSubset(5, 1), ClientClass(1, "1/10"), rate="24/25")
    assert made.certificate is not None
    made.certificate.write(path)
    status, out, _ = fltheory_command("certify", str(path))
    assert status == 0
    assert out.startswith("PROVED for every client loss, checked in fractions\n")
    assert "E||x_R - x*||^2 <= 0.96^R (1.0" in out
    assert "1 of 5 clients drawn uniformly, step = 1/4" in out
    path.write_text(made.certificate.text.replace('"24/25"', '"9/10"'))
    status, out, err = fltheory_command("certify", str(path))
    assert (status, out) == (2, "")
    assert err.startswith("fltheory: decrease: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the file is empty"),
        ("[]", "must be an object with fields"),
        ("{}", "theorem: the field is missing, or is not text"),
        ('{"kind": "another"}', "theorem: the field is missing, or is not text"),
        ("fltheory", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("\xff", "not JSON: 'utf-8' codec"),
    ],
)
def test_what_is_no_certificate_is_one_line(
    fltheory_command, tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(text.encode("latin-1"))
    status, out, err = fltheory_command("certify", str(path))
    assert (status, out) == (2, "")
    assert err.startswith(
        "fltheory: certificate must be a file that fltheory falsify or prove wrote, "
        f"got {str(path)!r}: {why}"
    )
    assert err.count("\n") == 1


def test_a_proof_without_its_fields_is_one_line(fltheory_command, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"kind": "proof for every client loss"}')
    status, out, err = fltheory_command("certify", str(path))
    assert (status, out) == (2, "")
    assert err == "fltheory: certificate.version: the field is missing\n"


def test_a_folder_is_no_certificate(fltheory_command, tmp_path: Path) -> None:
    status, _, err = fltheory_command("certify", str(tmp_path))
    assert status == 2
    assert err.startswith("fltheory: certificate must be an existing file")


def test_certify_writes_a_refutation_as_a_theorem(fltheory_command, tmp_path: Path) -> None:
    theorem = tmp_path / "theorem.v"
    witness = KEPT.parent / "witnesses" / "sa-fl-4.json"
    status, out, _ = fltheory_command("certify", str(witness), "--rocq", str(theorem))
    assert status == 0
    assert f"make rocq PROOF={theorem}" in out
    assert "(13 / 100) <= average 1000" in theorem.read_text(encoding="utf-8")


def test_certify_names_a_refutation_that_is_not_exported(fltheory_command, tmp_path: Path) -> None:
    theorem = tmp_path / "theorem.v"
    status, _, err = fltheory_command(
        "certify", str(KEPT / "fedar-assumption-7.json"), "--rocq", str(theorem)
    )
    assert status == 2
    assert err.strip().endswith("got one with the algorithm FedAR")
    assert not theorem.exists()
