"""Witnesses made by hand."""

from fractions import Fraction

from fltheory.verify.safari.witness import Witness

_ZERO = Fraction(0)
_OTHER = (Fraction(-1, 4), _ZERO)

GROUPS = Witness(
    curvatures=(Fraction(2), Fraction(1, 2)),
    optima=((Fraction(3, 4), _ZERO), _OTHER, _OTHER, _OTHER),
    x0=(_ZERO, Fraction(1)),
    sigma=Fraction(1, 2),
    server_sigma=Fraction(1, 5),
    participants=2,
    excluded=(0,),
    q=Fraction(3, 4),
    client_lr=Fraction(1, 10),
    assist_lr=Fraction(1, 7),
    local_steps=3,
    rounds=6,
)

# One client, Hessian 1000, one round: the clients' step overshoots to -x0, the server's lands
# on x*. So E||x_1||^2 = q = 1/10, while etabar = 1 makes Theorem 5's printed bound zero. Its
# condition on q: N/G_3 = 4/10^6 (1 + 30 (1 + 2)) - 4/1000 / 2000 = 362/10^6 and
# D/G_3 = 1/2000 - 10^-6 = 499/10^6, so q <= 1/(1 + 362/499), which 1/10 is.
ONE_ROUND = Witness(
    curvatures=(Fraction(1000),),
    optima=((_ZERO,),),
    x0=(Fraction(-1),),
    sigma=_ZERO,
    server_sigma=_ZERO,
    participants=1,
    excluded=(),
    q=Fraction(1, 10),
    client_lr=Fraction(1, 500),
    assist_lr=Fraction(1, 1000),
    local_steps=1,
    rounds=1,
)
