"""Tables and figures on PAC learnability: error against samples, with and without server data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from fltheory import validation, verify
from fltheory.claims.curves import BoundCurve, of_draws
from fltheory.cli import run_script
from fltheory.commands.shared.console import table_console
from fltheory.commands.shared.options import FileUse, Seed
from fltheory.commands.shared.written_files import check_places, tell_written
from fltheory.learnability import FederatedSystem, impossibility
from fltheory.learnability.empirical_minimiser import (
    NoiselessLaw,
    sample_erm,
    sample_noiseless,
    sample_server_assisted,
)
from fltheory.learnability.system import ServerAssistedSystem
from fltheory.long_work.progress import Progress, shown_progress
from fltheory.report.figures.figure import figure
from fltheory.report.figures.figure_axes import write_figure
from fltheory.theorems import get
from fltheory.theorems.sa_fl.impossibility import draw_failures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FIGURES = ("pac-impossibility", "pac-server-data", "pac-no-worse")
_SIZES = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120)
_FEWEST_FAILURES = 5
_CLIENTS, _PRESENT = 10, 5
_OF_THEOREM_2 = {
    "clients only": "plain FL",
    "ten server samples": "SA-FL, $n_T = 10$",
    "clients miss the middle": "SA-FL, $n_T = n/10$",
    "noisy clients miss the middle": r"SA-FL, $n_T = n/10$, $\beta_Q = 1/2$",
}


@dataclass(frozen=True)
class BesideServer:
    """SA-FL compared with the server alone, for one number of server samples.

    Attributes
    ----------
    regime : str
    n_server, n_clients : int
    together, server_only : float
        Mean excess errors on P.
    first_condition : float
        Share of draws in which Theorem 3's first condition is met.
    offset_over_complexity : float
        ``eps_P(h_Q*)/A(n_T, delta)``, bounded if the second condition is met.
    """

    regime: str
    n_server: int
    n_clients: int
    together: float
    server_only: float
    first_condition: float
    offset_over_complexity: float


def compare_with_server(
    regime: str, system: ServerAssistedSystem, size: int, replicas: int, rng: np.random.Generator
) -> BesideServer:
    """Sample SA-FL and the server alone on the same data, and evaluate Theorem 3's conditions."""
    n_server, n_clients = system.split(size)
    drawn = sample_server_assisted(
        system.server,
        system.clients(size),
        n_server,
        n_clients,
        replicas,
        rng,
        target=system.target,
    )
    offset = float(system.target.excess(system.training(size).best))
    return BesideServer(
        regime,
        n_server,
        n_clients,
        float(drawn.together.mean()),
        float(drawn.server_only.mean()),
        float(drawn.no_worse_on_server.mean()),
        offset / system.complexity(size),
    )


def comparisons(
    sizes: Sequence[int] = (30, 100, 300, 1000),
    replicas: int = 400,
    seed: int = 0,
    *,
    progress: Progress | None = None,
) -> list[BesideServer]:
    """Return comparisons of SA-FL with the server alone on the regimes of Theorem 3."""
    regimes = get("pac/3").regimes
    pairs = [(name, size) for name in regimes for size in sizes]
    found = []
    for done, (name, size) in enumerate(pairs):
        if progress is not None:
            progress(done, len(pairs), f"{name}, n_T = {size}")
        system = regimes[name].setting
        assert isinstance(system, ServerAssistedSystem)
        rng = np.random.default_rng([seed, done])
        found.append(compare_with_server(name, system, size, replicas, rng))
    return found


def comparison_table(rows: Sequence[BesideServer]) -> Table:
    """Return a table comparing SA-FL with the server alone."""
    table = Table()
    headings = ("regime", "n_T", "n_S", "SA-FL", "server alone", "cond. 1", "eps_P(h_Q*)/A")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "regime" else "right")
    for row in rows:
        table.add_row(
            row.regime,
            f"{row.n_server:,}",
            f"{row.n_clients:,}",
            f"{row.together:.3g}",
            f"{row.server_only:.3g}",
            f"{row.first_condition:.0%}",
            f"{row.offset_over_complexity:.3g}",
        )
    return table


def impossibility_figure(*, replicas: int = 4000) -> Figure:
    """Draw the failure probability of every learner against n, without and with server samples.

    The claim is that of Theorem 1 with chosen samples, as in its proof.
    """
    plain = verify.curve(
        get("pac/1", reading="derived"),
        lambda n: FederatedSystem(_CLIENTS, int(n), _PRESENT),
        _SIZES,
        variable="samples of each client, $n$",
        replicas=replicas,
    )
    rng = np.random.default_rng([0, 1])
    curves = {
        "plain FL": plain,
        "SA-FL, 10 samples at the server": _assisted(plain, lambda n: 10, replicas, rng),
        "SA-FL, $n$ samples at the server": _assisted(plain, lambda n: n, replicas, rng),
    }
    return figure(curves, title=f"Theorem 1's construction, M = {_CLIENTS}, m = {_PRESENT}")


