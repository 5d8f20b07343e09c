"""A second computation of what a certificate claims, for tests and forgeries alone.

Written from the papers' pseudo-code: every participant set, coin and state of a chain of every
round is a branch of a tree, and along a branch every number is written in terms of the noises of
single gradients. Nothing is shared with the package or its checker: no recursion of moments, no
closed form of local steps, another reader of formulas, and legality in its own words.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, count, pairwise, product
from typing import Any, TypeAlias

F: TypeAlias = Fraction
Form: TypeAlias = dict[int, F]  # a number: its constant (0), and its factor of each noise
Vector: TypeAlias = list[Form]
Row: TypeAlias = dict[str, F]
DIGITS = 60  # of roots and logarithms: what is compared with one must not be close to it


def plus(*terms: tuple[Any, Vector]) -> Vector:
    """Add vectors of forms, each with its factor."""
    total: Vector = [{} for _ in terms[0][1]]
    for factor, vector in terms:
        for into, form in zip(total, vector, strict=True):
            for key, value in form.items():
                into[key] = into.get(key, F(0)) + factor * value
    return total


def fixed(point: list[F]) -> Vector:
    """Write a point as forms."""
    return [{0: value} for value in point]


def numbers(found: Any) -> Any:
    """Turn lists of text into lists of fractions."""
    return [numbers(item) for item in found] if isinstance(found, list) else F(found)


class World:
    """A setting's clients, and fresh noises."""

    def __init__(self, setting: dict[str, Any]) -> None:
        problem = setting["problem"]
        self.h, self.c = numbers(problem["hessians"]), numbers(problem["optima"])
        self.alpha = numbers(problem["target_weights"])
        self.sigma, self.server_sigma = F(problem["sigma"]), F(problem["server_sigma"])
        self.n, self.d = len(self.c), len(self.c[0])
        self.x0, self.rounds = numbers(setting["x0"]), setting["rounds"]
        self.star = self.minimiser(self.alpha)
        self.method, self.participation = setting["algorithm"], setting["participation"]
        self.noises = count(1)
        self.levels: dict[int, F] = {}

    def mean(self, weights: list[F]) -> list[list[F]]:
        return [
            [sum(w * h[a][b] for w, h in zip(weights, self.h, strict=True)) for b in range(self.d)]
            for a in range(self.d)
        ]

    def minimiser(self, weights: list[F]) -> list[F]:
        """Solve for a zero gradient by Cramer's rule, in one or two dimensions."""
        m = self.mean(weights)
        pull = [
            sum(
                w * h[a][b] * c[b]
                for w, h, c in zip(weights, self.h, self.c, strict=True)
                for b in range(self.d)
            )
            for a in range(self.d)
        ]
        if self.d == 1:
            return [pull[0] / m[0][0]]
        det = m[0][0] * m[1][1] - m[0][1] * m[1][0]
        return [
            (pull[0] * m[1][1] - m[0][1] * pull[1]) / det,
            (m[0][0] * pull[1] - pull[0] * m[1][0]) / det,
        ]

    def exact_gradient(self, i: int, at: Vector) -> Vector:
        offset = plus((1, at), (-1, fixed(self.c[i])))
        return [plus(*((self.h[i][a][b], [offset[b]]) for b in range(self.d)))[0]
                for a in range(self.d)]  # fmt: skip

    def noise(self, sigma: F) -> Vector:
        keys = [next(self.noises) for _ in range(self.d)]
        self.levels |= dict.fromkeys(keys, sigma**2 / self.d)
        return [{key: F(1)} for key in keys]

    def gradient(self, i: int, at: Vector) -> Vector:
        return plus((1, self.exact_gradient(i, at)), (1, self.noise(self.sigma)))

    def square(self, form: Form) -> F:
        return self.product(form, form)

    def product(self, a: Form, b: Form) -> F:
        """Return the expectation of a product."""
        noise = (self.levels[k] * v * b[k] for k, v in a.items() if k and k in b)
        return a.get(0, F(0)) * b.get(0, F(0)) + sum(noise)

    def loss(self, x: Vector, hessian: list[list[F]], point: list[F]) -> F:
        offset = plus((1, x), (-1, fixed(point)))
        return sum(
            hessian[a][b] * self.product(offset[a], offset[b]) / 2
            for a in range(self.d)
            for b in range(self.d)
        ) + F(0)


# ---- who takes part


