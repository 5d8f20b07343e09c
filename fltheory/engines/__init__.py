"""The engines: exact where a round is affine, sampled elsewhere."""

from fltheory.engines.affine.forms import NotAffineError
from fltheory.engines.history.paths import paths
from fltheory.engines.moments.limits import stationary
from fltheory.engines.moments.moment_recursion import exact
from fltheory.engines.sampled.monte_carlo_runs import monte_carlo
from fltheory.engines.setting import Setting
from fltheory.engines.setting_file import read_setting, write_setting
from fltheory.engines.trajectory import Trajectory

__all__ = [
    "NotAffineError",
    "Setting",
    "Trajectory",
    "exact",
    "monte_carlo",
    "paths",
    "read_setting",
    "stationary",
    "write_setting",
]
