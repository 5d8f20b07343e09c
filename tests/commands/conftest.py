"""What tests of several commands start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from fltheory import theorems
from fltheory.verify import certificate
from fltheory.verify.certificates.certificate import write_certificate
from tests.verify.witnesses import ONE_ROUND


@pytest.fixture
def certificate_file(tmp_path: Path) -> Path:
    """Return a certificate that refutes the printed Theorem 5 of SA-FL in one round."""
    path = tmp_path / "witnesses" / "one.json"
    write_certificate(path, certificate(theorems.get("sa-fl/5"), ONE_ROUND))
    return path
