"""The engines, which are exact where a round is affine and sampled elsewhere."""

from fltheory.engines.history.paths import paths
from fltheory.engines.moments.limits import stationary
from fltheory.engines.moments.moment_recursion import exact
from fltheory.engines.sampled.monte_carlo_runs import monte_carlo
from fltheory.engines.setting import Setting
from fltheory.engines.setting_file import read_setting, write_setting

__all__ = [
    "Setting",
    "exact",
    "monte_carlo",
    "paths",
    "read_setting",
    "stationary",
    "write_setting",
]
