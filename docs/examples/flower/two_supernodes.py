"""Run Flower's deployment on this machine with two SuperNodes, one killed and restarted.

    python docs/examples/flower/two_supernodes.py

A SuperLink and two SuperNodes run as separate processes that communicate over the loopback device.
Prints the server's log of each round. Takes two or three minutes.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
KILLED_IN, BACK_IN = 4, 8
SAID = re.compile(r"\[ROUND|client \d|participants|accuracy|rror|finished|waiting")
COLOUR = re.compile(r"\x1b\[\d+m")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def process(log: Path, *command: str, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Flower program, with all processes it starts, in a group that ends with the block."""
    with log.open("ab") as out:
        running = subprocess.Popen(
            [str(BIN / command[0]), *command[1:]],
            stdout=out,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )
    try:
        yield running
    finally:
        end(running)


def end(running: subprocess.Popen[bytes]) -> None:
    """Kill a program and all processes that it has started, without a chance to clean up."""
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def supernode(
    folder: Path, client: int, port: int, env: dict[str, str]
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return process(
        folder / f"supernode-{client}.log",
        "flower-supernode",
        "--insecure",
        f"--superlink=127.0.0.1:{port}",
        f"--port={free_port()}",
        f"--node-config=partition-id={client}",
        env=env,
    )


def started(folder: Path, running: ExitStack, env: dict[str, str]) -> list[subprocess.Popen[bytes]]:
    """Start SuperLink, SuperNodes and the run; return the SuperNodes."""
    port = free_port()
    (folder / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n\n[superlink.here]\n'
        f'address = "127.0.0.1:{port}"\ninsecure = true\n'
    )
    link = ["flower-superlink", "--insecure", f"--port={port}"]
    link.append("--disable-runtime-dependency-installation")
    running.enter_context(process(folder / "superlink.log", *link, env=env))
    time.sleep(5)
    nodes = [running.enter_context(supernode(folder, client, port, env)) for client in (0, 1)]
    run = ["flwr", "run", str(HERE), "--stream"]
    running.enter_context(process(folder / "server.log", *run, env=env))
    return nodes


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that nothing is left running
    with tempfile.TemporaryDirectory() as made, ExitStack() as running:
        folder = Path(made)
        env = {**os.environ, "FLWR_HOME": made, "PATH": f"{BIN}:{os.environ['PATH']}"}
        env |= {"FLWR_TELEMETRY_ENABLED": "0", "PYTHONPATH": str(HERE)}
        nodes = started(folder, running, env)
        begun = time.monotonic()

        def say(what: str) -> None:
            print(f"{time.monotonic() - begun:6.1f} s  {what}", flush=True)

        for rounds, line in followed(folder / "server.log", most=600):
            if SAID.search(line):
                say(line)
            if rounds == KILLED_IN and nodes[1].poll() is None:
                end(nodes[1])
                say("*** killed the SuperNode of client 1")
            if rounds == BACK_IN and len(nodes) == 2:
                port = int(str(nodes[0].args[2]).rpartition(":")[2])
                nodes.append(running.enter_context(supernode(folder, 1, port, env)))
                say("*** started it again")


def followed(log: Path, most: float) -> Iterator[tuple[int, str]]:
    """Yield a log's lines as they appear, with the number of rounds begun, until the run ends."""
    seen = rounds = 0
    until = time.monotonic() + most
    while time.monotonic() < until:
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        for line in lines[seen:]:
            rounds += "[ROUND" in line
            yield rounds, COLOUR.sub("", line)
            if "execution finished" in line:
                return
        seen = len(lines)
        time.sleep(0.5)


if __name__ == "__main__":
    main()
