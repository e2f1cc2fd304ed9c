"""Help texts and refusals come at once: nothing heavy is imported for them, and no line is cut."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sonde.cli.verbs import VERBS, app, summary
from tests.docs.program import help_text, verbs

HEAVY = {"torch", "transformers", "polars", "pyarrow", "scipy", "plotly", "jinja2"}

REFUSED = {
    ("run", "lama", "-m", "hf:./nope"): "./nope is not a folder",
    ("run", "lama", "-m", "random:hf:./nope"): "./nope is not a folder",
    ("run", "lama", "-m", "soft:./nope"): "nope/manifest.json cannot be read",
    ("run", "lama", "-m", "gguf:./nope"): "is not a file",
    ("run", "lama", "-m", "smollm3"): "no model scheme 'smollm3'",
    ("run", "lama", "-m", "smollm2", "--set", "tempalte=2"): "unknown setting 'tempalte'",
    ("run", "lamma", "-m", "smollm2"): "No such command 'lamma'",
    ("run", "lama", "-m", "smollm2", "--vary", "q=1,2"): "unknown setting 'q'",
    ("doctor", "-m", "hf:./nope"): "./nope is not a folder",
}


def met(*words: str) -> tuple[str, set[str]]:
    """What a command complains of, and the packages that it imported."""
    code = (
        "import sys; from sonde.cli.main import main\n"
        f"main({list(words)!r}); print('\\n', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stderr, {name.split(".")[0] for name in done.stdout.splitlines()[-1].split()}


def test_the_list_of_verbs_imports_no_verb() -> None:
    assert not met("--help")[1] & (HEAVY | {"numpy"})


@pytest.mark.parametrize("verb", ["run", "run lama", "plan", "show", "report", "compare"])
def test_a_help_text_imports_nothing_heavy(verb: str) -> None:
    # the settings of a probe are those of its class
    heavy = HEAVY - {"polars", "pyarrow"} if verb in ("run lama", "plan") else HEAVY | {"numpy"}
    assert not met(*verb.split(), "--help")[1] & heavy


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_is_not_there_is_refused_before_anything_heavy_is_imported(words: tuple[str]) -> None:
    complaint, imported = met(*words)
    assert REFUSED[words] in " ".join(complaint.split())
    assert not imported & (HEAVY - {"polars", "pyarrow"})


@pytest.mark.parametrize("name", VERBS)
def test_the_list_says_of_a_verb_what_its_help_text_says(name: str) -> None:
    assert summary(app.commands[name]) == VERBS[name][1]


@pytest.mark.parametrize("group", ["", "run", "plan"])
def test_every_verb_and_probe_has_one_whole_line_in_80_columns(group: str) -> None:
    listed = help_text(group).partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed] == list(verbs()[group].commands)
    assert all(line.endswith((".", "?")) and "..." not in line for line in listed)


def test_no_list_of_commands_is_cut() -> None:
    for words, verb in verbs().items():
        assert not hasattr(verb, "commands") or "..." not in help_text(words)[40:].replace(
            "]...", ""
        )
