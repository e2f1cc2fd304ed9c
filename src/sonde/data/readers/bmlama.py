"""Read BMLAMA: a file a language, `LANG.tsv`, of which line n is the same fact in every language.

    Prompt            the sentence, with <mask> for the answer
    Ans               the answer
    Candidate Ans     what a model chooses between, with a comma between two; the answer is last
    Subject           what the sentence is about

The English sentence tells the relation, of which there is one for each language: `P36.en`. Things
are told apart by their English names, within a relation: those of the subject and of the answer of
a line, in all languages. A candidate is the thing that has its name as the answer of some line. The
candidates of a line stay as published; they are its options, in part others in another language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, repeat
from pathlib import Path
from typing import NamedTuple

from sonde.core.errors import DataError
from sonde.core.facts import (
    ANSWER_SLOT,
    SUBJECT_SLOT,
    Card,
    Dataset,
    Entity,
    Fact,
    Relation,
    Template,
)
from sonde.data.format import hash_files
from sonde.data.lines import read_lines
from sonde.data.readers import Published
from sonde.data.wordings import kind_of, known_relation, relation_ids

FILE = re.compile(r"[a-z]{2,3}\.tsv")
ENGLISH = "en"
HEADER = ("Prompt", "Ans", "Candidate Ans", "Subject")
GAP = "<mask>"
FIRST = 2
"""The line of a file that has the first fact."""

OWN = f"[details.before]{ANSWER_SLOT}[details.after]"
"""How a relation is asked whose sentences are not one sentence with the subject put in."""

TOLD_BY = {
    "born": "P19", "died": "P20", "subclass": "P279", "official language": "P37",
    "in [Y] position": "P413", "aired": "P449", "border": "P47", "named after": "P138",
    "original language": "P364", "member": "P463", "field": "P101", "profession": "P106",
    "consists": "P527", "diplomatic": "P530", "produced": "P176", "citizen": "P27",
    "written": "P407", "developed": "P178", "is the capital": "P1376", "communicate": "P1412",
    "works for": "P108", "[Y] music": "P136", "the position": "P39", "label": "P264",
    "work in": "P937", "religion": "P140", "plays": "P1303", "owned": "P127",
    "native language": "P103", "twin": "P190", "legal": "P1001", "is a [Y].": "P31",
    "created": "P495", "headquarter": "P159", "The capital": "P36", "founded": "P740",
    "part of": "P361",
}  # fmt: skip
"""Words that an English sentence has of one relation alone; the first that is in it counts."""

LOCATED = "located"
LOCATIONS = ("P30", "P131", "P17", "P276")
"""Four relations say that something is located somewhere; the file has one after the other."""


class Line(NamedTuple):
    """A fact in one language."""

    prompt: str
    answer: str
    candidates: str
    subject: str

    @property
    def template(self) -> str:
        """The sentence with slots for subject and answer."""
        return self.prompt.replace(self.subject, SUBJECT_SLOT, 1).replace(GAP, ANSWER_SLOT)

    def wrong(self) -> list[str]:
        """The other candidates, each once."""
        others = self.candidates.removesuffix(self.answer).split(", ")
        return [name for name in dict.fromkeys(others) if name and name != self.answer]

    def fits(self, template: str) -> bool:
        """Whether a template with the subject in it is the sentence."""
        filled = template.replace(ANSWER_SLOT, GAP).replace(SUBJECT_SLOT, self.subject)
        return filled == self.prompt


def _recognises(folder: Path) -> bool:
    """Whether there is a file of English lines under BMLAMA's header."""
    path = folder / f"{ENGLISH}.tsv"
    return path.is_file() and _cells(next(read_lines(path), ("", ""))[1]) == HEADER


def _read(folder: Path) -> Dataset:
    """Open the folder; all lines are read now, since they are joined."""
    paths = _paths(folder)
    lines = {language: list(_lines(path)) for language, path in paths.items()}
    _check_counts({paths[language].name: len(own) for language, own in lines.items()})
    worded = {own.id: own for own in _worded(lines)}
    relations = tuple(own.relation() for own in worded.values())
    return Dataset(
        card=Card(name="bmlama", licence="Apache-2.0", sources=("BMLAMA",)),
        relations=relations,
        read=lambda id: worded[id].facts(),
        fingerprint=hash_files(folder, paths.values()),
        notes={
            "rows_read": sum(map(len, lines.values())),
            "rows_with_a_right_object_as_wrong": sum(own.mistaken() for own in worded.values()),
            "relations_with_prompts_of_their_own": sum(
                relation.templates[0].text == OWN for relation in relations
            ),
        },
    )


def _worded(lines: Mapping[str, Sequence[Line]]) -> Iterator[_Worded]:
    """Every relation in every language."""
    owners = _relations(lines[ENGLISH])
    for same in dict.fromkeys(owners):
        numbers = [number for number, id in enumerate(owners) if id == same]
        english = [lines[ENGLISH][number] for number in numbers]
        for language, own in lines.items():
            yield _Worded(same, language, numbers, english, [own[number] for number in numbers])