def paths(  # noqa: C901
    world: World, rounds: int
) -> Iterator[tuple[F, list[tuple[int, ...]]]]:
    """Yield every sequence of participant sets, with its probability."""
    p, n = world.participation, world.n
    if p["name"] == "UniformSubset":
        pool = [i for i in range(n) if i not in p["excluded"]]
        sets = list(combinations(pool, p["size"]))
        for drawn in product(sets, repeat=rounds):
            yield F(1, len(sets) ** rounds), list(drawn)
    elif p["name"] == "Bernoulli":
        chances = numbers(p["availability"])
        everything = list(_subsets(chances))
        for drawn in product(everything, repeat=rounds):
            yield math.prod((c for c, _ in drawn), start=F(1)), [s for _, s in drawn]
    elif p["name"] == "MarkovOnOff":
        pi, nu = numbers(p["availability"]), numbers(p["correlation"])
        begin = pi if p["start"] is None else [F(s) for s in p["start"]]
        yield from _on_off(pi, nu, list(_subsets(begin)), rounds)
    elif p["name"] == "FiniteChain":
        rows = numbers(p["transition"])
        begin = stationary(rows) if p["start"] is None else [
            F(int(i == p["start"])) for i in range(len(rows))
        ]  # fmt: skip
        for states in product(range(len(rows)), repeat=rounds):
            chance = math.prod((rows[a][b] for a, b in pairwise(states)),
                               start=begin[states[0]])  # fmt: skip
            if chance:
                yield chance, [tuple(p["sets"][s]) for s in states]
    elif p["name"] == "WaitingSubset":
        yield from _waits(numbers(p["availability"]), p["size"], rounds)
    else:
        rows_ = list(zip(p["periods"], p["offsets"], p["active"], strict=True))
        yield F(1), [
            tuple(i for i, (period, offset, active) in enumerate(rows_)
                  if (t + offset) % period < active) for t in range(rounds)
        ]  # fmt: skip


def _waits(p: list[F], size: int, rounds: int) -> Iterator[tuple[F, list[tuple[int, ...]]]]:
    """Yield every path of a subset that is waited for: whom is drawn, and who is there when."""
    draws = list(combinations(range(len(p)), size))
    for drawn in product(draws, repeat=rounds):
        for there in product(list(_subsets(p)), repeat=rounds):
            upcoming, path = iter(drawn), []
            missing = set(waited_for := next(upcoming))
            for _, here in there:
                missing -= set(here)
                path.append(() if missing else waited_for)
                if not missing:
                    missing = set(waited_for := next(upcoming, ()))
            yield math.prod((c for c, _ in there), start=F(1, len(draws) ** rounds)), path


def _mean_wait(p: list[F], size: int) -> F:
    """Return the mean over subsets of 1/p - ... + ...: the largest of geometric times."""
    return sum(
        F((-1) ** (k + 1) * math.comb(len(p) - k, size - k), math.comb(len(p), size))
        / (1 - math.prod((1 - p[i] for i in some), start=F(1)))
        for k in range(1, size + 1)
        for some in combinations(range(len(p)), k)
    )


def _subsets(chances: list[F]) -> Iterator[tuple[F, tuple[int, ...]]]:
    for there in product((0, 1), repeat=len(chances)):
        chance = math.prod((p if t else 1 - p for p, t in zip(chances, there, strict=True)),
                           start=F(1))  # fmt: skip
        if chance:
            yield chance, tuple(i for i, t in enumerate(there) if t)


def _on_off(pi: list[F], nu: list[F], begun: Any, rounds: int) -> Any:
    found = [(chance, [s]) for chance, s in begun]
    for _ in range(rounds - 1):
        found = [
            (chance * share, [*sets, s])
            for chance, sets in found
            for share, s in _subsets(
                [(1 - b) * a + (b if i in sets[-1] else 0)
                 for i, (a, b) in enumerate(zip(pi, nu, strict=True))]
            )
        ]  # fmt: skip
    return found


def stationary(rows: list[list[F]]) -> list[F]:
    """Return pi by the Markov chain tree theorem: sums over the trees into each state."""
    size = range(len(rows))
    weights = []
    for root in size:
        total = F(0)
        for ahead in product(size, repeat=len(rows)):
            edges = {i: ahead[i] for i in size if i != root}
            if ahead[root] == root and all(_leads(i, root, edges) for i in edges):
                total += math.prod((rows[i][j] for i, j in edges.items()), start=F(1))
        weights.append(total)
    return [w / sum(weights) for w in weights]


def _leads(at: int, root: int, edges: dict[int, int]) -> bool:
    for _ in range(len(edges) + 1):
        if at == root:
            return True
        at = edges[at]
    return False


# ---- the algorithms


def step_size(steps: dict[str, Any], t: int) -> F:
    if steps["name"] == "Constant":
        return F(steps["value"])
    return F(steps["scale"]) / (t + F(steps["offset"]))


def innermost(method: dict[str, Any]) -> dict[str, Any]:
    """Return the algorithm itself, without what is around it."""
    while "algorithm" in method or "scaffold" in method:
        method = method.get("algorithm") or method["scaffold"]
    return method