def _assisted(
    plain: BoundCurve, n_server: Callable[[int], int], replicas: int, rng: np.random.Generator
) -> BoundCurve:
    """Return the failure probability if the server has samples, too, which no claim is about.

    Except for the first, sizes at which failures are too rare for this many draws are left out.
    """
    systems = [FederatedSystem(_CLIENTS, int(n), _PRESENT) for n in plain.values]
    truth = np.array(
        [
            impossibility(_CLIENTS, one.n, _PRESENT).minimax_failure_with_server(n_server(one.n))
            for one in systems
        ]
    )
    seen = truth * replicas >= _FEWEST_FAILURES
    seen[0] = True
    draws = of_draws(
        [
            draw_failures(system, replicas, rng, n_server(system.n))
            for system, counted in zip(systems, seen, strict=True)
            if counted
        ]
    )
    return replace(
        plain,
        values=plain.values[seen],
        bound=np.full(int(seen.sum()), np.nan),
        outcomes=(),
        truth=truth[seen],
        truth_error=np.zeros(int(seen.sum())),
        **draws.fields(),
    )


def server_data_figure(*, replicas: int = 1000) -> Figure:
    """Draw Theorem 2's error over the number of samples, with its claimed order.

    It shows plain FL, and SA-FL with a share or a fixed number of samples at the server.
    """
    claim = get("pac/2")
    curves = {
        text: verify.curve(claim, claim.regimes[name].setting, replicas=replicas)
        for name, text in _OF_THEOREM_2.items()
    }
    # Clients cover half of the mass of P, as if half of them took part.
    return figure(curves, levels={r"Theorem 1's floor $(1-\omega)/8$": 1 / 16})


def no_worse_figure(*, replicas: int = 1000) -> Figure:
    """Draw SA-FL and the server alone, with Theorem 3's order, in a panel for each regime."""
    panels: dict[str, dict[str, BoundCurve]] = {}
    for name, regime in get("pac/3").regimes.items():
        curve = verify.curve(get("pac/3"), regime.setting, replicas=replicas)
        alone = _server_alone(curve, regime.setting, np.random.default_rng([0, len(panels)]))
        panels[name] = {"SA-FL": curve, "server alone": alone}
    return figure(panels)


def _server_alone(curve: BoundCurve, system: object, rng: np.random.Generator) -> BoundCurve:
    """Return the error of learning from the server's samples alone, exact without noise."""
    assert isinstance(system, ServerAssistedSystem)
    counts = [int(value) for value in curve.values]
    target, server, replicas = system.target, system.server, curve.replicas or 2
    noiseless = all(source.scale == source.beta == 1 for _, source in server.present)
    sides: dict[str, Any] = {"truth": None, "truth_error": None}
    if noiseless:
        truth = np.array([NoiselessLaw(target, [(server, n)]).mean() for n in counts])
        sides = {"truth": truth, "truth_error": np.zeros(len(counts))}
        draws = [sample_noiseless(target, [(server, n)], replicas, rng) for n in counts]
    else:
        draws = [sample_erm(target, server, n, replicas, rng).on_target for n in counts]
    return replace(
        curve,
        bound=np.full(len(counts), np.nan),
        outcomes=(),
        **sides,
        **of_draws(draws).fields(),
    )


def write_learnability_figures(folder: Path, suffix: str) -> list[Path]:
    """Write the three figures, as PNG or SVG; return their paths.

    Raises
    ------
    ValueError
        If the suffix is neither.
    """
    draws: tuple[Callable[[], Figure], ...] = (
        impossibility_figure,
        server_data_figure,
        no_worse_figure,
    )
    paths = [folder / f"{name}{suffix}" for name in FIGURES]
    for draw, path in zip(draws, paths, strict=True):
        write_figure(draw, path)
    return paths


def command(
    out: Annotated[
        Path,
        FileUse(writes=True, files="*.[ps][nv]g"),
        typer.Option(help="Where to write the figures: a folder."),
    ] = Path("out"),
    suffix: Annotated[str, typer.Option(help=".png or .svg")] = ".svg",
    replicas: Annotated[int, typer.Option(help="Sample size where sampled.")] = 400,
    seed: Seed = 0,
) -> None:
    """Draw error against samples, with and without a server's data; compare with it alone."""
    validation.one_of("suffix", suffix, (".png", ".svg"))
    validation.whole_number("replicas", replicas, at_least=2)
    validation.seed_number("seed", seed)
    check_places(out=out / f"figure{suffix}")
    with shown_progress() as advance:
        rows = comparisons(replicas=replicas, seed=seed, progress=advance)
    table_console().print(comparison_table(rows))
    for path in write_learnability_figures(out, suffix):
        tell_written(path)


if __name__ == "__main__":
    run_script(command)
