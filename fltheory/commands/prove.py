"""``fltheory prove``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fltheory.commands.shared.exit_status import as_bad_input
from fltheory.commands.shared.options import PrintedReading, Rocq, TheoremId, written
from fltheory.commands.shared.preparation import next_command, the_id
from fltheory.commands.shared.written_files import tell_written, write_theorem
from fltheory.long_work.progress import shown_progress

if TYPE_CHECKING:
    from fltheory.engines import Setting
    from fltheory.worst_case.proof.proof_file import ProofFile


def command(
    theorem: TheoremId,
    reading: PrintedReading = "printed",
    eligible: Annotated[int, typer.Option(help="Number of clients that can be drawn.")] = 10,
    excluded: Annotated[int, typer.Option(help="Number of clients that never take part.")] = 0,
    participants: Annotated[
        str | None,
        typer.Option(
            help="m, clients drawn per round; 4 by default, or all if the theorem requires it. "
            "'any' draws 4 clients and takes the worst number of excluded clients."
        ),
    ] = None,
    local_steps: Annotated[
        int | None,
        typer.Option(
            help="Local steps per round, at most 60 (40 take minutes); 5 by default, or 1 if the "
            "theorem requires it."
        ),
    ] = None,
    q: Annotated[
        str | None,
        typer.Option(
            help="Probability, a fraction, that clients train in a round, not the server; 1/2 by "
            "default, or 1 (plain FedAvg) for a theorem without a server's step."
        ),
    ] = None,
    client_lr: Annotated[
        str | None,
        typer.Option(
            help="eta_c, a fraction; by default 1/(8LK), or less if the theorem requires it."
        ),
    ] = None,
    assist_lr: Annotated[
        str | None, typer.Option(help="eta_s; by default coupled as in the theorem.")
    ] = None,
    smoothness: Annotated[str, typer.Option("--L", help="Smoothness of the clients.")] = "1",
    convexity: Annotated[
        str | None,
        typer.Option(
            "--mu",
            help="Strong convexity; by default 1/10, or none for bounds on gradients of F.",
        ),
    ] = None,
    heterogeneity: Annotated[
        str,
        typer.Option(
            help="Where client dissimilarity is bounded: 'everywhere' (sigma_G) or only at the "
            "'optimum'."
        ),
    ] = "everywhere",
    sigma: Annotated[
        str | None,
        typer.Option(
            help="Noise of the clients' gradients; 0 by default, or 1 if the bound's floor "
            "comes from noise alone."
        ),
    ] = None,
    server_sigma: Annotated[str, typer.Option(help="Noise of the server's gradients.")] = "0",
    availability: Annotated[
        str | None,
        typer.Option(
            help="ca-fed/1 and /2: pi of the four clients, one fraction or four separated by "
            "commas; 0.5 by default."
        ),
    ] = None,
    correlation: Annotated[
        str | None, typer.Option(help="ca-fed/1 and /2: lambda of on-off chains; 0.9 by default.")
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="ca-fed/1 and /2: q of the four clients; 1/(4 pi) by default."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Number of rounds, T in ca-fed/1 and /2; 300 by default.")
    ] = None,
    rich: Annotated[
        bool,
        typer.Option(
            help="ca-fed/1 and /2 with exact gradients: prove with a Lyapunov function "
            "that also uses gradients at the model. Takes seconds to a minute longer; never worse."
        ),
    ] = False,
    regime: Annotated[
        str | None,
        typer.Option(help="Regime to start from, for theorems about whole runs."),
    ] = None,
    out: Annotated[
        Path | None, written(".json"), typer.Option(help="Where to write the certificate.")
    ] = None,
    rocq: Rocq = None,
) -> None:
    """Prove a theorem's bound for every client loss in a class; compare the best provable.

    Covered: bounds E||x_R - x*||^2 <= rate^R D_0^2 + floor, bounds Delta_0 / (decrease R) + floor
    on the mean of E||grad F||^2, and some theorems on whole runs: see docs/every-loss.md.
    """
    from fltheory import theorems as registry
    from fltheory.report.terminal.proof_text import audit_text
    from fltheory.worst_case import SafariRound, audit
    from fltheory.worst_case.audits.audit import worst_exclusion
    from fltheory.worst_case.audits.run_audit import RUN_AUDITS
    from fltheory.worst_case.audits.theorem_form import form_of
    from fltheory.worst_case.proof.rocq_export import refuse_large

    name = the_id(theorem)
    chain: dict[str, object] = {
        "--availability": availability,
        "--correlation": correlation,
        "--weights": weights,
        "--rounds": rounds,
    }
    drawn: dict[str, object] = {
        "--participants": participants,
        "--q": q,
        "--assist-lr": assist_lr,
        "--mu": convexity,
    }
    of_round = {"--local-steps": local_steps, "--client-lr": client_lr, "--sigma": sigma}
    if name in RUN_AUDITS:
        of_clients = name in ("ca-fed/1", "ca-fed/2")
        others = chain | of_round | {"--rich": rich or None}
        _refuse(drawn | ({"--regime": regime} if of_clients else others), name)
        setting = _four_clients(chain, local_steps, client_lr, sigma) if of_clients else None
        if rocq is not None and setting is not None:
            _refuse_for_rocq(setting, rich)
        _prove_run(name, setting, regime, rich, out, rocq)
        return
    _refuse(chain | {"--regime": regime, "--rich": rich or None}, name)
    statement = registry.get(name, reading)
    form = form_of(statement)
    # Without noise, a floor that consists only of noise would be missing from the proof.
    noise = sigma or ("1" if form.floor_is_noise(statement) else "0")
    clients = form.measure.clients(smoothness, convexity, heterogeneity, noise, server_sigma)
    played = SafariRound(
        eligible=eligible,
        excluded=excluded,
        participants=_whole("--participants", participants),
        local_steps=local_steps,
        q=q,
        client_lr=client_lr,
        assist_lr=assist_lr,
    )
    if rocq is not None:
        form.check(statement, clients)
        a_round = played.coupled(statement, clients)  # type: ignore[arg-type]
        refuse_large(a_round.local_steps, a_round.participants)
    if participants == "any":
        played = worst_exclusion(statement, clients, played)  # type: ignore[arg-type]
        print(f"worst case: {played.excluded} of {eligible + excluded} clients excluded")
    with shown_progress("proving in fractions", each=True) as advance:
        found = audit(statement, clients, played, progress=advance)  # type: ignore[arg-type]
    print(audit_text(found))
    _write(found.all_rounds.certificate, out, rocq)


def _write(certificate: ProofFile[Any] | None, out: Path | None, rocq: Path | None) -> None:
    if certificate is None:
        for file in filter(None, (out, rocq)):
            print(f"nothing written to {file}: nothing was proved")
        return
    if out is not None:
        certificate.write(out)
        tell_written(out)
        print(
            "check it again (the file states the bound, not the theorem's name): "
            f"{next_command('certify', out)}"
        )
    elif rocq is None:
        print("--out FILE writes the certificate; fltheory certify FILE checks it")
    write_theorem(certificate.rocq_theorem, rocq)


def _refuse(options: Mapping[str, object], theorem: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} must be left out for {theorem}, which does not use it")


def _prove_run(
    theorem: str,
    setting: Setting | None,
    regime: str | None,
    rich: bool,
    out: Path | None,
    rocq: Path | None,
) -> None:
    """Compare a bound on a run with the proved bound and the truth, on one setting."""
    from fltheory.report.terminal.proof_text import run_text
    from fltheory.worst_case.audits.run_audit import audit_run

    with shown_progress("proving in fractions"), as_bad_input(ArithmeticError):
        found = audit_run(theorem, setting, regime=regime, rich=rich)
    print(run_text(found))
    proofs = found.proved.proofs
    if len(proofs) < 2:
        _write(proofs[0] if proofs else None, out, rocq)
    elif out is not None or rocq is not None:
        for number, proof in enumerate(proofs, 1):
            _write(
                proof, *(file and file.with_stem(f"{file.stem}-{number}") for file in (out, rocq))
            )


def _refuse_for_rocq(setting: Setting, rich: bool) -> None:
    """Refuse, before a search, a setting whose proof could not be exported."""
    from fltheory.worst_case.audits.run_audit import mean_model_round
    from fltheory.worst_case.proof.rocq_export import refuse_rounds

    if rich:
        raise ValueError(
            "--rich must be left out with --rocq, whose library has only the plain proof"
        )
    refuse_rounds(mean_model_round(setting), noisy=setting.problem.sigma > 0)


def _four_clients(
    chain: Mapping[str, Any], local_steps: int | None, client_lr: str | None, sigma: str | None
) -> Setting:
    """Return CA-Fed's own four clients."""
    from fltheory.algorithms import Constant
    from fltheory.theorems.ca_fed.regimes import four_clients
    from fltheory.worst_case.rounds.client_class import exact

    given, correlation = chain["--weights"], exact("--correlation", chain["--correlation"] or "0.9")
    if correlation >= 1:
        raise ValueError(f"--correlation must be below 1, got {chain['--correlation']}")
    return four_clients(
        _four("--availability", chain["--availability"] or "1/2", above=0),
        float(correlation),
        steps=Constant(float(exact("--client-lr", client_lr or "1/10", above=0))),
        local_steps=_count("--local-steps", local_steps, 1),
        rounds=_count("--rounds", chain["--rounds"], 300),
        sigma=float(exact("--sigma", sigma or "0")),
        q=None if given is None else _four("--weights", given),
    )


def _count(name: str, given: int | None, default: int) -> int:
    if given is not None and given < 1:
        raise ValueError(f"{name} must be at least 1, got {given}")
    return default if given is None else given


def _whole(name: str, text: str | None) -> int | None:
    if text is None or text == "any":
        return None
    if not text.isdecimal():
        raise ValueError(f"{name} must be a whole number, or 'any', got {text!r}")
    return int(text)


def _four(name: str, text: str, above: int | None = None) -> list[float]:
    from fltheory.worst_case.rounds.client_class import exact

    numbers = [float(exact(name, part.strip(), above=above)) for part in text.split(",")]
    if len(numbers) not in (1, 4):
        raise ValueError(f"{name} must be one fraction or four separated by commas, got {text!r}")
    return numbers * (4 // len(numbers))
