"""Which steps of the papers' proofs do not follow, by (statement, reading)."""

from __future__ import annotations

from fltheory import theorems
from fltheory.derivations.derivation import StepOutcome

DIFFERS, FAILS = StepOutcome.DIFFERS, StepOutcome.FAILS
IN_4 = {
    "(26) to (27)": DIFFERS,
    "needed in (47)": FAILS,
    "needed in (41)": FAILS,
    "needed in (55)": FAILS,
    "telescoping": FAILS,
    "(55) to the condition on q": DIFFERS,
    "clearing the fraction, any D": FAILS,
    "clearing the fraction, converse": FAILS,
}
IN_5 = {
    "needed in (75)": FAILS,
    "(80) to (81), G_3 of clients": DIFFERS,
    "(81) to the condition on q, G_3 of server": DIFFERS,
    "main text to appendix": DIFFERS,
    "clearing the fraction, any D": FAILS,
    "clearing the fraction, converse": FAILS,
    "(84) to (85)": FAILS,
}
IN_COROLLARY_1 = {
    "order in m K R, eta_s = 1/sqrt(R), sigma_s^2 = sigma^2/(mK)": FAILS,
    "order in m K R, eta_s = 1/sqrt(R), q = 1 - 1/(mK)": FAILS,
}
NOT_FOLLOWING = {
    ("sa-fl/4", "printed"): {**IN_4, "(55) to (54)": FAILS},
    ("sa-fl-submission/4", "printed"): {**IN_4, "needed in (54)": FAILS},
    ("sa-fl/5", "printed"): IN_5,
    ("sa-fl/corollary-1", "printed"): IN_COROLLARY_1,
    ("sa-fl-submission/corollary-1", "printed"): {
        "order in m K R, eta_s = sqrt(mK/R), q = 1/2": FAILS,
    },
    ("sa-fl/corollary-1-speedup", "printed"): {
        "order in m K R, eta_s = sqrt(mK/R), q = 1/2": FAILS,
        "order in m K R, eta_s = 1/sqrt(R), q = 1 - 1/(mK)": FAILS,
    },
    ("sa-fl/corollary-2", "printed"): {"order in R, etabar = 1/2 log(R)/R": FAILS},
    **{
        (s.id, s.reading): {}
        for s in theorems.registered()
        if s.derivation and s.reading != "printed"
    },
    ("ca-fed/1", "printed"): {},
    ("ca-fed/2", "printed"): {
        "Lemma 2, the factor eta_t/2": FAILS,
        "Lemma 2 to (12), noise": DIFFERS,
        "Lemma 2, Gamma": DIFFERS,
        "Lemma 2 to (12), the start": FAILS,
        "(23) where J_t is cut to t": FAILS,
        "Lemma 3 to (12), J_t": FAILS,
        "Steps 1 and 2 to (12)": DIFFERS,
    },
    ("ca-fed/3", "printed"): {},
    ("fedau/2-option-1", "printed"): {
        "needed in Lemma B.3.3": FAILS,
        "printed limits, Option 1: negative, as in Option 2": FAILS,
    },
    ("fedau/2-option-2", "printed"): {"needed in Lemma B.3.3": FAILS},
    ("fedau/corollary-4", "printed"): {
        "drift at gamma = 1/(L I sqrt(T))": DIFFERS,
        "bias at K = log_c T": FAILS,
    },
    ("fedavg-li/4", "with constants"): {},
    ("local-gd/1", "printed"): {},
    ("local-gd/1", "derived"): {},
    ("local-gd/corollary-1", "printed"): {},
    ("local-gd/corollary-1", "derived"): {},
    ("scaffold-bias/4.1", "printed"): {},
}