def run(  # noqa: C901
    world: World, sets: list[tuple[int, ...]], coins: list[bool]
) -> list[Vector]:
    """Return the model before every round and after the last, along one branch."""
    method, averaged, schedule, momentum, warm = world.method, None, None, F(0), False
    while "algorithm" in method or "scaffold" in method:
        if method["name"] == "AveragedIterate":
            averaged = method["weights"]
        elif method["name"] == "Scheduled":
            schedule = method["step_sizes"]
        elif method["name"] == "ServerMomentum":
            momentum = F(method["momentum"])
        warm = warm or method["name"] == "WarmStarted"
        method = method.get("algorithm") or method["scaffold"]
    schedule = method.get("step_sizes", schedule)
    step = ROUNDS[method["name"]]
    zero = fixed([F(0)] * world.d)
    x, velocity, models = fixed(world.x0), zero, [fixed(world.x0)]
    memory: dict[str, Any] = {
        "controls": [zero] * world.n, "table": [zero] * world.n, "seen": set(),
        "ages": {}, "intervals": [[] for _ in range(world.n)], "open": [0] * world.n,
    }  # fmt: skip
    before = [x]
    for t in range(1, world.rounds + 1):
        lr = F(method["client_lr"]) if schedule is None else step_size(schedule, t)
        a = {**method, "lr": lr, "coin": coins[t - 1], "here": sets[t - 1], "t": t}
        if warm and t == 1:
            steps = method["local_steps"]
            for i in range(world.n):
                fresh = [(F(1, steps), world.gradient(i, x)) for _ in range(steps)]
                memory["controls"][i] = plus(*fresh)
            after = x
        else:
            after = step(world, a, x, memory)
        velocity = plus((momentum, velocity), (1, after), (-1, x))
        x = plus((1, x), (1, velocity))
        before.append(x)
        if averaged is None:
            models.append(x)
        else:
            shares = [step_size(averaged, s) for s in range(1, t + 1)]
            mean = plus(*((s / sum(shares), y) for s, y in zip(shares, before, strict=False)))
            models.append(mean)
    return models


def local(world: World, i: int, x: Vector, a: Any, added: Any = None) -> tuple[Vector, Vector]:
    """Return y_K, and the sum of the exact gradients along the way."""
    held = F(a.get("proximal", "0"))
    y, total = x, fixed([F(0)] * world.d)
    for _ in range(a["local_steps"]):
        total = plus((1, total), (1, world.exact_gradient(i, y)))
        g = world.gradient(i, y)
        if added is not None:
            g = plus((1, g), (1, added))
        g = plus((1, g), (held, y), (-held, x))
        y = plus((1, y), (-a["lr"], g))
    return y, total


def moved(world: World, x: Vector, a: Any, weights: dict[int, F]) -> Vector:
    server = F(a.get("server_lr", "1"))
    changes = []
    for i in a["here"]:
        changes += [(server * weights[i], local(world, i, x, a)[0]), (-server * weights[i], x)]
    return plus((1, x), *changes)


def fedavg(world: World, a: Any, x: Vector, memory: Any) -> Vector:
    return moved(world, x, a, dict.fromkeys(a["here"], F(1, max(len(a["here"]), 1))))


def weighted(world: World, a: Any, x: Vector, memory: Any) -> Vector:
    return moved(world, x, a, dict(enumerate(numbers(a["aggregation_weights"]))))


def fedavg_is(world: World, a: Any, x: Vector, memory: Any) -> Vector:
    p = numbers(a["availability"])
    return moved(world, x, a, {i: 1 / (world.n * p[i]) for i in a["here"]})


def unbiased(world: World, a: Any, x: Vector, memory: Any) -> Vector:
    alpha, pi = numbers(a["target_weights"]), numbers(a["availability"])
    weights = {i: alpha[i] / pi[i] for i in a["here"]}
    if a["name"] == "AdaFed":
        weights = {i: w / sum(weights.values()) for i, w in weights.items()}
    return moved(world, x, a, weights)


def fedau(world: World, a: Any, x: Vector, memory: Any) -> Vector:
    ended, age = memory["intervals"], memory["open"]
    omega = {i: F(sum(e), len(e)) if e else F(1) for i, e in enumerate(ended)}
    after = moved(world, x, a, {i: omega[i] / world.n for i in a["here"]})
    for i in range(world.n):
        age[i] += 1
        if i in a["here"] or age[i] == a["cutoff"]:
            ended[i].append(age[i])
            age[i] = 0
    return after


def mifa(world: World, a: Any, x: Vector, memory: Any) -> Vector:
    for i in a["here"]:
        y = local(world, i, x, a)[0]
        memory["table"][i] = plus((1 / a["lr"], x), (-1 / a["lr"], y))
        memory["seen"].add(i)
    if a["start"] == "wait" and len(memory["seen"]) < world.n:
        return x
    share = -F(a["server_lr"]) * a["lr"] / world.n
    return plus((1, x), *((share, update) for update in memory["table"]))


def fedar(world: World, a: Any, x: Vector, memory: Any) -> Vector:
    for i in memory["ages"]:
        memory["ages"][i] += 1
    for i in a["here"]:
        y = local(world, i, x, a)[0]
        memory["table"][i] = plus((1 / a["lr"], x), (-1 / a["lr"], y))
        memory["ages"][i] = 0
    growth, largest = F(a["weight"]["growth"]), F(a["weight"]["largest"])
    kept = [i for i, age in memory["ages"].items() if a["cutoff"] is None or age <= a["cutoff"]]
    terms = [
        (-F(a["server_lr"]) * a["lr"] / len(kept) * min(1 + growth * memory["ages"][i], largest),
         memory["table"][i])
        for i in kept
    ]  # fmt: skip
    return plus((1, x), *terms)


