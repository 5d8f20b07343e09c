"""Each law as a test of its own, in the spirit of scikit-learn's ``parametrize_with_checks``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from fltheory.argument_kinds import checks_kinds
from fltheory.testing.conformance.own_runs import Run
from fltheory.testing.conformance.report import ConformanceError
from fltheory.testing.conformance.suite import RTOL, check_algorithm, checked_request, laws_of


@dataclass(frozen=True)
class LawCheck:
    """One law of an algorithm; called with an implementation it raises where the law fails.

    Attributes
    ----------
    algorithm, law : str
    seed : int
    rtol : float
    hyper : mapping
        As in `check_algorithm`.
    """

    algorithm: str
    law: str
    seed: int = 0
    rtol: float = RTOL
    hyper: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, run: Run) -> None:
        """Check an implementation; a law that does not apply is skipped.

        Raises
        ------
        ConformanceError
            An AssertionError with the whole finding.
        """
        report = check_algorithm(
            run,
            self.algorithm,
            seed=self.seed,
            rtol=self.rtol,
            laws=[self.law],
            raises=False,
            **self.hyper,
        )
        if not report.checked:
            pytest.skip(f"{self.law} does not apply with the fixed arguments")
        if not report.conforms:
            raise ConformanceError(report)


@checks_kinds
def conformance_laws(
    name: str,
    *,
    seed: int = 0,
    rtol: float = RTOL,
    expected: Mapping[str, str] | None = None,
    **hyper: Any,
) -> pytest.MarkDecorator:
    """Return a mark that runs a test once for each law of an algorithm.

    The test takes one argument, ``law``, and calls it with an implementation.

    Parameters
    ----------
    name, seed, rtol
        As in `check_algorithm`.
    expected : mapping of str to str, optional
        Laws that fail, and why: their tests are expected to fail, strictly.
    **hyper
        As in `check_algorithm`.

    Raises
    ------
    ValueError
        For an unknown algorithm or law, and what `check_algorithm` refuses.

    Examples
    --------
    >>> from fltheory.testing import conformance_laws, run_of
    >>> @conformance_laws("scaffold", option=2)
    ... def test_scaffold(law):
    ...     law(run_of("scaffold"))
    """
    checked_request(name, seed=seed, rtol=rtol, expected=expected, hyper=hyper)
    reasons = dict(expected or {})
    return pytest.mark.parametrize(
        "law",
        [
            pytest.param(
                LawCheck(name, law.name, seed, rtol, hyper),
                id=law.name,
                marks=[pytest.mark.xfail(reason=reasons[law.name], strict=True)]
                if law.name in reasons
                else [],
            )
            for law in laws_of(name)
        ],
    )
