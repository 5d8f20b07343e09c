"""A file says which kind of proof it is, and is read as such."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fltheory.algorithms import FedVarp, WeightedFedAvg
from fltheory.participation import Bernoulli, MarkovOnOff, UniformSubset
from fltheory.worst_case import ClientClass, best_bound, certificate, read_proof
from fltheory.worst_case.best_bounds import KINDS
from fltheory.worst_case.proof.proof_file import ProofFile
from fltheory.worst_case.rounds.bound import best_bound_of
from fltheory.worst_case.rounds.one_round import AveragingRound
from tests.worst_case.settings import a_round

CLIENTS = ClientClass(1, "1/10")


def _of_a_round() -> ProofFile:
    return certificate(best_bound_of(a_round(local_steps=2), CLIENTS))


def _of_averaging() -> ProofFile:
    algorithm = WeightedFedAvg((0.5, 0.5), 0.1, 1)
    played = AveragingRound.of(algorithm, Bernoulli([0.9, 0.2]), [0.5, 0.5])
    return certificate(best_bound_of(played, CLIENTS))


def _of_memory() -> ProofFile:
    saga = FedVarp(client_lr=0.25, local_steps=1)
    found = best_bound(saga, UniformSubset(5, 1), CLIENTS, rate="24/25").certificate
    assert found is not None
    return found


def _of_bursts_by_gradients() -> ProofFile:
    algorithm = WeightedFedAvg((1.0, 1.0), 0.1, 1)
    return certificate(best_bound(algorithm, MarkovOnOff([0.5] * 2, 0.9), CLIENTS, rich=True))


def _of_many_in_bursts() -> ProofFile:
    algorithm = WeightedFedAvg([2 / 500] * 500, 0.1, 1)
    return certificate(best_bound(algorithm, MarkovOnOff([0.5] * 500, 0.9), CLIENTS))


@pytest.mark.parametrize(
    "make",
    [_of_a_round, _of_averaging, _of_memory, _of_bursts_by_gradients, _of_many_in_bursts],
)
def test_a_proof_of_each_kind_is_read_as_what_it_is(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    made, path = make(), tmp_path / "proof.json"
    made.write(path)
    found = read_proof(path)
    assert found == made
    assert type(found) is type(made)
    found.verify()
    assert "for all clients that are 1-smooth and 1/10 = 0.1-strongly convex" in found.lines[1]
    for kind in KINDS.keys() - {made.checker.KIND}:
        path.write_text(json.dumps({**json.loads(made.text), "kind": kind}))
        with pytest.raises(ValueError, match=r"certificate\.|claim: must be|version: "):
            read_proof(path)


@pytest.mark.parametrize(
    "text",
    [
        '{"kind": "proof for every client loss", "version": 1}',
        '{"kind": "Lyapunov function for every client loss", "version": 1}',
        '{"kind": "bound on weighted averaging for every client loss", "version": 1}',
    ],
)
def test_a_proof_of_an_earlier_format_must_be_made_again(text: str, tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"earlier format.*: make the proof again"):
        read_proof(path)


def test_kinds_are_told_apart_by_what_their_files_say() -> None:
    assert len(KINDS) == 6
    assert all(kind == one.checker.KIND for kind, one in KINDS.items())
