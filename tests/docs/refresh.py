"""Write what the program prints now into the documentation: `python -m tests.docs.refresh`.

Help texts, tables that are made, and what commands marked `<!-- run -->` print, are replaced. What
is shown in part (with a line `…`) or comes from a real model is left alone and named where it no
longer holds. Pages can be named: `python -m tests.docs.refresh belief.md report.md`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from .pages import CROSSED, LEFT_OUT, METRICS, PAGES, USES, Block, agrees, blocks, commands, plain
from .program import crossed_table, help_text, metrics_table, played, uses_table

TABLES = ((USES, uses_table), (METRICS, metrics_table), (CROSSED, crossed_table))


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
        if block.kind == "help":
            text = text[: block.start] + help_text(block.rest) + text[block.stop :]
        elif block.kind == "run" and block.start in printed and block.rest != "smollm2":
            new, wrong = _console(block, printed[block.start])
            text = text[: block.start] + new + text[block.stop :]
            complaints += wrong
    for pattern, table in TABLES:
        text = pattern.sub(table, text)
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
