"""Write the figures of a report as pictures, drawn by an installed browser without a window.

Any Chromium will do; it gets a fresh profile, a page from disk, and no network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from sonde.cli.console import waiting, writing
from sonde.core.errors import MissingExtra, SondeError, UsageError
from sonde.core.reports import Report
from sonde.reporting.render.html import Format, picture_page, pictures

BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge",
    "microsoft-edge", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)  # fmt: skip
PATIENCE = 300  # seconds
OFFLINE = (
    "--headless", "--disable-gpu", "--no-first-run", "--no-default-browser-check",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND", "--force-color-profile=srgb",
    f"--virtual-time-budget={PATIENCE * 1000}",  # or it would not wait for promises
)  # fmt: skip


def write_figures(report: Report, folder: Path, format: Format) -> list[Path]:
    """Write every figure of a report into a folder under its id; the paths written."""
    if not report.figures:
        return []
    browser = find_browser()
    paths = [folder / name for name in file_names([f.id for f in report.figures], format)]
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with waiting("drawing the figures"):
            drawn = dumped(browser, picture_page(report.figures, format), folder)
        for path, content in zip(paths, pictures(report.figures, format, drawn), strict=True):
            path.write_bytes(content)
    return paths


def file_names(ids: list[str], format: str) -> list[str]:
    """A file name for each figure: its id as far as any system takes it, and all different.

    >>> file_names(["p-at-1", "a/b", "a:b"], "svg")
    ['p-at-1.svg', 'a-b.svg', 'a-b-2.svg']
    """
    made: list[str] = []
    for id in ids:
        stem = re.sub(r"[^\w.-]+", "-", id).strip(".-") or "figure"
        number = 1
        while (name := stem + (f"-{number}" if number > 1 else "") + f".{format}") in made:
            number += 1
        made.append(name)
    return made


def find_browser() -> str:
    """The browser that SONDE_BROWSER names, or any Chromium there is."""
    wanted = os.environ.get("SONDE_BROWSER", "")
    if wanted:
        found = shutil.which(wanted)
        if found is None:
            raise UsageError(f"SONDE_BROWSER names {wanted!r}, which is no program on this machine")
        return found
    for name in BROWSERS:
        found = shutil.which(name)
        if found is not None:
            return found
    raise MissingExtra(
        "pictures are drawn by a browser, and neither Chromium, Chrome nor Edge was found; install "
        "one (Debian: apt-get install chromium), name one in the environment variable "
        "SONDE_BROWSER, or write the HTML report with --html and save figures from there"
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
