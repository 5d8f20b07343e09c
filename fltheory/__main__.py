"""What the command ``fltheory`` and ``python -m fltheory`` run."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; an interrupt while it is still being loaded is one line as well."""
    try:
        from fltheory.cli import main as command
    except KeyboardInterrupt:
        print("fltheory: interrupted, nothing was written", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    command()


if __name__ == "__main__":
    main()