def fedvarp(world: World, a: Any, x: Vector, memory: Any) -> Vector:
    here, labels = a["here"], a.get("clusters", list(range(world.n)))
    if not here:
        return x
    y, reach = memory["table"], a["lr"] * a["local_steps"]
    fresh = {}
    for i in here:
        end = local(world, i, x, a)[0]
        fresh[i] = plus((1 / reach, x), (-1 / reach, end))
    v = plus(
        *((F(1, len(here)), fresh[i]) for i in here),
        *((-F(1, len(here)), y[labels[i]]) for i in here),
        *((F(1, world.n), y[labels[i]]) for i in range(world.n)),
    )
    for label in set(labels):
        own = [fresh[i] for i in here if labels[i] == label]
        if own:
            y[label] = plus(*((F(1, len(own)), each) for each in own))
    return plus((1, x), (-F(a["server_lr"]) * reach, v))


def scaffold(world: World, a: Any, x: Vector, memory: Any) -> Vector:
    controls, here = memory["controls"], a["here"]
    server = plus(*((F(1, world.n), control) for control in controls))
    renewed, changes = list(controls), []
    for i in here:
        end = local(world, i, x, a, plus((1, server), (-1, controls[i])))[0]
        whole = 1 / (a["local_steps"] * a["lr"])
        if a["option"] == 1:
            renewed[i] = world.gradient(i, x)
        else:
            renewed[i] = plus((1, controls[i]), (-1, server), (whole, x), (-whole, end))
        share = F(a["server_lr"]) / len(here)
        changes += [(share, end), (-share, x)]
    memory["controls"][:] = renewed
    return plus((1, x), *changes)


def safari(world: World, a: Any, x: Vector, memory: Any) -> Vector:
    if a["coin"]:
        return fedavg(world, a, x, memory)
    terms = [(w, world.exact_gradient(i, x)) for i, w in enumerate(world.alpha)]
    return plus(
        (1, x),
        *((-F(a["assist_lr"]) * w, g) for w, g in terms),
        (-F(a["assist_lr"]), world.noise(world.server_sigma)),
    )


def fednova(world: World, a: Any, x: Vector, memory: Any) -> Vector:
    """Sum p_i tau_i times sum p_i (y_i - x)/tau_i, p over those present; tau may be one number."""
    taus = a["local_steps"] if isinstance(a["local_steps"], list) else [a["local_steps"]] * world.n
    given = [F(1)] * world.n if a["client_weights"] is None else numbers(a["client_weights"])
    total = sum((given[i] for i in a["here"]), F(0))
    if total == 0:
        return x
    steps = sum((given[i] * taus[i] for i in a["here"]), F(0)) / total
    terms = []
    for i in a["here"]:
        share = F(a["server_lr"]) * steps * given[i] / total / taus[i]
        y = local(world, i, x, {**a, "local_steps": taus[i]})[0]
        terms += [(share, y), (-share, x)]
    return plus((1, x), *terms)


def fedprox(world: World, a: Any, x: Vector, memory: Any) -> Vector:
    """With equal numbers of steps, FedNova's average is the weighted mean."""
    return fednova(world, a, x, memory)


def f3ast(world: World, a: Any, x: Vector, memory: Any) -> Vector:
    alpha, beta = numbers(a["target_weights"]), F(a["smoothing"])
    oracle = a["availability"]
    if oracle is None:
        rates = memory.setdefault("rates", alpha)
    else:
        rates = [(1 - beta) * pi + (beta if i in a["here"] else 0)
                 for i, pi in enumerate(numbers(oracle))]  # fmt: skip
    chosen: list[int] = []
    while len(chosen) < min(a["size"], len(a["here"])):
        left = [i for i in a["here"] if i not in chosen]
        most = max(alpha[i] / rates[i] for i in left)
        chosen.append(next(i for i in left if alpha[i] / rates[i] == most))
    if oracle is None:
        rates = [rate - beta * rate + beta * chosen.count(i) for i, rate in enumerate(rates)]
        memory["rates"] = rates
    return moved(
        world, x, {**a, "here": chosen}, {i: alpha[i] / rates[i] for i in chosen}
    )  # fmt: skip


def single_steps(world: World, a: Any, x: Vector, memory: Any) -> Vector:
    """Every client steps on a model of its own; after every E-th step all have their mean."""
    models = memory.setdefault("models", [x] * world.n)
    for i in a["here"]:
        models[i] = plus((1, models[i]), (-a["lr"], world.gradient(i, models[i])))
    mean = plus(*zip(numbers(a["aggregation_weights"]), models, strict=True))
    if a["t"] % a["local_steps"] == 0:
        memory["models"] = [mean] * world.n
    return mean


ROUNDS = {
    "FedAvg": fedavg, "WeightedFedAvg": weighted, "FedAvgIS": fedavg_is, "Unbiased": unbiased,
    "AdaFed": unbiased, "FedAU": fedau, "Mifa": mifa, "FedAR": fedar, "FedVarp": fedvarp,
    "ClusterFedVarp": fedvarp, "Scaffold": scaffold, "Safari": safari, "FedProx": fedprox,
    "FedNova": fednova, "F3ast": f3ast, "LocalSgd": single_steps,
}  # fmt: skip
_KEPT: dict[str, list[Row]] = {}
OF_PARTICIPANTS = ("participant_gradient_sum", "participant_excess_loss")