@dataclass(frozen=True, slots=True)
class _Worded:
    """The lines of a relation in one language, beside the English ones; `numbers` are theirs."""

    same: str
    language: str
    numbers: Sequence[int]
    english: Sequence[Line]
    lines: Sequence[Line]

    @property
    def id(self) -> str:
        return f"{self.same}.{self.language}"

    def template(self) -> str:
        """The sentence of all lines; details of each where there is no such one."""
        text = Counter(line.template for line in self.lines).most_common(1)[0][0]
        return text if all(line.fits(text) for line in self.lines) else OWN

    def relation(self) -> Relation:
        objects: dict[str, set[str]] = {}
        for line in self.english:
            objects.setdefault(line.subject, set()).add(line.answer)
        known = known_relation(self.same, self.same, kind=kind_of(objects.values()))
        id = f"{self.id}-bmlama"
        return replace(
            known,
            id=self.id,
            templates=(Template(id=id, text=self.template(), group=id),),
            language=self.language,
            same=self.same,
        )

    def facts(self) -> Iterator[Fact]:
        own, things = self.template() == OWN, self._things()
        for number, english, line in zip(self.numbers, self.english, self.lines, strict=True):
            before, _, after = line.prompt.partition(GAP)
            wrong = zip(line.wrong(), chain(english.wrong(), repeat("")), strict=False)
            yield Fact(
                id=f"{self.id}:{number + FIRST}",
                relation=self.id,
                subject=Entity(id=english.subject, names=(line.subject,)),
                objects=(Entity(id=english.answer, names=(line.answer,)),),
                wrong=tuple(
                    Entity(id=_thing(name, beside, things), names=(name,)) for name, beside in wrong
                ),
                details={"before": before, "after": after} if own else {},
            )

    def mistaken(self) -> int:
        """How many lines have a candidate that is right by another line about the subject."""
        right: dict[str, set[str]] = {}
        for line in self.lines:
            right.setdefault(line.subject, set()).add(line.answer)
        several = (line for line in self.lines if len(right[line.subject]) > 1)
        return sum(not right[line.subject].isdisjoint(line.wrong()) for line in several)

    def _things(self) -> Mapping[str, Counter[str]]:
        """The English names of what a name is the answer for, with how often it is."""
        things: dict[str, Counter[str]] = {}
        for english, line in zip(self.english, self.lines, strict=True):
            things.setdefault(line.answer, Counter())[english.answer] += 1
        return things


def _thing(name: str, beside: str, things: Mapping[str, Counter[str]]) -> str:
    """What a candidate is: the English one beside it, where the two are of one thing; else what it
    is most often; a name that answers no line is known by itself."""
    known = things.get(name)
    if known is None:
        return name
    return beside if beside in known else known.most_common(1)[0][0]


def _paths(folder: Path) -> dict[str, Path]:
    """The file of each language, the English one first."""
    found = {path.stem: path for path in sorted(folder.iterdir()) if FILE.fullmatch(path.name)}
    if ENGLISH not in found:
        raise DataError(
            f"{folder} has no {ENGLISH}.tsv; BMLAMA's relations are told by its English lines"
        )
    return {ENGLISH: found[ENGLISH], **found}


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.split("\t"))


def _lines(path: Path) -> Iterator[Line]:
    rows = read_lines(path)
    if _cells(next(rows, ("", ""))[1]) != HEADER:
        raise DataError(f"{path} must begin with the columns {', '.join(HEADER)}, by tabs")
    for where, text in rows:
        cells = _cells(text)
        if len(cells) != len(HEADER) or not all(cells):
            raise DataError(
                f"{where}: expected {len(HEADER)} texts with tabs between, {text!r:.80}"
            )
        line = Line(*cells)
        if line.prompt.count(GAP) != 1:
            raise DataError(f"{where}: 'Prompt' must hold {GAP} once, found {line.prompt!r:.80}")
        if not line.candidates.endswith(line.answer):
            raise DataError(f"{where}: the last of 'Candidate Ans' must be {line.answer!r}, 'Ans'")
        yield line


def _check_counts(counts: Mapping[str, int]) -> None:
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{name} has {count:,}" for name, count in counts.items())
        raise DataError(
            f"line n must be the same fact in every language, but files differ in lines: {told}"
        )


def _relations(english: Sequence[Line]) -> list[str]:
    """The relation of each line; a wording that none is known by is called after its words."""
    wordings = [line.template for line in english]
    blocks = [(text, len(list(lines))) for text, lines in groupby(wordings)]
    located = [text for text, _ in blocks if LOCATED in text]
    places = iter(LOCATIONS if len(located) == len(LOCATIONS) else ())
    words = relation_ids(dict.fromkeys(wordings))
    owners: list[str] = []
    for text, count in blocks:
        told = next(places, None) if LOCATED in text else None
        known = told or next((id for part, id in TOLD_BY.items() if part in text), words[text])
        owners += [known] * count
    return owners


COMPONENT = Published(
    name="bmlama",
    summary="BMLAMA in several languages: en.tsv, fr.tsv, … of equal lines",
    recognises=_recognises,
    read=_read,
)
