"""The library's side of `bridge.py`: serve runs of one shim over standard input and output."""

import importlib
import json
import os
import sys
import traceback
from importlib import metadata
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

# Libraries print, but their output must not reach the pipe.
pipe = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def send(message):
    pipe.write(json.dumps(message) + "\n")
    pipe.flush()


class Client:
    """A client of the suite whose gradients are requested over the pipe."""

    def __init__(self, index, n_samples):
        self.index, self.n_samples = index, n_samples

    def gradient(self, x):
        """Return the gradient at x."""
        send({"client": self.index, "gradient": np.asarray(x, dtype=float).tolist()})
        return np.array(json.loads(sys.stdin.readline()), dtype=float)

    def loss(self, x):
        """Return 0, as no library's model depends on the value."""
        return 0.0


def with_data(request):
    """Return the trace without rounds in which all participants have weight 0."""
    trace = np.array(request["trace"], dtype=bool)
    if request["options"].get("weighting") == "n_samples" or isinstance(
        request["local_steps"], list
    ):
        trace[trace @ np.array(request["n_samples"]) == 0] = False
    return trace


def main():
    shim = importlib.import_module("shims." + sys.argv[1])
    send(
        {
            "version": metadata.version(shim.DISTRIBUTION),
            "implementations": sorted(shim.IMPLEMENTATIONS),
        }
    )
    for line in sys.stdin:
        request = json.loads(line)
        steps = request["local_steps"]
        try:
            models = shim.IMPLEMENTATIONS[request["implementation"]](
                np.array(request["x0"], dtype=float),
                [Client(index, count) for index, count in enumerate(request["n_samples"])],
                with_data(request),
                client_lr=request["client_lr"],
                local_steps=tuple(steps) if isinstance(steps, list) else steps,
                server_lr=request["server_lr"],
                **request["options"],
            )
            send({"models": np.asarray(models, dtype=float).tolist()})
        except Exception as error:
            traceback.print_exc()
            send({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
