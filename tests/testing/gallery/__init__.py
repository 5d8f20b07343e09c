"""Right and wrong implementations of the algorithms that `check_algorithm` knows.

They are written from the papers, in plain NumPy, and use nothing of this package.
"""

from __future__ import annotations

from tests.testing.gallery.ca_fed import CA_FED
from tests.testing.gallery.f3ast import F3AST
from tests.testing.gallery.fault import Fault, Implementation
from tests.testing.gallery.fedar import FEDAR
from tests.testing.gallery.fedau import FEDAU
from tests.testing.gallery.fedavg import FEDAVG
from tests.testing.gallery.fedawe import FEDAWE
from tests.testing.gallery.fednova import FEDNOVA
from tests.testing.gallery.fedprox import FEDPROX
from tests.testing.gallery.fedvarp import FEDVARP
from tests.testing.gallery.inverse_availability import ADAFED, FEDAVG_IS
from tests.testing.gallery.mifa import MIFA
from tests.testing.gallery.scaffold import SCAFFOLD

GALLERY: dict[str, Implementation] = {
    "fedavg": FEDAVG,
    "fedprox": FEDPROX,
    "fednova": FEDNOVA,
    "scaffold": SCAFFOLD,
    "fedvarp": FEDVARP,
    "mifa": MIFA,
    "fedau": FEDAU,
    "fedar": FEDAR,
    "fedawe": FEDAWE,
    "fedavg-is": FEDAVG_IS,
    "f3ast": F3AST,
    "adafed": ADAFED,
    "ca-fed": CA_FED,
}

__all__ = ["GALLERY", "Fault", "Implementation"]
