"""Regression tests of bounds: compare verdicts and ratios with the recorded ones.

``pytest verification/ --update-baseline`` updates the record of the cells that ran;
``--verdicts=FILE`` reads the cells from a file just written by ``fltheory verify --json FILE``.
Both are short for options of `fltheory.testing.pytest_plugin`.
"""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-baseline",
        action="store_true",
        dest="fltheory_record",
        help="the same as --fltheory-record",
    )
    parser.addoption("--verdicts", dest="fltheory_verdicts", help="the same as --fltheory-verdicts")
