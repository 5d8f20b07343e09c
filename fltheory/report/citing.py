"""How a verdict is cited and a transcription corrected: said wherever verdicts are shown."""

from fltheory import __version__

HOW_TO_CITE = (
    "A verdict is about a statement in one reading, so cite both, with the version: "
    f'"`fedavg-li/1` (printed), fltheory {__version__}", and the paper itself for the theorem. '
    "`CITATION.cff` in the repository's root has the software's entry. `fltheory verify "
    "fedavg-li/1` recomputes the verdicts."
)
HOW_TO_CORRECT = (
    "The transcriptions are ours, and errors in them are ours. Send the statement's id, what the "
    "paper says, and where (version, page, equation), as an issue or a change of the paper's file "
    "in `fltheory/theorems/`; corrections come before everything else. A verdict that rests on a "
    "doubtful passage is not counted, and the statement's note names the passage."
)
