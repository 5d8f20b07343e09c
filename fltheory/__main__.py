"""The entry point of the command ``fltheory`` and of ``python -m fltheory``."""

from __future__ import annotations

from fltheory.commands.shared.exit_status import exit_interrupted


def main() -> None:
    """Run the command line; an interrupt while it is being loaded prints only one line, too."""
    try:
        from fltheory.cli import main as command
    except KeyboardInterrupt:
        exit_interrupted()
    command()


if __name__ == "__main__":
    main()