def rows_of(setting: dict[str, Any], of: tuple[str, ...] = ()) -> list[Row]:
    """Return the expected quantities of rounds 0 .. R, each a sum over all branches.

    Quantities of participants are worked out only if they are among ``of``.
    """
    key = repr((setting, of))
    if key not in _KEPT:
        if len(_KEPT) > 500:
            _KEPT.clear()
        _KEPT[key] = _rows(setting, of)
    return _KEPT[key]


def _rows(setting: dict[str, Any], of: tuple[str, ...]) -> list[Row]:
    world = World(setting)
    names = ("squared_distance", "squared_gradient", "excess_loss", *of)
    rows: list[Row] = [dict.fromkeys(names, F(0)) for _ in range(world.rounds + 1)]
    method = innermost(world.method)
    q = F(method["q"]) if method["name"] == "Safari" else F(1)
    coins = [True, False] if method["name"] == "Safari" else [True]
    further = 1 if of else 0
    for chance, sets in paths(world, world.rounds + further):
        for drawn in product(coins, repeat=world.rounds):
            share = chance * q ** sum(drawn) * (1 - q) ** (world.rounds - sum(drawn))
            if share:
                for row, x, here in zip(
                    rows, run(world, sets, list(drawn)), [*sets, ()], strict=False
                ):
                    for name in names:
                        row[name] += share * quantity(world, name, x, here)
    return rows


def quantity(world: World, name: str, x: Vector, here: tuple[int, ...]) -> F:
    """Return a quantity's expectation over noise, at a model along one branch."""
    mean = world.mean(world.alpha)
    offset = plus((1, x), (-1, fixed(world.star)))
    if name == "squared_distance":
        return sum(map(world.square, offset), F(0))
    if name == "squared_gradient":
        pulled = (plus(*((mean[a][b], [offset[b]]) for b in range(world.d)))[0]
                  for a in range(world.d))  # fmt: skip
        return sum(map(world.square, pulled), F(0))
    if name == "excess_loss":
        return world.loss(x, mean, world.star)
    if name == "biased_excess_loss":
        shares = importance(world)
        return world.loss(x, world.mean(shares), world.minimiser(shares))
    if name == "participant_excess_loss":
        losses = (
            world.loss(x, world.h[i], world.c[i])
            - world.loss(fixed(world.star), world.h[i], world.c[i])
            for i in here
        )
        return sum(losses, F(0)) / len(here)
    a = {**world.method, "lr": F(world.method["client_lr"])}
    sums = [(F(1, len(here)), local(world, i, x, a)[1]) for i in here]
    return sum(map(world.square, plus(*sums)), F(0))


def availability(world: World) -> list[F]:
    """Return how often each client takes part, in the long run."""
    p, n = world.participation, world.n
    if p["name"] == "UniformSubset":
        pool = n - len(p["excluded"])
        return [F(0) if i in p["excluded"] else F(p["size"], pool) for i in range(n)]
    if p["name"] == "FiniteChain":
        law = stationary(numbers(p["transition"]))
        return [sum((w for w, s in zip(law, p["sets"], strict=True) if i in s), F(0))
                for i in range(n)]  # fmt: skip
    if p["name"] == "Cyclic":
        return [F(a, b) for a, b in zip(p["active"], p["periods"], strict=True)]
    if p["name"] == "WaitingSubset":
        return [F(p["size"], n) / _mean_wait(numbers(p["availability"]), p["size"])] * n
    return list(numbers(p["availability"]))


def importance(world: World) -> list[F]:
    """Return CA-Fed's p."""
    q = numbers(innermost(world.method)["aggregation_weights"])
    shares = [a * b for a, b in zip(availability(world), q, strict=True)]
    return [share / sum(shares) for share in shares]


