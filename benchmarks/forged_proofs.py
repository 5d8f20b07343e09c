"""Forge proofs for every client loss: how many the checker accepts, and how many are false.

Good certificates of the newer kinds get a number changed at random: clients in bursts and chains of
sets, with either function; runs whose steps change; gaps of F in one round; rounds of runs that
meet a hypothesis. If the checker accepts one, it must also be proved by the tests' own derivation,
which enumerates all sets of participants, names every client's vectors, and shares no code with the
checker.

    python benchmarks/forged_proofs.py [--count 10000] [--seed 0]
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from correlated_proofs import drawn

from fltheory import theorems
from fltheory.worst_case import ClientClass, SafariRound, SmoothClass, audit, certificate
from fltheory.worst_case.checker.__main__ import check
from fltheory.worst_case.checker.kernel import ProofError
from fltheory.worst_case.correlated.bound import CorrelatedBound, best_correlated_bound
from fltheory.worst_case.correlated.phases import (
    StepPhase,
    best_phased_bound,
    phases_certificate,
)
from fltheory.worst_case.correlated.rich import richer_bound
from fltheory.worst_case.proof.proof_file import ProofFile
from fltheory.worst_case.rounds.bound import best_bound_of
from fltheory.worst_case.rounds.client_class import Heterogeneity
from fltheory.worst_case.rounds.measure import Gap
from fltheory.worst_case.rounds.one_round import Averaging
from tests.worst_case import enumerated_round
from tests.worst_case.correlated import enumerated_proof, enumerated_rich_proof
from tests.worst_case.correlated.test_correlated_bound import by_chain
from tests.worst_case.settings import a_round

FACTORS = (-1, 0, Fraction(1, 2), Fraction(98, 100), Fraction(999, 1000), Fraction(1001, 1000), 2)
CONVEX = ClientClass(1, "1/10", "everywhere")
STEEP = ClientClass(3, "0.2")


@dataclass(frozen=True)
class Good:
    """A good certificate, its kind, and the independent judge of its forgeries."""

    kind: str
    document: dict[str, Any]
    is_proved: Callable[[str], bool]


def made(kind: str, proof: ProofFile | None, judge: Callable[[str], bool]) -> Good:
    """Return a good certificate of a kind."""
    assert proof is not None
    return Good(kind, json.loads(proof.text), judge)


def by_both(name: str, bound: CorrelatedBound) -> Iterator[Good]:
    """Yield certificates for clients in bursts with either function, if there are any."""
    with contextlib.suppress(ArithmeticError):
        yield made(name, certificate(bound), enumerated_proof.is_proved)
    richer = richer_bound(bound)
    if richer is not bound:
        with contextlib.suppress(ArithmeticError):
            proof = certificate(richer, 1e-5)
            yield made(f"{name}, rich", proof, enumerated_rich_proof.is_proved)


def in_bursts(seed: int) -> Iterator[Good]:
    """Yield certificates for random rounds of up to three clients, and for chains of sets."""
    draw = random.Random(seed)
    asked: tuple[dict[str, Any], ...] = ({}, {"measure": "loss"}, {"rate": "999/1000"})
    for index in range(12):
        played, clients = drawn(draw, 3)
        with contextlib.suppress(ArithmeticError):
            bound = best_correlated_bound(played, clients, **asked[index % 3])
            yield from by_both("in bursts", bound)
    for index, averaging in enumerate(get_args(Averaging)):
        played = by_chain(index + 1, 1, averaging)
        yield from by_both("chain", best_correlated_bound(played, STEEP))


def in_phases(seed: int) -> Iterator[Good]:
    """Yield certificates for decreasing steps: for a mean after a first phase, and for the end."""
    draw = random.Random(seed)
    for index in range(6):
        played, clients = drawn(draw, 2)
        first, rate = played.client_lr, Fraction(999, 1000)
        phases = [StepPhase(1, first / count, measured=False) for count in (1, 2, 3)]
        if index % 2:
            phases = [StepPhase(2, first, rate, False), StepPhase(1, first, measured=False)]
            phases += [StepPhase(2, first / 2), StepPhase(1, first / 4)]
        with contextlib.suppress(ArithmeticError):
            bound = best_phased_bound(played, clients, phases, distance=3)
            made_of = phases_certificate(bound, 1e-4)
            yield made("phases", made_of, enumerated_proof.phases_are_proved)


def of_one_round() -> Iterator[Good]:
    """Yield certificates for gaps, and for runs that meet a hypothesis."""
    rounds = (
        a_round(3, 1, 2, 1, "1/2", "1/10", "1/7", "1"),
        a_round(3, 0, 2, 2, "1", "1/10", "1/7", "3/2"),
    )
    for heterogeneity, played in product(get_args(Heterogeneity), rounds):
        bound = best_bound_of(played, ClientClass(2, "0.2", heterogeneity), None, Gap())
        yield made("gap", certificate(bound), enumerated_round.is_proved)
    for name, clients, steps in (("5", CONVEX, 1), ("5", CONVEX, 2), ("4", SmoothClass(1), 1)):
        sizes = {"eligible": 2, "excluded": 1, "participants": 1, "local_steps": steps}
        played_by = SafariRound(**sizes, q="1/10", client_lr="1/40")
        theorem: Any = theorems.get(f"sa-fl/{name}", "derived")
        found = audit(theorem, clients, played_by)
        assert found.all_rounds.given
        yield made("hypothesis", found.all_rounds.certificate, enumerated_round.is_proved)


def numbers(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of fractions in a file."""
    if isinstance(found, dict | list):
        for name, value in found.items() if isinstance(found, dict) else enumerate(found):
            yield from numbers(value, (*path, name))
    elif isinstance(found, str) and found.replace("/", "").replace("-", "").isdigit():
        yield path


