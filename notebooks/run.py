"""Execute the notebooks in this folder and keep their outputs: `make notebooks`.

What changes from run to run (times, versions, numbers of executions) is left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
TIMEOUT = 300


def executed(path: Path) -> nbformat.NotebookNode:
    """Return a notebook as it is after a fresh run."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
        record_timing=False,
    )
    client.execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def main() -> None:
    """Run those named on the command line, or all."""
    chosen = [Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb"))
    for path in chosen:
        nbformat.write(executed(path), path)
        print(path.name)


if __name__ == "__main__":
    main()
