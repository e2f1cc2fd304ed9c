"""Which files of sonde a command passes through: `python -m tests.docs.crossed run belief …`.

A file counts if a function of it is called, in whatever thread; to be imported is not enough.
Prints its path and what its docstring says first, a row of a table each.
"""

from __future__ import annotations

import ast
import contextlib
import io
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

NO_FUNCTION = ("<module>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>")


def crossed(words: list[str]) -> list[Path]:
    """The files, in the order of their names."""
    import sonde
    from sonde.cli.main import main

    found: set[tuple[str, str]] = set()

    def called(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            found.add((frame.f_code.co_filename, frame.f_code.co_name))

    threading.setprofile(called)
    sys.setprofile(called)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = main(words)
    sys.setprofile(None)
    assert code == 0, f"sonde {' '.join(words)} ends with {code}"
    root = Path(sonde.__file__).parent
    calls = ((Path(file), name) for file, name in found)
    own = {p for p, n in calls if p.suffix == ".py" and n not in NO_FUNCTION and not n[0].isupper()}
    return sorted(path.relative_to(root) for path in own if path.is_relative_to(root))


def said_of(path: Path) -> str:
    """The first sentence of a file of sonde."""
    import sonde

    text = (Path(sonde.__file__).parent / path).read_text(encoding="utf-8")
    said = " ".join((ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0].split())
    return said.split(". ")[0].rstrip(".:")


if __name__ == "__main__":
    print("| file | what it does |\n| --- | --- |")
    for path in crossed(sys.argv[1:]):
        print(f"| `{path.as_posix()}` | {said_of(path).replace('|', '/')} |")
