"""Reports of the former kind in the terminal, as HTML, as JSON; goes with `sonde.reporting`.

Figures become PNG pictures by an installed browser without a window. Any Chromium will do; it gets
a fresh profile, a page from disk, and no network. SVG needs none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sonde.cli.console import output, print_json, say, waiting, writing
from sonde.cli.options import option
from sonde.core.errors import MissingExtra, SondeError, UsageError
from sonde.core.files import whole

if TYPE_CHECKING:
    from sonde.core.reports import Report

BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge",
    "microsoft-edge", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)  # fmt: skip
PATIENCE = 300  # seconds
Format = Literal["svg", "png"]
OFFLINE = (
    "--headless", "--disable-gpu", "--no-first-run", "--no-default-browser-check",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND", "--force-color-profile=srgb",
    f"--virtual-time-budget={PATIENCE * 1000}",  # or it would not wait for promises
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureOptions:
    """What is written of a report's figures."""

    figures: Path | None = option("Write every figure as a picture into this folder.", None)
    format: Format = option("The format of the pictures; png needs a browser.", "svg")


NO_PICTURES = PictureOptions()


def show_report(
    report: Report,
    provenance: Mapping[str, object],
    lines: Sequence[str],
    *,
    html: Path | None = None,
    pictures: PictureOptions = NO_PICTURES,
    as_json: bool = False,
    brief: bool = False,
) -> None:
    """Show a report and write what is wanted of it; `lines` say at the end where it comes from."""
    if html is not None:
        write_html(report, provenance, html)
    folder = pictures.figures
    drawn = [] if folder is None else write_figures(report, folder, pictures.format)
    if as_json:
        from sonde.reporting.render.json import as_json as to_json

        print_json(to_json(report, provenance))
        return
    from sonde.reporting.render.terminal import show

    show(report, output(), brief=brief)
    written = [] if html is None else [f"report: {html}"]
    for line in (*lines, *written, *(f"figure: {path}" for path in drawn)):
        say(line, soft_wrap=True)
    if folder is not None and not drawn:
        say("figures: this report has none")


def write_html(report: Report, provenance: Mapping[str, object], path: Path) -> None:
    """Write the self-contained page."""
    from sonde.reporting.render.html import page

    with waiting("writing the HTML report"):
        text = page(report, provenance)
    with writing(path), whole(path) as file:
        file.write(text.encode())


def write_figures(report: Report, folder: Path, format: Format) -> list[Path]:
    """Write every figure of a report into a folder under its id; the paths written."""
    from sonde.reporting.build.parts import trimmed
    from sonde.reporting.render.figures import svg
    from sonde.reporting.render.html import picture_page, read_pictures

    figures = trimmed(report).figures
    if not figures:
        return []
    browser = find_browser() if format == "png" else ""
    paths = [folder / name for name in file_names([f.id for f in figures], format)]
    drawings = [svg(figure) for figure in figures]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        contents = [f"{drawing}\n".encode() for drawing in drawings]
        if browser:
            with waiting("drawing the figures"):
                drawn = dumped(browser, picture_page(drawings), folder)
            contents = read_pictures(len(drawings), drawn)
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
    return paths


def file_names(ids: list[str], format: str) -> list[str]:
    """A file name for each figure: its id as far as any system takes it, and all different.

    >>> file_names(["p-at-1", "a/b", "a:b"], "svg")
    ['p-at-1.svg', 'a-b.svg', 'a-b-2.svg']
    """
    names: list[str] = []
    for id in ids:
        stem = re.sub(r"[^\w.-]+", "-", id).strip(".-") or "figure"
        number = 1
        while (name := stem + (f"-{number}" if number > 1 else "") + f".{format}") in names:
            number += 1
        names.append(name)
    return names


def find_browser() -> str:
    """The browser that SONDE_BROWSER names, or any Chromium there is."""
    wanted = os.environ.get("SONDE_BROWSER", "")
    programs = map(shutil.which, [wanted] if wanted else BROWSERS)
    program = next(filter(None, programs), None)
    if program is not None:
        return program
    if wanted:
        raise UsageError(f"SONDE_BROWSER names {wanted!r}, which is no program on this machine")
    raise MissingExtra(
        "PNG pictures are made by a browser, and neither Chromium, Chrome nor Edge was found; "
        "install one (Debian: apt-get install chromium), name one in the environment variable "
        "SONDE_BROWSER, or write SVG with --format svg, which needs none"
    )


def dumped(browser: str, page: str, folder: Path) -> str:
    """The page as the browser leaves it when its scripts have run.

    It is opened from within `folder`, because some browsers are kept out of the system's
    temporary folder.
    """
    with tempfile.TemporaryDirectory(
        prefix="sonde-", dir=folder.resolve(), ignore_cleanup_errors=True
    ) as place:
        path = Path(place) / "figures.html"
        path.write_text(page, encoding="utf-8", errors="replace")
        return printed([browser, *OFFLINE, *without_sandbox(), f"--user-data-dir={place}/profile",
                        "--dump-dom", path.as_uri()])  # fmt: skip


def printed(command: list[str]) -> str:
    """What a browser prints."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SondeError(f"the browser {command[0]} could not draw the figures: {error}") from error
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        raise SondeError(
            f"the browser {command[0]} ended with {done.returncode}: {last[0]}; name another one "
            "in the environment variable SONDE_BROWSER"
        )
    return done.stdout.decode("utf-8", errors="replace")


def without_sandbox() -> list[str]:
    """Chromium refuses to run as root with its sandbox; the page is ours and fetches nothing."""
    return ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
