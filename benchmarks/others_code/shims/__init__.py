"""One module a library.

`DISTRIBUTION` is its name on PyPI, `IMPLEMENTATIONS` maps a name to a `run` of the contract.

A shim makes models, data and configuration and calls the library; who takes part is forced by the
trace.  No shim computes a step, a mean or a correction.  A round with nobody is not handed to a
library that has no such notion.
"""
