"""The size of the package: public names and lines of code by subpackage.

python benchmarks/size.py [FOLDER]

A line counts as code unless it is blank, a comment or a docstring. Names are those in every public
module's ``__all__``, including modules that need an extra. Scripts that make this repository's
pages are counted, too.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

from fltheory.report.public_names import public_names

_NOTHING = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
SCRIPTS = Path("docs/scripts")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def lines_of_code(source: str) -> int:
    documented: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            documented.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NOTHING:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def main(root: Path) -> None:
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path in sorted((*root.rglob("*.py"), *SCRIPTS.glob("*.py"))):
        is_script = path.parent == SCRIPTS
        unit = str(SCRIPTS) if is_script else path.relative_to(root).parts[0].removesuffix(".py")
        lines[unit] += lines_of_code(path.read_text(encoding="utf-8"))
        files[unit] += 1
    for unit, count in lines.most_common():
        print(f"{count:6} lines in {files[unit]:3} files of {unit}")
    print(f"{sum(lines.values())} lines of code in {sum(files.values())} files")
    names = public_names()
    for module, listed in names.items():
        print(f"{len(listed):3} names of {module}: {', '.join(listed)}")
    print(f"{sum(map(len, names.values()))} public names")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "fltheory"))
