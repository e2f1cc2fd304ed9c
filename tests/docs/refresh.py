"""Record what the program prints now on the pages: `python -m tests.docs.refresh [PAGE.md …]`.

The output of commands marked `<!-- run -->` is replaced. Output shown in part (with a line `…`) or
from a real model is not changed, but named when it no longer holds.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from .pages import LEFT_OUT, PAGES, Block, agrees, blocks, commands, plain
from .program import played


def refreshed(page: Path) -> tuple[str, list[str]]:
    """A page's new text, and what has to be looked at by hand."""
    with tempfile.TemporaryDirectory() as folder:
        printed: dict[int, list[str]] = {}
        for block, command, outcome in played(page, Path(folder)):
            if command is not None:
                printed.setdefault(block.start, []).append(outcome.printed)
    text = page.read_text(encoding="utf-8")
    complaints: list[str] = []
    for block in reversed(blocks(page)):
        if block.kind == "run" and block.start in printed and block.rest != "smollm2":
            new, wrong = _console(block, printed[block.start])
            text = text[: block.start] + new + text[block.stop :]
            complaints += wrong
    return text, complaints


def _console(block: Block, printed: list[str]) -> tuple[str, list[str]]:
    """The text of a block of commands with what they print now."""
    parts = block.text.split("$ ")
    new, complaints = parts[0], []
    for command, output in zip(commands(block), printed, strict=True):
        head = _head(block, command.text)
        if not command.shown or LEFT_OUT in command.shown:
            new += head + "".join(f"{line}\n" for line in command.shown)
            if command.shown and not agrees(command.shown, output):
                complaints.append(f"{block.where}: '{command.text}' prints something else now")
        else:
            new += head + "".join(f"{line}\n" for line in plain(output))
    return new, complaints


def _head(block: Block, command: str) -> str:
    """The command's own lines, as they are written in the block."""
    lines = block.text.splitlines(keepends=True)
    for i, line in enumerate(lines):
        head = line
        while head.endswith("\\\n"):
            i += 1
            head += lines[i]
        if line.startswith("$ ") and " ".join(head.replace("\\\n", " ")[2:].split()) == command:
            return head
    raise AssertionError(f"{block.where}: no such command: {command}")


def main(names: list[str]) -> int:
    """Refresh these pages, or all; ends with 1 where something has to be done by hand."""
    left: list[str] = []
    for page in (page for page in PAGES if not names or page.name in names):
        text, complaints = refreshed(page)
        left += complaints
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(f"refreshed {page.name}")
    for complaint in left:
        print(complaint)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
