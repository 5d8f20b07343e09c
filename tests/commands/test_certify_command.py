"""fltheory certify: certificates are checked, edited ones refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

from fltheory.verify.weight_certificate import weight_certificate


def test_certify_checks_certificates_of_weights_too(fltheory_command, tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    document = weight_certificate(Fraction(1, 2), 3, 1)
    path.write_text(json.dumps(document))
    status, out, _ = fltheory_command("certify", str(path))
    assert status == 0
    assert "fedau/3-step (printed): REFUTED, checked in fractions" in out
    assert "E[(p omega_t - 1)^2] = 1/4" in out
    path.write_text(json.dumps({**document, "t": 2}))
    status, _, err = fltheory_command("certify", str(path))
    assert status == 2
    assert "bound must be" in err or "truth must be" in err


def test_certify_shows_what_is_refuted(fltheory_command, certificate_file: Path) -> None:
    status, out, _ = fltheory_command("certify", str(certificate_file))
    assert status == 0
    assert "sa-fl/5 (printed): REFUTED, checked in fractions" in out
    assert "E||x_R - x*||^2 = 1/10 = 0.1" in out


def test_an_edited_certificate_is_refused_in_one_line(
    fltheory_command, certificate_file: Path
) -> None:
    text = certificate_file.read_text()
    certificate_file.write_text(text.replace('"truth": "1/10"', '"truth": "1/9"'))
    status, out, err = fltheory_command("certify", str(certificate_file))
    assert (status, out) == (2, "")
    assert err == "fltheory: truth: must be 1/10, got 1/9\n"
