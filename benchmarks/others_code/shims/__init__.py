"""One module per library.

In each, `DISTRIBUTION` is the library's name on PyPI, and `IMPLEMENTATIONS` maps names to `run`
functions of the contract.

A shim makes models, data and configuration and calls the library; the trace determines who takes
part. No shim computes a step, a mean or a correction. Rounds without participants are skipped for
libraries that cannot handle them.
"""
