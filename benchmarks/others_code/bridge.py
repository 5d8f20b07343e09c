"""Run a library installed in its own environment.

`Library(python, shim)` starts the library's interpreter on `worker.py` and provides `run` callables
of the conformance contract. Gradients are requested over the pipe, so the library trains on the
given clients, whatever their losses; doubles written as JSON by Python are read back exactly, so
nothing is rounded on the way.
"""

import json
import subprocess
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


class LibraryError(RuntimeError):
    """An error raised by the library, with its own message."""


class Library:
    """One process of one library."""

    def __init__(self, python, shim):
        self.process = subprocess.Popen(
            [str(python), str(HERE / "worker.py"), shim],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.about = self._receive()

    def run_of(self, implementation):
        """Return `run(x0, clients, trace, ...)` of one implementation."""

        def run(x0, clients, trace, *, client_lr, local_steps, server_lr, **options):
            self._send(
                {
                    "implementation": implementation,
                    "x0": np.asarray(x0).tolist(),
                    "n_samples": [int(client.n_samples) for client in clients],
                    "trace": np.asarray(trace).astype(int).tolist(),
                    "client_lr": float(client_lr),
                    "local_steps": list(local_steps) if np.ndim(local_steps) else int(local_steps),
                    "server_lr": float(server_lr),
                    "options": {
                        key: value.tolist() if isinstance(value, np.ndarray) else value
                        for key, value in options.items()
                    },
                }
            )
            while True:
                message = self._receive()
                if "gradient" in message:
                    client = clients[message["client"]]
                    self._send(np.asarray(client.gradient(np.array(message["gradient"]))).tolist())
                elif "error" in message:
                    raise LibraryError(message["error"])
                else:
                    return np.array(message["models"], dtype=float)

        run.__name__ = implementation
        return run

    def close(self):
        """End the process."""
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=30)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def _send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def _receive(self):
        line = self.process.stdout.readline()
        if not line:
            raise LibraryError(f"the library's process ended with status {self.process.wait()}")
        return json.loads(line)