def forged(one: Good, draw: random.Random) -> str:
    """Return a certificate with a number changed, in a quarter of cases one of the claim."""
    places = list(numbers(one.document))
    if draw.random() < 0.25:
        places = [path for path in places if path[0] == "bound"]
    while True:
        document = copy.deepcopy(one.document)
        *path, last = draw.choice(places)
        place: Any = document
        for name in path:
            place = place[name]
        old = Fraction(place[last])
        new = old * draw.choice(FACTORS) if old else Fraction(draw.choice((-1, 1)), 9)
        if new != old:
            place[last] = str(new)
            return json.dumps(document)


def is_accepted(text: str) -> bool:
    """Whether the checker accepts a certificate."""
    try:
        check(text)
    except ProofError:
        return False
    return True


def main() -> int:
    """Forge certificates, and print the outcomes by kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    pool = [*in_bursts(given.seed), *in_phases(given.seed), *of_one_round()]
    for one in pool:
        text = json.dumps(one.document)
        assert is_accepted(text)
        assert one.is_proved(text), f"{one.kind}: a good certificate is not proved"
    counts: Counter[tuple[str, str]] = Counter()
    kinds = sorted({one.kind for one in pool})
    for number in range(given.count):
        if number % 100 == 0:
            sums = {
                name: sum(counts[kind, name] for kind in kinds) for name in ("accepted", "false")
            }
            print(f"{number} forged, {sums}", file=sys.stderr, flush=True)
        kind = draw.choice(kinds)
        one = draw.choice([one for one in pool if one.kind == kind])
        text = forged(one, draw)
        counts[kind, "forged"] += 1
        if is_accepted(text):
            counts[kind, "accepted"] += 1
            if not one.is_proved(text):
                counts[kind, "false"] += 1
                print(text, file=sys.stderr)
    for kind in kinds:
        forged_ones, accepted, false = (
            counts[kind, name] for name in ("forged", "accepted", "false")
        )
        print(f"{kind}: {forged_ones} forged, {accepted} accepted, of which false: {false}")
    false = sum(counts[kind, "false"] for kind in kinds)
    print(f"all kinds: {given.count} forged, accepted and false: {false} (target 0)", flush=True)
    return int(false > 0)


if __name__ == "__main__":
    raise SystemExit(main())
