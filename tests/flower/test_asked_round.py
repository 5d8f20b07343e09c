"""A round whose clients answer one question after another."""

from __future__ import annotations

from typing import Any

import numpy as np

from fltheory.flower.asked_round import AskedRound


class TwoStages:
    """Half a round's steps from x, and the other half from the mean of where they led."""

    branches = (("clients", 1.0),)

    def round(self, state: Any, clients: Any, who: Any, branch: str) -> Any:
        x = state["x"]
        for _ in range(2):
            weights = who / who.sum(axis=1, keepdims=True)
            x = x + clients.summed_local_sgd(x, who, weights, steps=1, lr=0.5)
        return {"x": x}


def test_who_leaves_late_has_not_been_there_and_others_are_asked_anew() -> None:
    optima = np.array([[0.0], [2.0], [8.0]])
    asked: list[list[int]] = []

    def answers(going: AskedRound, but: int | None = None) -> dict[int, Any]:
        assert going.question is not None
        asked.append(list(going.question.tasks))
        return {
            k: task.x + 0.5 * (optima[k] - task.x)
            for k, task in going.question.tasks.items()
            if k != but
        }

    going = AskedRound(
        TwoStages(), {"x": np.array([[4.0]])}, np.ones(3, dtype=bool), "clients", len
    )
    going.answer(answers(going))
    going.answer(answers(going, but=2))
    # The first stage's mean is another without client 2: so is where the second begins.
    going.answer(answers(going))
    assert asked == [[0, 1, 2], [0, 1, 2], [0, 1]]
    assert going.question is None
    assert going.who.tolist() == [True, True, False]
    # x = 4 to the mean 1 halfway, 2.5, and halfway again, 1.75.
    assert going.after is not None
    np.testing.assert_allclose(going.after["x"], [[1.75]], rtol=0, atol=1e-15)