def root(value: F) -> F:
    """Return a square root to `DIGITS` digits, exact where it is a fraction."""
    exact = F(math.isqrt(value.numerator), math.isqrt(value.denominator))
    if exact**2 == value:
        return exact
    return F(math.isqrt(value.numerator * 10 ** (2 * DIGITS) // value.denominator), 10**DIGITS)


def numbers_of(setting: dict[str, Any]) -> Row:
    """Return those numbers of a setting that statements of the tests are about."""
    world = World(setting)
    method = innermost(world.method)
    far = [x - s for x, s in zip(world.x0, world.star, strict=True)]
    curvatures = [eigenvalue(h, sign) for h in world.h for sign in (-1, 1)]
    at = [world.loss(fixed(world.star), h, c) for h, c in zip(world.h, world.c, strict=True)]
    pulls = [world.exact_gradient(i, fixed(world.star)) for i in range(world.n)]
    found = {
        "L": max(curvatures), "mu": min(curvatures), "sigma": world.sigma,
        "server_sigma": world.server_sigma, "n_clients": F(world.n), "rounds": F(world.rounds),
        "squared_distance": sum((f * f for f in far), F(0)), "Gamma": max(at),
        "excess_loss": world.loss(fixed(world.x0), world.mean(world.alpha), world.star),
        "participants": sum(availability(world), F(0)),
        "is_warm": F(int("scaffold" in world.method)),
    }  # fmt: skip
    if all(h == world.h[0] for h in world.h):
        norms = [sum((v.get(0, F(0)) ** 2 for v in g), F(0)) for g in pulls]
        found["sigma_G"] = root(max(norms))
    for name in (
        "local_steps", "client_lr", "server_lr", "assist_lr", "q", "option", "cutoff",
    ):  # fmt: skip
        if method.get(name) is not None and not isinstance(method[name], list):
            found[name] = F(method[name])
    return found


def logarithm(value: F) -> F:
    """Return a natural logarithm to `DIGITS` digits."""
    with localcontext(prec=DIGITS + 10):
        return F((Decimal(value.numerator) / Decimal(value.denominator)).ln())


def eigenvalue(h: list[list[F]], sign: int) -> F:
    """Return the larger or smaller eigenvalue, from trace and determinant."""
    if len(h) == 1:
        return h[0][0]
    half, det = (h[0][0] + h[1][1]) / 2, h[0][0] * h[1][1] - h[0][1] * h[1][0]
    return half + sign * root(half**2 - det)


def power(base: F, exponent: F) -> F:
    """Return a power, to `DIGITS` digits where it is none of whole numbers."""
    if exponent.denominator == 1:
        return base ** int(exponent)
    with localcontext(prec=DIGITS + 10):
        high = Decimal(exponent.numerator) / Decimal(exponent.denominator)
        return F((high * (Decimal(base.numerator) / Decimal(base.denominator)).ln()).exp())


class _Powers(ast.NodeTransformer):
    """Python itself makes a float of a fraction to the power of a fraction."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Pow):
            return node
        return ast.Call(ast.Name("power", ast.Load()), [node.left, node.right], [])


def evaluated(formula: str, symbols: Row) -> Any:
    """Let Python itself evaluate a formula, every whole number in it made a fraction."""
    text = re.sub(r"(?<![\w.])(\d+)", r"F(\1)", formula)
    scope = {"F": F, "Eq": lambda a, b: a == b, "oo": float("inf"), **symbols}
    scope |= {"sqrt": root, "Min": min, "Max": max, "log": logarithm, "power": power}
    tree = ast.fix_missing_locations(_Powers().visit(ast.parse(text, mode="eval")))
    return eval(compile(tree, "formula", "eval"), {"__builtins__": {}}, scope)


def sides_of(document: dict[str, Any]) -> tuple[F, F, bool]:
    """Return (truth, bound, whether all conditions hold) of a certificate."""
    statement, setting = document["statement"], document["setting"]
    known = numbers_of(setting)
    symbols = {name: evaluated(text, known) for name, text in statement["symbols"].items()}
    for name, text in statement["definitions"].items():
        symbols[name] = evaluated(text, symbols)
    rules = statement["round_symbols"]
    every = [statement["quantity"], *rules.values()]
    rows = rows_of(setting, tuple(sorted({rule["of"] for rule in every} - set(STANDARD))))
    ruled = {name: chosen(rule, rows) for name, rule in rules.items()}
    met = all(
        is_met(text, {**symbols, **{k: v[min(r, len(v) - 1)] for k, v in ruled.items()}})
        for text in statement["conditions"].values()
        for r in range(max([1, *(len(v) for v in ruled.values())]))
    )
    truth = chosen(statement["quantity"], rows, symbols)[0]
    return truth, evaluated(statement["bound"], symbols), met


STANDARD = ("squared_distance", "squared_gradient", "excess_loss")


def chosen(rule: dict[str, Any], rows: list[Row], symbols: Row | None = None) -> list[F]:
    """Return a quantity in the rounds first .. R + end, reduced."""
    first, end = rule["rounds"]
    rounds = range(first, len(rows) + end)
    taken = [rows[r][rule["of"]] for r in rounds]
    if rule["reduction"] == "mean":
        text = rule.get("weights", "1")
        shares = [evaluated(text, {**(symbols or {}), "r": F(r)}) for r in rounds]
        if min(shares) < 0:
            raise ValueError("weights must not be negative")
        return [sum(s * v for s, v in zip(shares, taken, strict=True)) / sum(shares)]
    if rule["reduction"] == "every":
        return taken
    return [{"last": lambda: taken[-1], "max": lambda: max(taken), "min": lambda: min(taken)}[
        rule["reduction"]
    ]()]  # fmt: skip


def is_met(text: str, symbols: Row) -> bool:
    """Decide a condition; a division by zero leaves it undefined, hence not met."""
    try:
        found = evaluated(text, symbols)
    except ZeroDivisionError:
        return False
    if not isinstance(found, bool):
        raise TypeError(f"{text} is no condition")
    return found


# ---- legality, in its own words


def is_setting(w: Any) -> bool:
    """Tell whether a setting is one; whatever cannot even be read is none."""
    try:
        return set(w) == {"algorithm", "problem", "participation", "rounds", "x0"} and _is_legal(w)
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError, IndexError):
        return False


def _is_legal(w: Any) -> bool:
    p, n = w["problem"], len(w["problem"]["optima"])
    d = len(p["optima"][0])
    fields = {"hessians", "optima", "sigma", "server_sigma", "target_weights"}
    points = [w["x0"], *p["optima"]]
    return (
        set(p) == fields
        and all(isinstance(each, list) for each in (*points, p["hessians"], p["target_weights"]))
        and 1 <= n <= 16
        and d >= 1
        and all(len(point) == d for point in points)
        and all(is_number(text) for point in points for text in point)
        and len(p["hessians"]) == n
        and all(_is_hessian(h, d) for h in p["hessians"])
        and least(p["sigma"], 0)
        and least(p["server_sigma"], 0)
        and _are_shares(p["target_weights"], n)
        and is_count(w["rounds"])
        and w["rounds"] < 100
        and _is_method(w["algorithm"], n, d)
        and _is_participation(w["participation"], n)
    )


def is_number(text: Any) -> bool:
    """Tell whether a text is a fraction, and neither long nor divided by zero."""
    if not isinstance(text, str) or len(text) > 100:
        return False
    found = re.fullmatch(r"-?([0-9]+)(/[0-9]+)?", text, flags=re.ASCII)
    return found is not None and (found[2] is None or int(found[2][1:]) > 0)


def is_count(value: Any, first: int = 1) -> bool:
    return type(value) is int and first <= value < 10**6


def least(text: Any, bound: int, *, above: bool = False) -> bool:
    return is_number(text) and (F(text) > bound if above else F(text) >= bound)


def _are_shares(texts: Any, n: int) -> bool:
    positive = isinstance(texts, list) and all(least(text, 0, above=True) for text in texts)
    return positive and len(texts) == n and sum(map(F, texts)) == 1


def _is_hessian(h: Any, d: int) -> bool:
    if not isinstance(h, list) or len(h) != d or any(len(row) != d for row in h):
        return False
    if not all(isinstance(row, list) and all(map(is_number, row)) for row in h):
        return False
    m = numbers(h)
    if d == 1:
        return bool(m[0][0] > 0)
    return bool(m[0][1] == m[1][0] and m[0][0] > 0 and m[0][0] * m[1][1] > m[0][1] ** 2)


def _are_probabilities(texts: Any, n: int, *, above: bool = False) -> bool:
    is_list = isinstance(texts, list) and len(texts) == n
    return is_list and all(least(text, 0, above=above) and F(text) <= 1 for text in texts)


def _is_participation(p: Any, n: int) -> bool:
    kinds = {
        "UniformSubset": {"size", "excluded"}, "Bernoulli": {"availability"},
        "MarkovOnOff": {"availability", "correlation", "start"},
        "FiniteChain": {"transition", "sets", "start"}, "Cyclic": {"periods", "offsets", "active"},
        "WaitingSubset": {"availability", "size"},
    }  # fmt: skip
    if set(p) != {"name", *kinds[p["name"]]}:
        return False
    if p["name"] == "UniformSubset":
        pool = [i for i in range(n) if i not in p["excluded"]]
        distinct = len(pool) + len(p["excluded"]) == n and isinstance(p["excluded"], list)
        whole = all(is_count(i, 0) for i in p["excluded"])
        return distinct and whole and is_count(p["size"]) and p["size"] <= len(pool)
    if p["name"] == "Bernoulli":
        return _are_probabilities(p["availability"], n, above=True)
    if p["name"] == "WaitingSubset":
        legal = _are_probabilities(p["availability"], n, above=True)
        return legal and is_count(p["size"]) and p["size"] <= n
    if p["name"] == "Cyclic":
        return (
            all(isinstance(each, list) and len(each) == n
                for each in (p["periods"], p["offsets"], p["active"]))
            and all(is_count(period) and is_count(offset, 0) and is_count(a) and a <= period
                    for period, offset, a in zip(p["periods"], p["offsets"], p["active"],
                                                 strict=True))
            and math.lcm(*p["periods"]) <= 64
        )  # fmt: skip
    if p["name"] == "MarkovOnOff":
        start = p["start"]
        return (
            _are_probabilities(p["availability"], n)
            and isinstance(p["correlation"], list)
            and len(p["correlation"]) == n
            and all(is_number(text) for text in p["correlation"])
            and all(
                abs(F(b)) < 1 and F(a) * (1 - F(b)) <= 1 and F(b) + F(a) * (1 - F(b)) >= 0
                for a, b in zip(p["availability"], p["correlation"], strict=True)
            )
            and (start is None or (isinstance(start, list) and len(start) == n
                                   and all(is_count(s, 0) and s <= 1 for s in start)))
        )  # fmt: skip
    rows, size = p["transition"], len(p["transition"])
    return (
        isinstance(rows, list)
        and 1 <= size <= 64
        and all(_are_probabilities(row, size) and sum(map(F, row)) == 1 for row in rows)
        and _mixes(numbers(rows))
        and isinstance(p["sets"], list)
        and len(p["sets"]) == size
        and all(isinstance(s, list) and s == sorted(set(s)) for s in p["sets"])
        and all(is_count(i, 0) and i < n for s in p["sets"] for i in s)
        and (p["start"] is None or (is_count(p["start"], 0) and p["start"] < size))
    )


def _mixes(rows: list[list[F]]) -> bool:
    """Tell whether some power of the matrix is positive, by multiplying it often enough."""
    size, power = range(len(rows)), rows
    for _ in range(len(rows) ** 2):
        power = [[sum((power[i][k] * rows[k][j] for k in size), F(0)) for j in size] for i in size]
    return all(value > 0 for row in power for value in row)


_OWN: dict[str, dict[str, Any]] = {
    "FedAvg": {},
    "WeightedFedAvg": {"aggregation_weights": lambda v, n: (
        isinstance(v, list) and len(v) == n and all(least(x, 0) for x in v) and any(map(F, v)))},
    "FedAvgIS": {"availability": lambda v, n: _are_probabilities(v, n, above=True)},
    "Unbiased": {
        "availability": lambda v, n: _are_probabilities(v, n, above=True),
        "target_weights": _are_shares,
    },
    "FedAU": {"cutoff": lambda v, n: v is None or is_count(v)},
    "FedAR": {
        "cutoff": lambda v, n: v is None or is_count(v, 0),
        "weight": lambda v, n: (
            set(v) == {"name", "growth", "largest"} and v["name"] == "CappedLinear"
            and least(v["growth"], 0) and least(v["largest"], 1)),
    },
    "Mifa": {"start": lambda v, n: v in ("wait", "zero")},
    "FedVarp": {},
    "ClusterFedVarp": {"clusters": lambda v, n: (
        isinstance(v, list) and len(v) == n and all(is_count(c, 0) for c in v)
        and set(v) == set(range(max(v) + 1)))},
    "Scaffold": {"option": lambda v, n: is_count(v) and v <= 2},
    "Safari": {"q": lambda v, n: least(v, 0) and F(v) <= 1,
               "assist_lr": lambda v, n: least(v, 0, above=True)},
    "FedProx": {"proximal": lambda v, n: least(v, 0)},
    "FedNova": {},
    "F3ast": {
        "target_weights": _are_shares, "size": lambda v, n: is_count(v) and v <= n,
        "smoothing": lambda v, n: least(v, 0) and F(v) < 1,
        "availability": lambda v, n: v is None or _are_probabilities(v, n, above=True),
    },
}  # fmt: skip
for _name in ("FedProx", "FedNova"):
    _OWN[_name]["client_weights"] = lambda v, n: (
        v is None or _OWN["WeightedFedAvg"]["aggregation_weights"](v, n)
    )
_OWN["AdaFed"] = _OWN["Unbiased"]


def _are_steps(steps: Any) -> bool:
    if steps["name"] == "Constant":
        return set(steps) == {"name", "value"} and least(steps["value"], 0, above=True)
    harmonic = steps["name"] == "Harmonic" and set(steps) == {"name", "scale", "offset"}
    return harmonic and least(steps["scale"], 0, above=True) and least(steps["offset"], 0)


def _are_steps_of(given: Any, n: int) -> bool:
    """Tell whether these are local steps: a number, or one of each of n clients."""
    if isinstance(given, list):
        return len(given) == n and all(is_count(steps) and steps < 100 for steps in given)
    return is_count(given) and given < 100


def _is_method(a: Any, n: int, d: int, outer: tuple[str, ...] = ()) -> bool:
    name = a["name"]
    if name == "AveragedIterate":
        inside = _is_method(a["algorithm"], n, d, (name,))
        return set(a) == {"name", "algorithm", "weights"} and _are_steps(a["weights"]) and (
            inside and outer == ()
        )  # fmt: skip
    plain = outer in ((), ("AveragedIterate",))
    if name == "Scheduled":
        inside = _is_method(a["algorithm"], n, d, ("one",))
        return plain and set(a) == {"name", "algorithm", "step_sizes"} and (
            inside and _are_steps(a["step_sizes"])
        )  # fmt: skip
    if name == "ServerMomentum":
        inside = _is_method(a["algorithm"], n, d, ("one",))
        below = least(a["momentum"], 0) and F(a["momentum"]) < 1
        return plain and set(a) == {"name", "algorithm", "momentum"} and inside and below
    if name == "WarmStarted":
        inside = _is_method(a["scaffold"], n, d, ("one",)) and a["scaffold"]["name"] == "Scaffold"
        return plain and set(a) == {"name", "scaffold"} and inside
    if name == "LocalSgd":
        fields = {"name", "step_sizes", "local_steps", "aggregation_weights"}
        weighted = set(a) == fields and _are_shares(a["aggregation_weights"], n)
        return outer == () and weighted and _are_steps(a["step_sizes"]) and (
            is_count(a["local_steps"]) and a["local_steps"] < 100
        )  # fmt: skip
    own = _OWN[name]
    served = set() if name == "Safari" else {"server_lr"}
    return (
        set(a) == {"name", "client_lr", "local_steps", *served, *own}
        and least(a["client_lr"], 0, above=True)
        and _are_steps_of(a["local_steps"], n if name == "FedNova" else 0)
        and (not served or least(a["server_lr"], 0, above=True))
        and all(test(a[field], n) for field, test in own.items())
    )
