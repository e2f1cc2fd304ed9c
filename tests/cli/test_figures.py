"""`sonde report --figures`: every figure as a picture of its own, SVG without a browser."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from sonde.cli.former_report import write_figures
from sonde.core.reports import Report
from tests.command import Sonde
from tests.reporting.sample import belief, hostile

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def run(sonde: Sonde, data: Path, tmp_path: Path) -> Path:
    """A finished run with one figure."""
    out = tmp_path / "out"
    assert sonde("run", "lama", "-m", "control:majority", "-d", data, "-o", out).code == 0
    return out


def test_every_figure_becomes_a_drawing_and_the_same_one_each_time(tmp_path: Path) -> None:
    first = write_figures(belief(), tmp_path / "a", "svg")
    assert [path.name for path in first] == [f"{figure.id}.svg" for figure in belief().figures]
    assert sorted((tmp_path / "a").iterdir()) == sorted(first)
    for path, again in zip(first, write_figures(belief(), tmp_path / "b", "svg"), strict=True):
        assert path.read_bytes() == again.read_bytes()


def test_a_drawing_stands_alone_with_title_and_description(tmp_path: Path) -> None:
    for path, figure in zip(
        write_figures(belief(), tmp_path, "svg"), belief().figures, strict=True
    ):
        root = ElementTree.parse(path).getroot()
        assert root.findtext(f"{SVG}title") == figure.title
        assert root.findtext(f"{SVG}desc") == (figure.note or None)
        words = "".join(root.itertext())
        assert words.count(figure.title.split()[0]) >= 2  # for those who see it, too
        for node in root.iter():
            for key, value in node.attrib.items():
                assert "href" not in key or value.startswith(("#", "data:"))


@pytest.mark.browser
def test_pictures_as_png_are_png(tmp_path: Path) -> None:
    for path in write_figures(belief(), tmp_path, "png"):
        content = path.read_bytes()
        assert path.suffix == ".png" and content.startswith(b"\x89PNG") and len(content) > 5000


def test_hostile_text_stays_text_in_a_drawing(tmp_path: Path) -> None:
    for path in write_figures(hostile(), tmp_path, "svg"):
        tags = {node.tag for node in ElementTree.parse(path).iter()}
        assert not tags & {f"{SVG}script", f"{SVG}img", f"{SVG}foreignObject"}


def test_the_command_names_what_it_wrote(sonde: Sonde, run: Path, tmp_path: Path) -> None:
    done = sonde("report", run, "--figures", tmp_path / "pictures")
    assert done.code == 0
    (path,) = (tmp_path / "pictures").iterdir()
    assert path.name in done.out and path.suffix == ".svg"


def test_a_machine_without_a_browser_gets_told_what_to_do(
    sonde: Sonde, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sonde.cli.former_report.BROWSERS", ("chromium",))
    done = sonde("report", run, "--figures", tmp_path / "pictures", "--format", "png")
    assert done.code == 4
    assert "apt-get install chromium" in done.err and "--format svg" in done.err
    assert sonde("report", run, "--figures", tmp_path / "pictures").code == 0


@pytest.mark.parametrize(
    ("program", "code", "words"),
    [("false", 1, "ended with 1"), ("true", 1, "did not finish"), ("none-such", 2, "no program")],
)
def test_a_browser_that_fails_is_named_with_what_to_do(
    sonde: Sonde, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    program: str, code: int, words: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("SONDE_BROWSER", program)
    done = sonde("report", run, "--figures", tmp_path / "pictures", "--format", "png")
    assert done.code == code and words in done.err and "SONDE_BROWSER" in done.err


def test_a_report_without_figures_writes_nothing(tmp_path: Path) -> None:
    bare = Report(title="Bare", summary="", estimates={})
    assert write_figures(bare, tmp_path / "none", "svg") == []
    assert not (tmp_path / "none").exists()


def test_an_unknown_format_is_refused(sonde: Sonde, run: Path, tmp_path: Path) -> None:
    assert sonde("report", run, "--figures", tmp_path, "--format", "gif").code == 2
