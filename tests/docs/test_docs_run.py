"""Every command in the documentation exists; the marked ones run and print what is shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from .pages import PAGES, ROOT, agrees, blocks, commands, shell_blocks
from .program import MAY_LACK, played, sonde, verbs

EXAMPLE = "sonde run robust"
"""A probe that the documentation adds; test_docs_plug_ins.py runs it."""

MARKED = [page for page in PAGES if any(block.kind == "run" for block in blocks(page))]


@pytest.mark.parametrize("page", MARKED, ids=lambda page: page.stem)
def test_a_page_does_what_it_shows(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if any(block.rest == "smollm2" for block in blocks(page)):
        request.getfixturevalue("smollm2")
    for block, command, outcome in played(page, tmp_path):
        what = f"{block.where}: {command.text if command else 'this program'}"
        assert outcome.code == block.exit_code, f"{what} ends with\n{outcome.printed}"
        if command and command.shown and block.rest != "smollm2":
            assert agrees(command.shown, outcome.printed), f"{what} prints\n{outcome.printed}"
    for name in {block.rest for block in blocks(page)}.intersection(MAY_LACK):
        pytest.importorskip(name, reason=f"the examples that need {name} were passed over")


def sonde_commands() -> list[tuple[str, list[str]]]:
    return [
        (block.where, shlex.split(command.text, comments=True)[1:])
        for block in shell_blocks()
        for command in commands(block)
        if command.text.startswith("sonde ") and not command.text.startswith(EXAMPLE)
    ]


def test_every_command_shown_has_a_verb_and_flags_that_exist() -> None:
    found = sonde_commands()
    assert len(found) > 20
    for where, words in found:
        verb = verbs()[""]
        for word in words:
            if word.startswith("-"):
                flags = {flag for p in verb.params for flag in (*p.opts, *p.secondary_opts)}
                known = word.partition("=")[0] in {*flags, "--help"}
                assert known, f"{where}: no flag {word}"
            elif hasattr(verb, "commands") and word in verb.commands:
                verb = verb.commands[word]
            else:
                # the value of a flag, or an argument; a group of verbs takes none
                assert not hasattr(verb, "commands"), f"{where}: no verb {word}"


def test_every_make_target_shown_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, re.M))
    shown = [
        (block.where, command.text.split()[1])
        for block in shell_blocks()
        for command in commands(block)
        if command.text.startswith("make ")
    ]
    assert {target for _, target in shown} >= {"demo", "test"}
    for where, target in shown:
        assert target in targets, f"{where}: no make target {target}"


def test_contributing_lists_every_make_target() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert phony
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for target in phony[1].split():
        assert f"`make {target}`" in text, f"CONTRIBUTING.md does not mention make {target}"


def test_a_command_that_fails_is_noticed(tmp_path: Path) -> None:
    assert sonde(["report", "nowhere"], tmp_path).code == 5
