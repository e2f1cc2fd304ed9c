"""Read the documentation: its pages, fenced blocks, tables, headings and links.

A comment on the line before a fenced block says what the block is:

    <!-- run -->            its `$ ` commands are run and the lines after each are what they print
    <!-- run: smollm2 -->   the same, where SmolLM2 is installed; what they print is not compared
    <!-- run: peft -->      the same, where peft is installed (or xllamacpp)
    <!-- run: server -->    the same, where a server is at http://127.0.0.1:8000, its model in tiny/
    <!-- run: exit 5 -->    the same, and each command ends with that exit code
    <!-- file: a/b.txt -->  a file that the page's commands find under that name

A line `…` in what is printed stands for lines left out. Knows nothing of sonde.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md")))
LEFT_OUT = "…"

FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block; `start` and `stop` are where its text stands in the page."""

    page: Path
    line: int
    mark: str
    language: str
    text: str
    start: int
    stop: int

    @property
    def where(self) -> str:
        """The place to look at when something is wrong."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def kind(self) -> str:
        """What stands before the colon of the mark."""
        return self.mark.partition(":")[0].strip()

    @property
    def rest(self) -> str:
        """What stands after the colon of the mark."""
        return self.mark.partition(":")[2].strip()

    @property
    def exit_code(self) -> int:
        """How the block's commands must end."""
        return int(self.rest.split()[1]) if self.rest.startswith("exit ") else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A shell command of a block with the lines that are shown below it."""

    text: str
    shown: tuple[str, ...]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page=page,
            line=text.count("\n", 0, found.start("text")),
            mark=found["mark"] or "",
            language=found["language"],
            text=found["text"],
            start=found.start("text"),
            stop=found.end("text"),
        )
        for found in FENCE.finditer(text)
    ]


def commands(block: Block) -> list[Command]:
    r"""The lines of a console block that start with `$ `; a `\` at the end carries on."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            found.append((" ".join(line[2:].split()), []))
        elif found:
            found[-1][1].append(line.rstrip())
    return [Command(text=text, shown=tuple(shown)) for text, shown in found]


def shell_blocks() -> Iterator[Block]:
    """Every block of commands in the documentation."""
    for page in PAGES:
        yield from (b for b in blocks(page) if b.language in ("console", "sh"))


def section(page: Path, heading: str) -> str:
    """The text under a heading, up to the next one of any level."""
    text = page.read_text(encoding="utf-8")
    found = re.search(rf"^#+ {re.escape(heading)}$\n(.*?)(?=^#+ |\Z)", text, re.M | re.S)
    assert found, f"{page.relative_to(ROOT)} has no heading {heading!r}"
    return found[1]


def rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of the table under a heading, less its head."""
    lines = [line for line in section(page, heading).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def first_cells(page: Path, heading: str) -> list[str]:
    """The names in the first column of the table under a heading."""
    return [row[0].strip("`") for row in rows(page, heading)]


def anchors(page: Path) -> set[str]:
    """What a link to a heading of the page may say after `#`."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def links(page: Path) -> list[str]:
    """Where a page links to."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def agrees(shown: tuple[str, ...], printed: str) -> bool:
    """Whether the shown lines are what was printed; `…` stands for any lines left out.

    >>> agrees(("a", "…", "d"), "a\\nb\\nc\\nd\\n"), agrees(("a", "c"), "a\\nb\\nc\\n")
    (True, False)
    """
    pattern = "".join(
        r"(?:[^\n]*\n)*?" if line.strip() == LEFT_OUT else re.escape(line) + r"\n"
        for line in _trimmed(shown)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in plain(printed))) is not None


def plain(printed: str) -> tuple[str, ...]:
    """Printed lines without trailing spaces and without empty lines at either end."""
    return _trimmed(tuple(line.rstrip() for line in printed.splitlines()))


def _trimmed(lines: tuple[str, ...]) -> tuple[str, ...]:
    start, stop = 0, len(lines)
    while start < stop and not lines[start]:
        start += 1
    while stop > start and not lines[stop - 1]:
        stop -= 1
    return lines[start:stop]
