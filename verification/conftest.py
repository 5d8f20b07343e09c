"""Bound-regression tests: verdicts and ratios against the recorded ones.

``pytest verification/ --update-baseline`` renews the record of the cells that ran;
``--verdicts=FILE`` takes the cells from what ``fltheory verify --json FILE`` has just written.
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
