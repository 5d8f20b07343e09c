"""Theorems in your own tests: a plugin for pytest, and what hand-written tests need.

``pytest --fltheory my_theorem.py`` makes a test of each statement in each of its regimes; see
`fltheory.testing.pytest_plugin`. Nothing here takes time to import.
"""

from fltheory.testing.cells import each_cell, rows_of

__all__ = ["each_cell", "rows_of"]
