"""Sentences that a user gives as wording, one by one or in a file, for the relations of a dataset.

The capital of [X] is [Y].              for the only relation there is
capital=The capital of [X] is [Y].      for the relation of that id or label
FILE.txt                                one such sentence a line
FILE.json                               {"capital": "…" or ["…", …], …}, or a list of sentences
FILE.csv, .tsv, .jsonl, .parquet, .xlsx the columns relation (optional) and template
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sonde.core.errors import SondeError
from sonde.core.facts import ANSWER_SLOT, SUBJECT_SLOT, Card, Dataset
from sonde.core.fingerprints import fingerprint
from sonde.data.lines import read_lines
from sonde.data.tables.columns import PAGE, USUAL, Faults, plain, slot_faults, text_in, texts_in
from sonde.data.tables.files import TABLES, read_table
from sonde.data.wordings import Wording, Wordings, gather

NAME = "wording"
ENDINGS = (".txt", ".json", *TABLES)
NAMED = re.compile(r"([^=\[\]]+)=(.*)", re.DOTALL)
ADVICE = (
    'A sentence holds [X] and [Y] once each: "The capital of [X] is [Y]." '
    f"A question needs [X] only ({PAGE})"
)


class Said(NamedTuple):
    """A sentence, the relation that it names, or none, and where it stands."""

    relation: str
    text: str
    where: str


def is_sentence(text: str) -> bool:
    """Whether what was given as wording is a sentence, or a file of them, and no source's name."""
    if SUBJECT_SLOT in text or ANSWER_SLOT in text:
        return True
    path = Path(text).expanduser()
    if path.suffix.lower() in ENDINGS:
        return path.is_file() or ":" not in text
    return " " in text and ":" not in text and not path.exists()


def worded_by(texts: Sequence[str], dataset: Dataset, flag: str = "--template") -> Wordings:
    """The sentences that a flag gives for a dataset's relations; all their faults at once."""
    faults = Faults(flag, ADVICE)
    said = [each for text in texts for each in _said(text, faults)]
    wordings = [
        Wording(relation, each.text, "manual")
        for each in said
        if (relation := _relation(each, dataset, faults)) and _sound(each, faults)
    ]
    faults.refuse()
    templates, notes = gather(NAME, wordings)
    return Wordings(
        card=Card(name=NAME, licence="yours", sources=("sentences given as wording",)),
        templates=templates,
        fingerprint=fingerprint(part for w in wordings for part in (w.relation, w.text)),
        notes=notes,
    )


def _said(text: str, faults: Faults) -> Iterator[Said]:
    """The sentences of one flag."""
    if SUBJECT_SLOT in text or ANSWER_SLOT in text or not _is_file(text):
        yield _named(text, "")
        return
    path = Path(text).expanduser()
    if not path.is_file():
        faults.add(f"{path} is missing; give a file of sentences that is there")
    elif path.suffix.lower() == ".txt":
        for where, line in read_lines(path, faults.add):
            if line.strip():
                yield _named(line, where)
    elif path.suffix.lower() == ".json":
        yield from _of_json(path, faults)
    else:
        yield from _of_table(path, faults)


def _is_file(text: str) -> bool:
    """Whether a text is the path of a file of sentences, there or not."""
    return Path(text).suffix.lower() in ENDINGS


def _named(text: str, where: str) -> Said:
    found = NAMED.fullmatch(text)
    return (
        Said(found[1].strip(), found[2].strip(), where) if found else Said("", text.strip(), where)
    )


def _of_json(path: Path, faults: Faults) -> Iterator[Said]:
    try:
        value: Any = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        faults.add(f"{path}: no JSON in UTF-8 ({error})")
        return
    entries = value.items() if isinstance(value, dict) else [("", value)]
    for relation, sentences in entries:
        for text in sentences if isinstance(sentences, list) else [sentences]:
            if isinstance(text, str):
                yield Said(relation, text.strip(), str(path))
            else:
                faults.add(f"{text!r} is no sentence", str(path))


def _of_table(path: Path, faults: Faults) -> Iterator[Said]:
    for row in read_table(path, faults.add):
        columns = {plain(name): cell for name, cell in row.values.items()}
        texts = [columns[name] for name in USUAL["template"] if name in columns]
        relations = [columns[name] for name in USUAL["relation"] if name in columns]
        if not texts:
            faults.add(f"{path} has no column {' or '.join(USUAL['template'])}")
            return
        for text in texts_in([texts[0]]):
            yield Said(text_in(relations[0]) if relations else "", text, row.where)


def _relation(said: Said, dataset: Dataset, faults: Faults) -> str:
    """The id of the relation that a sentence is for; empty, and told, where there is none."""
    try:
        if said.relation:
            return dataset.relation(said.relation).id
        [relation] = dataset.asked_relations()
        return relation.id
    except SondeError as error:
        if said.where:  # a file may word more than one dataset has: that is counted
            return said.relation
        faults.add(str(error))
    except ValueError:
        known = ", ".join(r.label for r in dataset.relations[:5])
        example = f"{faults.source} {f'{dataset.relations[0].label}={said.text}'!r}"
        faults.add(
            f"{said.text!r} does not say for which of {len(dataset.relations)} relations ({known}"
            f"{', …' if len(dataset.relations) > 5 else ''}); write {example}, or select one with "
            "--relations",
            said.where,
        )
    return ""


def _sound(said: Said, faults: Faults) -> bool:
    found = slot_faults(said.text)
    for fault in found:
        faults.add(fault, said.where)
    return not found
